// SPDX-License-Identifier: GPL-2.0-or-later
/// The guard's decisions: first one by one, then over seeded machines on which something goes
/// wrong, or nothing does.
#include "guard/guard.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <numeric>
#include <random>
#include <set>
#include <utility>

#include <gtest/gtest.h>

namespace umacct {
namespace {

using namespace std::chrono_literals;
using Action = Guard::Action;

constexpr std::uint64_t mib = 1ULL << 20;
constexpr std::uint64_t gib = 1ULL << 30;

Holder holder(const std::string &path, std::uint64_t driver, std::uint64_t other = 0) {
    return {.path = path,
            .id = std::hash<std::string>()(path),
            .driver = driver,
            .other = other,
            .soft = {},
            .kind = HolderKind::unit};
}

std::string words(const std::vector<Action> &actions) {
    std::string text;

    for (const Action &action : actions)
        text +=
            (text.empty() ? "" : ", ") + std::string(action.undo ? "undo " : "") +
            (action.nobody ? "nobody" : std::string(name_of(action.step)) + ' ' + action.path());
    return text;
}

/// A machine of 100 GiB with a floor of 4, one reading after the other.
class GuardTest : public testing::Test {
protected:
    static GuardPolicy policy() {
        GuardPolicy policy;

        policy.floor = Amount{.bytes = 4 * gib, .percent = {}};
        policy.for_ns = 500'000'000;
        policy.wait_ns = 2'000'000'000;
        policy.steps = {GuardStep::reclaim, GuardStep::reserve, GuardStep::freeze, GuardStep::kill};
        return policy;
    }

    void use(const GuardPolicy &policy) { guard_ = Guard(policy, 100 * gib, "/self"); }

    /// Lets time pass; what was done last.
    std::string after(std::chrono::milliseconds time, std::uint64_t available) {
        std::string done;

        for (const auto end = now_ + time; now_ < end;) {
            now_ += 50ms;
            if (!guard_.read({now_, available, reserve_, waited_us_, can_reserve_, failed_}))
                continue;
            const auto actions = guard_.decide(holders_);
            for (const Action &action : actions) {
                if (action.step == GuardStep::reserve)
                    reserve_ = action.bytes;
            }
            if (!actions.empty() && !actions.front().again)
                done = words(last_ = actions);
        }
        return done;
    }

    Holder &at(const std::string &path) {
        return *std::ranges::find_if(holders_, [&](const Holder &h) { return h.path == path; });
    }

    Guard guard_{policy(), 100 * gib, "/self"};
    Guard::Time now_{1000s};
    std::uint64_t reserve_ = gib;
    std::optional<std::uint64_t> waited_us_;
    bool can_reserve_ = true;
    std::uint64_t failed_ = 7; // those from before the guard began
    std::vector<Holder> holders_{holder("/server", 60 * gib), holder("/leaker", gib)};
    std::vector<Action> last_;
};

TEST_F(GuardTest, TakesOneStepAfterTheOtherAgainstTheOneWhoGrew) {
    EXPECT_EQ(after(60s, 30 * gib), "");
    at("/leaker").driver = 25 * gib;
    EXPECT_EQ(after(450ms, 4 * gib), ""); // not for long enough
    EXPECT_EQ(after(100ms, 4 * gib), "reclaim /leaker");
    EXPECT_EQ(last_.front().obtainable, 3 * gib); // less the reserve
    EXPECT_EQ(last_.front().suspect->grown, 24 * gib);
    EXPECT_EQ(after(1900ms, 4 * gib), "");
    EXPECT_EQ(after(100ms, 4 * gib), "reserve ");
    EXPECT_EQ(reserve_, 5 * gib);
    EXPECT_EQ(after(2s, 4 * gib), "freeze /leaker");
    EXPECT_EQ(after(2s, 4 * gib), "kill /leaker");
    EXPECT_EQ(after(20s, 4 * gib), ""); // it is dying: no other target is needed
    std::erase_if(holders_, [](const Holder &h) { return h.path == "/leaker"; });
    EXPECT_EQ(after(20s, 30 * gib), "undo freeze /leaker, undo reserve ");
    EXPECT_EQ(reserve_, gib);
}

/// Case 1.3 of the reports: who leaks stays as large as it was in memory, and the server grows.
TEST_F(GuardTest, GrowthIntoSwapIsGrowth) {
    after(60s, 30 * gib);
    at("/leaker").swap = 25 * gib;
    at("/server").driver += 5 * gib;
    EXPECT_EQ(after(600ms, 4 * gib), "reclaim /leaker");
    EXPECT_EQ(last_.front().suspect->grown, 25 * gib);
    EXPECT_NE(last_.front().text().find("and 25.00 GiB on swap, grew 25.00 GiB"), std::string::npos)
        << last_.front().text();
}

TEST_F(GuardTest, MemoryThatComesBackFromSwapIsNoGrowth) {
    holders_.push_back(holder("/desktop", 0, 20 * gib));
    at("/desktop").other = 8 * gib; // others pushed the rest out
    at("/desktop").swap = 12 * gib;
    after(60s, 30 * gib);
    at("/desktop").other = 20 * gib;
    at("/desktop").swap = 0;
    at("/leaker").driver = 9 * gib;
    EXPECT_EQ(after(600ms, 4 * gib), "reclaim /leaker");
    EXPECT_EQ(last_.front().suspect->grown, 8 * gib);
}

TEST_F(GuardTest, APeakOnSwapEarnsNoMoreThanOneInMemory) {
    std::vector<std::uint64_t> grown;

    for (const auto part : {&Holder::driver, &Holder::swap}) {
        use(policy());
        at("/leaker").driver = gib;
        for (int i = 0; i < 4; ++i) {
            at("/leaker").*part += 60 * gib;
            after(8s, 30 * gib);
            at("/leaker").*part -= 60 * gib;
            after(25min, 30 * gib);
        }
        at("/leaker").driver = 25 * gib;
        EXPECT_EQ(after(600ms, 4 * gib), "reclaim /leaker");
        grown.push_back(last_.front().suspect->grown);
        now_ += 1h;
    }
    EXPECT_GE(grown.at(0), 12 * gib);
    EXPECT_EQ(grown.at(1), grown.at(0));
}

TEST_F(GuardTest, ATenantThatHoldsLittleHasNoOthersInItsGroup) {
    Holder small = holder("", 8ULL << 20);

    small.id = 99;
    small.kind = HolderKind::tenant;
    holders_.insert(holders_.begin(), small);
    for (int i = 0; i < 8; ++i)
        holders_.push_back(holder("/service" + std::to_string(i), gib));
    for (int i = 0; i < 60; ++i) {
        at("/leaker").driver = 40 * gib;
        after(8s, 30 * gib);
        at("/leaker").driver = gib;
        after(52s, 30 * gib);
    }
    at("/leaker").driver = 40 * gib;
    EXPECT_EQ(after(600ms, 4 * gib), "reclaim /leaker") << "its share is an eighth";
}

TEST_F(GuardTest, PassesOverTheReserveWhereNobodyRefusesForIt) {
    can_reserve_ = false;
    after(60s, 30 * gib);
    at("/leaker").driver = 25 * gib;
    EXPECT_EQ(after(600ms, 4 * gib), "reclaim /leaker");
    EXPECT_EQ(after(2s, 4 * gib), "freeze /leaker");
    EXPECT_EQ(after(20s, 30 * gib), "undo freeze /leaker");
}

TEST_F(GuardTest, UndoesWhenAllIsWellForAWhile) {
    after(60s, 30 * gib);
    at("/leaker").driver = 25 * gib;
    EXPECT_EQ(after(5s, 4 * gib), "freeze /leaker");
    EXPECT_EQ(after(9900ms, 20 * gib), "");
    EXPECT_EQ(after(300ms, 5 * gib), ""); // nearly as before: it counts anew
    EXPECT_EQ(after(9900ms, 20 * gib), "");
    EXPECT_EQ(after(200ms, 20 * gib), "undo freeze /leaker, undo reserve ");
    EXPECT_EQ(after(100s, 20 * gib), "");
}

TEST_F(GuardTest, GoesOnWhereItWasIfItBeginsAgainAtOnce) {
    after(60s, 30 * gib);
    at("/leaker").driver = 25 * gib;
    EXPECT_EQ(after(5s, 4 * gib), "freeze /leaker");
    after(11s, 20 * gib);
    at("/leaker").driver = 40 * gib;
    EXPECT_EQ(after(700ms, 4 * gib), "freeze /leaker");
    EXPECT_EQ(after(2s, 4 * gib), "kill /leaker");
}

TEST_F(GuardTest, ANewShortageDoesNotWaitForTheLastStep) {
    GuardPolicy patient = policy();

    patient.steps = {GuardStep::freeze};
    patient.wait_ns = 60'000'000'000;
    use(patient);
    after(60s, 30 * gib);
    at("/leaker").driver = 25 * gib;
    EXPECT_EQ(after(600ms, 4 * gib), "freeze /leaker");
    EXPECT_EQ(after(11s, 20 * gib), "undo freeze /leaker");
    at("/leaker").driver = 40 * gib;
    EXPECT_EQ(after(600ms, 4 * gib), "freeze /leaker");
}

TEST_F(GuardTest, ADipIsNothing) {
    after(60s, 30 * gib);
    at("/leaker").driver = 25 * gib;
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(after(450ms, 4 * gib), "");
        EXPECT_EQ(after(100ms, 6 * gib), "");
    }
}

TEST_F(GuardTest, TurnsToAnotherOnlyIfThatOneGoesOn) {
    GuardPolicy only_freeze = policy();

    only_freeze.steps = {GuardStep::freeze};
    use(only_freeze);
    after(60s, 30 * gib);
    at("/leaker").driver = 25 * gib;
    EXPECT_EQ(after(600ms, 4 * gib), "freeze /leaker");
    EXPECT_EQ(after(60s, 4 * gib), "");
    at("/server").driver = 61 * gib; // this much may be noise
    EXPECT_EQ(after(3s, 3 * gib), "");
    at("/server").driver = 63 * gib;
    EXPECT_EQ(after(3s, gib), "freeze /server");
}

TEST_F(GuardTest, OfManyNewOnesItTakesOneAfterTheOther) {
    GuardPolicy only_freeze = policy();

    only_freeze.steps = {GuardStep::freeze};
    use(only_freeze);
    after(60s, 60 * gib);
    std::uint64_t available = 60 * gib;
    std::set<std::string> frozen;
    for (int i = 0; i < 120; ++i) {
        holders_.push_back(holder("/docker/" + std::to_string(i), 2500 * mib));
        available -= std::min(available, 2500 * mib);
        after(1s, available);
        for (const Action &action : last_)
            frozen.insert(action.path());
    }
    EXPECT_GT(frozen.size(), 1U);
    EXPECT_FALSE(frozen.contains("/server") || frozen.contains("/leaker"));
}

TEST_F(GuardTest, NobodyGrewSoNobodyIsTouched) {
    after(60s, 30 * gib);
    EXPECT_EQ(after(600ms, 4 * gib), "reserve ");
    EXPECT_EQ(after(3s, 4 * gib), "nobody");
    EXPECT_EQ(after(60s, 4 * gib), "") << "which is told once";
    EXPECT_EQ(after(60s, 30 * gib), "undo reserve ");
    EXPECT_EQ(after(600ms, 4 * gib), "reserve ");
    EXPECT_EQ(after(3s, 4 * gib), "nobody");
}

TEST_F(GuardTest, WhatIsProtectedIsNeverTouched) {
    GuardPolicy with = policy();

    with.protect = {"/prod/**"};
    use(with);
    holders_ = {holder("/prod/a", gib),     holder("/system.slice/sshd.service", gib),
                holder("/self", gib),       holder("/init.scope", gib),
                holder("/self/below", gib), holder("/system.slice/systemd-oomd.service", gib),
                holder("/small", 100 * mib)};
    after(60s, 30 * gib);
    for (Holder &each : holders_)
        each.driver += 5 * gib;
    at("/small").driver = 2400 * mib;
    EXPECT_EQ(after(600ms, 4 * gib), "reclaim /small");
}

TEST_F(GuardTest, ASoftLimitSaysWhatIsItsOwn) {
    at("/server").soft = 80 * gib;
    after(60s, 30 * gib);
    at("/server").driver = 79 * gib; // more than the other took
    at("/leaker").driver = 3 * gib;
    EXPECT_EQ(after(600ms, 4 * gib), "reclaim /leaker");

    at("/server").soft = 10 * gib;
    use(policy());
    after(60s, 30 * gib);
    at("/leaker").driver = 30 * gib;
    EXPECT_EQ(after(600ms, 4 * gib), "reclaim /server");
    EXPECT_EQ(last_.front().suspect->over_soft, 69 * gib);
}

TEST_F(GuardTest, AGroupIsMeantWhereAllInItIsNew) {
    const auto bomb = [this] {
        Holder group = holder("/user/bomb", 0);

        group.kind = HolderKind::tenant;
        holders_.push_back(group);
        for (int i = 0; i < 100; ++i)
            holders_.push_back(holder("/user/bomb/" + std::to_string(i), 250 * mib));
        at("/user/bomb").driver = 25000 * mib;
    };

    after(60s, 30 * gib);
    bomb();
    EXPECT_EQ(after(600ms, 4 * gib), "reclaim /user/bomb");

    // A cgroup that was there before must not be frozen because of a new neighbour.
    holders_.resize(2);
    use(policy());
    holders_.push_back(holder("/user/bomb/old", 10 * gib));
    holders_.push_back(holder("/user/bomb", 10 * gib));
    holders_.back().kind = HolderKind::tenant;
    after(60s, 30 * gib);
    holders_.pop_back();
    bomb();
    at("/user/bomb").driver += 10 * gib;
    EXPECT_EQ(after(600ms, 4 * gib), "reserve ") << "and none of those beside it took much";
}

TEST_F(GuardTest, PressureIsASignToo) {
    GuardPolicy with = policy();

    with.floor.reset();
    with.pressure = 20;
    use(with);
    waited_us_ = 0;
    const auto wait = [this](std::chrono::milliseconds time, int percent) {
        std::string done;

        for (; time > 0ms; time -= 50ms) {
            *waited_us_ += 500 * static_cast<std::uint64_t>(percent);
            done += after(50ms, 30 * gib);
        }
        return done;
    };

    EXPECT_EQ(wait(30s, 19), "");
    at("/leaker").other = 5 * gib;
    EXPECT_EQ(wait(550ms, 30), "reclaim /leaker");
    EXPECT_NEAR(last_.front().pressure, 22, 3);
}

/// Case 1.10 of the reports: memory is there, in pieces that are of no use to the driver.
TEST_F(GuardTest, ARequestThatFailedIsASignWhereThePolicySaysSo) {
    GuardPolicy with = policy();

    EXPECT_EQ(after(60s, 30 * gib), "");
    at("/leaker").driver += 5 * gib;
    ++failed_;
    EXPECT_EQ(after(5s, 30 * gib), "") << "it doesn't say so";

    with.failed = true;
    use(with);
    at("/leaker").driver -= 5 * gib;
    EXPECT_EQ(after(60s, 30 * gib), "") << "it failed before";
    at("/leaker").driver += 5 * gib;
    ++failed_;
    EXPECT_EQ(after(100ms, 30 * gib), "reclaim /leaker");
    EXPECT_NE(last_.front().text().find(", 1 failed request,"), std::string::npos)
        << last_.front().text();
    EXPECT_EQ(after(4s, 30 * gib), "") << "one failure is one step";
    failed_ += 2;
    EXPECT_EQ(after(100ms, 30 * gib), "reserve ");
    EXPECT_EQ(after(1s, 30 * gib), "");
    ++failed_;
    EXPECT_EQ(after(1s, 30 * gib), "freeze /leaker");
    EXPECT_EQ(after(20s, 30 * gib), "undo freeze /leaker, undo reserve ");
}

TEST_F(GuardTest, AFailureAloneTouchesNobodyWhoDidNotGrow) {
    GuardPolicy with = policy();

    with.failed = true;
    use(with);
    EXPECT_EQ(after(60s, 30 * gib), "");
    failed_ = 0; // the module was loaded anew
    EXPECT_EQ(after(60s, 30 * gib), "");
    ++failed_;
    EXPECT_EQ(after(1s, 30 * gib), "reserve ");
}

/// Lets time pass in which tasks wait for that share of it, though there is memory.
class StrainTest : public GuardTest {
protected:
    std::string wait(std::chrono::milliseconds time, int percent, std::uint64_t available) {
        std::string done;

        waited_us_ = waited_us_.value_or(0);
        for (; time > 0ms; time -= 50ms) {
            *waited_us_ += 500 * static_cast<std::uint64_t>(percent);
            done += after(50ms, available);
        }
        return done;
    }
};

TEST_F(StrainTest, WhereMemoryIsThereItIsToldAndNobodyIsTouched) {
    GuardPolicy with = policy();

    with.pressure = 20;
    use(with);
    EXPECT_EQ(wait(60s, 0, 57 * gib), "");
    EXPECT_EQ(wait(1s, 98, 57 * gib), "nobody"); // the policy has the step reserve
    EXPECT_TRUE(last_.front().strained);
    EXPECT_EQ(last_.front().obtainable, 56 * gib);
    EXPECT_EQ(wait(590s, 98, 57 * gib), "") << "it was told";
    EXPECT_EQ(wait(15s, 98, 57 * gib), "nobody") << "it is still so";
    EXPECT_EQ(wait(3600s, 98, 57 * gib), "nobodynobodynobodynobodynobodynobody");
    EXPECT_EQ(reserve_, gib);
    EXPECT_EQ(wait(60s, 0, 57 * gib), "");
    EXPECT_EQ(wait(1s, 98, 57 * gib), "nobody") << "it is so again";
}

TEST_F(StrainTest, APolicyWithoutPressureIsToldAfterAMinute) {
    EXPECT_EQ(wait(60s, 0, 57 * gib), "");
    EXPECT_EQ(wait(59s, 98, 57 * gib), "");
    EXPECT_EQ(wait(3s, 98, 57 * gib), "nobody");
    EXPECT_TRUE(last_.front().strained);
    EXPECT_GE(last_.front().for_, 60s);
    EXPECT_NE(last_.front().text().find("tasks wait although memory is available"),
              std::string::npos);
    EXPECT_EQ(wait(60s, 30, 57 * gib), ""); // less than half of the time
    EXPECT_EQ(wait(300s, 30, 57 * gib), "");
}

TEST_F(StrainTest, WhoGrewIsActedAgainstAllTheSame) {
    GuardPolicy with = policy();

    with.pressure = 20;
    use(with);
    EXPECT_EQ(wait(60s, 0, 57 * gib), "");
    at("/leaker").driver = 5 * gib;
    EXPECT_EQ(wait(1s, 98, 57 * gib), "reclaim /leaker");
}

TEST_F(StrainTest, WantOfMemoryIsAnotherThing) {
    GuardPolicy with = policy();

    with.pressure = 20;
    use(with);
    EXPECT_EQ(wait(60s, 0, 30 * gib), "");
    EXPECT_EQ(wait(1s, 98, 10 * gib), "reserve ") << "an eighth of it isn't there";
    EXPECT_EQ(wait(3s, 98, 10 * gib), "nobody");
    EXPECT_FALSE(last_.front().strained);
}

TEST_F(GuardTest, AnothersReserveDoesNotEndItsOwn) {
    after(60s, 30 * gib);
    EXPECT_EQ(after(1s, 4 * gib), "reserve ");
    EXPECT_EQ(reserve_, 5 * gib);
    reserve_ = 2 * gib; // set by another program
    EXPECT_EQ(after(100ms, 4 * gib), "");
    EXPECT_EQ(after(60s, 30 * gib), "undo reserve ") << "to what the other orders are by then";
}

// --- the ranking, as a person reads it ------------------------------------------------

class Ranking : public GuardTest {
protected:
    /// Names in order; those that are no targets after a bar.
    std::string order() const {
        std::string text;
        bool barred = false;

        for (const Suspect &each : guard_.ranking(holders_)) {
            if (!each.passed_by.empty() && !std::exchange(barred, true))
                text += "| ";
            text += each.holder.path + ' ';
        }
        return text;
    }

    std::string why_not(const std::string &path) const {
        for (const Suspect &each : guard_.ranking(holders_)) {
            if (each.holder.path == path)
                return each.passed_by;
        }
        return "not there";
    }
};

TEST_F(Ranking, WhoGrewMostIsFirstAndWhoDidNotIsNone) {
    holders_ = {holder("/big", 50 * gib), holder("/slow", gib), holder("/fast", gib)};
    after(1200s, 30 * gib);
    at("/slow").driver = 9 * gib;
    at("/big").driver = 51 * gib;
    after(100s, 20 * gib);
    at("/fast").driver = 4 * gib;
    EXPECT_EQ(order(), "/fast /slow | /big ") << "what was taken within seconds comes first";
    after(1500s, 20 * gib);
    EXPECT_EQ(order(), "| /big /slow /fast ") << "later it is what they hold";
    EXPECT_EQ(why_not("/slow"), "it grew by less than 2.00 GiB");
}

TEST_F(Ranking, SharedSlicesAndWhatOthersOwnAreNeverIn) {
    holders_ = {holder("/user.slice", 0), holder("/user.slice/user-1.slice", 0),
                holder("/user.slice/user-1.slice/session-1.scope", 0)};
    at("/user.slice").kind = HolderKind::shared;
    at("/user.slice/user-1.slice").kind = HolderKind::tenant;
    after(1200s, 30 * gib);
    for (Holder &each : holders_)
        each.other = 20 * gib;
    EXPECT_EQ(order(), "/user.slice/user-1.slice/session-1.scope | /user.slice "
                       "/user.slice/user-1.slice ");
    EXPECT_EQ(why_not("/user.slice"), "it is of several tenants");
    EXPECT_EQ(why_not("/user.slice/user-1.slice"), "a cgroup in it caused half of its growth");
}

/// A tenant's group, in which a service has run for long.
class Group : public Ranking {
protected:
    static constexpr const char *path = "/user.slice/user-1.slice";

    Group() {
        holders_ = {holder("/server", 40 * gib), holder(path, 15 * gib),
                    holder(std::string(path) + "/old.service", 15 * gib)};
        at(path).kind = HolderKind::tenant;
        after(1200s, 30 * gib);
        at("/server").driver += 3 * gib;
        at(path).driver += 20 * gib;
    }
};

TEST_F(Group, WhatItsCgroupsDontExplainIsItsOwn) {
    EXPECT_EQ(order(), "/user.slice/user-1.slice /server | /user.slice/user-1.slice/old.service ");
    EXPECT_EQ(why_not(std::string(path) + "/old.service"), "it grew by less than 2.00 GiB");
    EXPECT_EQ(after(600ms, 4 * gib), "reclaim /user.slice/user-1.slice");
}

TEST_F(Group, WhatLiesElsewhereInItNowIsNoGrowth) {
    at(path).driver = 15 * gib;
    at(std::string(path) + "/old.service").driver = 0;
    EXPECT_EQ(order(), "/server | /user.slice/user-1.slice ");
}

TEST_F(Group, WhatIsProtectedInItProtectsTheRest) {
    GuardPolicy protects = policy();

    protects.protect = {std::string(path) + "/old.service"};
    use(protects);
    at("/server").driver -= 3 * gib;
    at(path).driver -= 20 * gib;
    after(1200s, 30 * gib);
    at("/server").driver += 3 * gib;
    at(path).driver += 20 * gib;
    EXPECT_EQ(order(), "/server | /user.slice/user-1.slice /user.slice/user-1.slice/old.service ");
}

TEST_F(Group, WhatStaysOfOneThatWasKilledIsTheRests) {
    const std::string decoy = std::string(path) + "/decoy";
    GuardPolicy kills = policy();

    kills.steps = {GuardStep::kill};
    use(kills);
    at(path).driver -= 20 * gib;
    after(1200s, 30 * gib);
    // One process that holds nothing is left in it, the one that took the memory is elsewhere.
    at(path).driver += 20 * gib;
    holders_.push_back(holder(decoy, 20 * gib));
    EXPECT_EQ(after(600ms, 4 * gib), "kill " + decoy);
    at(decoy).empty = true;
    EXPECT_EQ(after(1500ms, 4 * gib), "") << "it may be about to be given back";
    EXPECT_EQ(after(1s, 4 * gib), "kill /user.slice/user-1.slice");
    EXPECT_EQ(why_not(decoy), "it was killed");
}

TEST_F(Group, WhatComesBackAfterACgroupIsGoneIsWaitedFor) {
    const std::string leaker = std::string(path) + "/leaker";
    const std::uint64_t some = gib / 8;
    GuardPolicy kills = policy();

    kills.steps = {GuardStep::kill};
    use(kills);
    at(path).driver -= 20 * gib;
    after(1200s, 30 * gib);
    at(path).driver += 20 * gib;
    holders_.push_back(holder(leaker, 20 * gib));
    EXPECT_EQ(after(600ms, 3 * gib), "kill " + leaker);
    // Its runtime has removed it, and the driver frees what it held bit by bit.
    holders_.pop_back();
    EXPECT_EQ(after(1900ms, 3 * gib + some), "");
    EXPECT_EQ(after(1900ms, 3 * gib + 2 * some), "");
    EXPECT_EQ(after(1900ms, 3 * gib + 2 * some), "kill /user.slice/user-1.slice");
}

TEST_F(Ranking, SystemdsPreferencesHold) {
    holders_ = {holder("/omit", 0), holder("/avoid", 0), holder("/none", 0)};
    at("/omit").preference = Preference::omit;
    at("/avoid").preference = Preference::avoid;
    after(1200s, 30 * gib);
    at("/omit").driver = 30 * gib;
    at("/avoid").driver = 20 * gib;
    at("/none").driver = 2 * gib;
    EXPECT_EQ(order(), "/none /avoid | /omit ");
    EXPECT_EQ(why_not("/omit"), "its unit has ManagedOOMPreference=omit");
}

TEST_F(Ranking, ACgroupOfTheSameNameIsAnother) {
    after(1200s, 30 * gib);
    at("/leaker").id = 4711; // it was made anew, and holds no more than the last one did
    at("/leaker").driver = 0;
    at("/leaker").other = 2 * gib;
    EXPECT_EQ(order(), "/leaker | /server ");
}

TEST_F(Ranking, WhatOneHeldAnHourAgoIsForgotten) {
    at("/leaker").driver = 20 * gib;
    after(100s, 30 * gib);
    at("/leaker").driver = gib;
    after(1200s, 30 * gib);
    at("/leaker").driver = 20 * gib;
    EXPECT_EQ(order(), "| /server /leaker ") << "it has held as much before";
    at("/leaker").driver = gib;
    after(5400s, 30 * gib);
    at("/leaker").driver = 20 * gib;
    EXPECT_EQ(order(), "/leaker | /server ");
}

// --- seeded machines -----------------------------------------------------------------

/// The machine's own.
constexpr std::uint64_t own = 2 * gib;

/// Bytes at a time, in seconds.
using Course = std::function<double(double)>;

/// A cgroup of a machine, and what it holds when.
struct Part {
    Holder holder;
    bool on_cpu = false;
    Course course;
    bool listed = true; ///< false for memory that is in its group alone

    std::uint64_t bytes(double time) const {
        return static_cast<std::uint64_t>(std::max(course(time), 0.0));
    }
};

/// Cgroups on which something goes wrong, or nothing does.
struct World {
    std::uint64_t total = 0;
    std::vector<Part> parts;
    Course unseen = [](double) { return 0.0; }; ///< memory that no cgroup would give back
    std::vector<std::string> culprits;          ///< any of these is right; empty: there is none
    double stopped = INFINITY;                  ///< time at which the culprit was frozen
    double begins = 0;                          ///< the same for whoever begins anew
    bool restarts = false;
    double left = 0;       ///< memory left once all hold their maximum
    bool has_time = false; ///< it may have held as much before: the moment of blame is not known

    void add(const std::string &path, bool on_cpu, Course course,
             HolderKind kind = HolderKind::unit) {
        Part part{.holder = holder(path, 0), .on_cpu = on_cpu, .course = std::move(course)};

        part.holder.kind = kind;
        parts.push_back(std::move(part));
    }

    std::vector<Holder> holders(double time) const {
        std::vector<Holder> all;

        for (const Part &part : parts) {
            const std::uint64_t held = part.bytes(time);

            if (held == 0)
                continue;
            if (!part.listed)
                continue;
            all.push_back(part.holder);
            (part.on_cpu ? all.back().other : all.back().driver) = held;
        }
        return all;
    }

    std::uint64_t available(double time) const {
        std::uint64_t held = own + static_cast<std::uint64_t>(unseen(time));

        for (const Part &part : parts)
            held += part.holder.kind == HolderKind::unit ? part.bytes(time) : 0;
        return total - std::min(held, total);
    }

    bool is_right(const std::string &path) const {
        return std::ranges::find(culprits, path) != culprits.end();
    }
};

class Seeded {
public:
    explicit Seeded(std::uint64_t seed) : random_(seed) {}

    double from_to(double least, double most) {
        return std::uniform_real_distribution(least, most)(random_);
    }

    /// The same of powers: as often from 1 to 10 as from 10 to 100.
    double scaled(double least, double most) {
        return std::exp(from_to(std::log(least), std::log(most)));
    }

    bool one_in(int n) { return std::uniform_int_distribution(1, n)(random_) == 1; }

    std::size_t below(std::size_t n) {
        return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_);
    }

private:
    std::mt19937_64 random_;
};

/// Holds that much, and up to a share of it more, time and again.
void add_healthy(World &world, Seeded &seeded, const std::string &path, double size, double part) {
    const double period = seeded.scaled(3, 120);
    const double phase = seeded.from_to(0, period);
    const bool on_cpu = seeded.one_in(3);
    const bool in_steps = seeded.one_in(2);

    world.add(path, on_cpu, [=](double time) {
        double at = std::fmod(time + phase, period) / period;

        at = in_steps ? std::floor(at * 4) / 4 : std::abs(at * 2 - 1);
        return size * (1 + part * at);
    });
}

/// All at their peaks leave 12 to 20 %: by a big server and others.
World healthy_world(Seeded &seeded, double least_share = 0.80, double most_share = 0.88) {
    World world;
    const auto others = 2 + seeded.below(12);
    const double total = seeded.scaled(32, 128) * static_cast<double>(gib);
    const double most = total * seeded.from_to(least_share, most_share) - static_cast<double>(own);
    const double rest = most * seeded.from_to(0.2, 0.5);

    world.total = static_cast<std::uint64_t>(total);
    world.left = total - most - static_cast<double>(own);
    add_healthy(world, seeded, "/system.slice/vllm.service", (most - rest) / 1.05, 0.05);
    for (std::size_t i = 0; i < others; ++i) {
        const double share = rest / static_cast<double>(others);
        const double part = seeded.scaled(0.01, 2);

        add_healthy(world, seeded, "/system.slice/s" + std::to_string(i) + ".service",
                    share / (1 + part), part);
    }
    world.begins = seeded.from_to(300, 600);
    return world;
}

constexpr auto gigabyte = static_cast<double>(gib);

/// Returns the memory of a holder that grows by that much a second until there is none, or it is
/// stopped.
Course taking(const World &world, double rate, double most) {
    return [&world, rate, most](double time) {
        return std::clamp((std::min(time, world.stopped) - world.begins) * rate, 0.0, most);
    };
}

/// More than there is when all others take least.
double enough(const World &world) {
    return static_cast<double>(world.total) * 0.4;
}

// --- what goes wrong on them -------------------------------------------------------------

void leak_into(World &world, Seeded &seeded, const std::string &path, bool on_cpu, double rate) {
    const double base = seeded.one_in(2) ? 0 : seeded.scaled(0.1, 1) * gigabyte;
    const auto taken = taking(world, rate, enough(world));

    world.culprits = {path};
    world.add(path, on_cpu, [=](double time) { return base + taken(time); });
}

constexpr const char *session = "/user.slice/user-1000.slice/session-3.scope";

void leak_of_driver(World &world, Seeded &seeded) {
    leak_into(world, seeded, session, false, seeded.scaled(0.003, 2) * gigabyte);
}

void leak_of_cpu(World &world, Seeded &seeded) {
    leak_into(world, seeded, session, true, seeded.scaled(0.003, 2) * gigabyte);
}

void sudden_load(World &world, Seeded &seeded) {
    leak_into(world, seeded, session, seeded.one_in(2), seeded.scaled(1, 8) * gigabyte);
}

void bomb(World &world, Seeded &seeded, bool of_cgroups) {
    const double size = static_cast<double>(mib) * seeded.scaled(50, 400);
    const std::string top = "/user.slice/user-1001.slice";
    const auto started = taking(world, seeded.scaled(2, 20), enough(world) / size);

    world.culprits = {top};
    world.add(
        top, false, [=](double time) { return std::floor(started(time)) * size; },
        of_cgroups ? HolderKind::tenant : HolderKind::unit);
    for (int i = 0; of_cgroups && i < enough(world) / size; ++i) {
        const std::string path = top + "/run-" + std::to_string(i) + ".scope";

        world.culprits.push_back(path);
        world.add(path, false, [=](double time) { return started(time) >= i + 1 ? size : 0; });
    }
}

void bomb_in_one_cgroup(World &world, Seeded &seeded) {
    bomb(world, seeded, false);
}

void bomb_of_cgroups(World &world, Seeded &seeded) {
    bomb(world, seeded, true);
}

/// It is killed and started again by systemd, as often as it is killed: another cgroup of the
/// same name, and without an account where it takes memory of the CPU's side.
void leaker_that_restarts(World &world, Seeded &seeded) {
    const std::string path = "/system.slice/leaky.service";
    const auto taken =
        taking(world, seeded.scaled(0.2, 2) * gigabyte, static_cast<double>(world.total));

    world.culprits = {path};
    world.restarts = true;
    world.add(path, seeded.one_in(2), taken);
}

/// A user who left, and whose tmpfs stays; the rest is the kernel's. There is no culprit, and
/// no holder would give anything back.
void tmpfs_that_stays(World &world, Seeded &seeded) {
    const double size = static_cast<double>(world.total) * seeded.from_to(0.02, 0.06);
    const auto taken = taking(world, seeded.scaled(0.01, 2) * gigabyte, enough(world));
    const double left = world.begins - seeded.from_to(10, 100);

    world.unseen = [=](double time) { return (time > left ? size : 0) + taken(time); };
    // Even if all of it counted as theirs.
    world.add(
        "/user.slice", true, [=](double time) { return time > left ? size : 0; },
        HolderKind::shared);
    world.add("/user.slice/user-1000.slice/session-1.scope", true,
              [=](double) { return 0.1 * gigabyte; });
}

/// Two services of one slice that are new: a server that takes its memory and then no more, and
/// one that goes on, and holds more of it in the end.
void two_new_siblings(World &world, Seeded &seeded) {
    const double size = static_cast<double>(world.total) * seeded.from_to(0.005, 0.03);
    const double loads_in = seeded.scaled(1, 10);
    const double loads_at = world.begins - seeded.from_to(2, 100);
    const bool on_cpu = seeded.one_in(2);

    world.add("/kubepods.slice/server.service", on_cpu, [=](double time) {
        return std::clamp((time - loads_at) / loads_in, 0.0, 1.0) * size;
    });
    leak_into(world, seeded, "/kubepods.slice/leaker.service", on_cpu,
              seeded.scaled(0.05, 2) * gigabyte);
    world.add(
        "/kubepods.slice", on_cpu,
        [server = world.parts[world.parts.size() - 2].course,
         leaker = world.parts.back().course](double time) { return server(time) + leaker(time); },
        HolderKind::shared);
}

/// A user's cgroup that held something since before the first look, and takes all at once. The
/// groups that it is in hold nothing else.
void leak_in_an_old_cgroup(World &world, Seeded &seeded) {
    const std::string top = "/user.slice/user-1001.slice";
    const double base = static_cast<double>(world.total) * seeded.from_to(0.03, 0.06);
    const auto taken = taking(world, seeded.scaled(0.05, 8) * gigabyte, enough(world));
    const bool on_cpu = seeded.one_in(2);
    const auto held = [=](double time) { return base + taken(time); };

    world.add(top, on_cpu, held, HolderKind::tenant);
    world.add(top + "/user@1001.service", on_cpu, held, HolderKind::tenant);
    world.add(top + "/user@1001.service/x", on_cpu, held);
    world.culprits = {top + "/user@1001.service/x"};
}

/// The same, but it moves its process away before the end, into a cgroup that is made for this:
/// what it took stays where it was taken.
void leak_that_moves(World &world, Seeded &seeded) {
    const std::string x = "/user.slice/user-1001.slice/user@1001.service/x";

    leak_in_an_old_cgroup(world, seeded);

    Part &unit = world.parts.back();
    const Course held = unit.course;
    const bool on_cpu = unit.on_cpu;
    const double moves = world.begins + seeded.from_to(0, 10);
    const auto after = [=](double time) { return time > moves ? held(time) : 0; };
    unit.holder.kind = HolderKind::tenant;
    unit.course = after;
    world.add(x, on_cpu, [=](double time) { return time > moves ? 0 : held(time); });
    world.add(x, on_cpu, after);
    world.parts.back().listed = false;
}

/// A holder of nearly all there is for some seconds, now and then, while no other needs it,
/// and leaks then: to be taken for one of that size. A service is started in between, which holds
/// what it holds honestly.
void leaker_with_peaks(World &world, Seeded &seeded) {
    world = healthy_world(seeded, 0.15, 0.5);

    const auto total = static_cast<double>(world.total);
    const double rate = seeded.scaled(0.02, 1) * gigabyte;
    const double size = total * seeded.from_to(0.03, 0.1);
    const double peak = (world.left - 0.06 * total - size) * seeded.from_to(0.6, 1);
    const double period = seeded.scaled(300, 1800);
    const double lasts = seeded.from_to(3, 10);
    const bool on_cpu = seeded.one_in(2);

    world.begins = seeded.from_to(2500, 6000);
    const double loads_at =
        std::max(world.begins + (world.left - 0.04 * total - size) / rate, 0.0) -
        seeded.from_to(70, 900);
    const auto taken = taking(world, rate, total);
    world.culprits = {session};
    world.add(session, on_cpu, [=, &world](double time) {
        return time < world.begins && std::fmod(time, period) > period - lasts ? peak : taken(time);
    });
    world.add("/system.slice/honest.service", seeded.one_in(2),
              [=](double time) { return std::clamp((time - loads_at) / 60, 0.0, 1.0) * size; });
}

/// A tenant that does whatever a tenant can, in an order that is made up, and then takes all: takes
/// some, holds it, gives it back, in a cgroup, in several at once, in a new one, or moves away
/// from where it took it.
void tenant_at_random(World &world, Seeded &seeded) {
    static constexpr const char *top = "/user.slice/user-1001.slice";

    /// A change of the group's own cgroup number unit at that time; -1: of the memory outside them.
    struct Step {
        double time;
        int unit;
        double from;
        double to;
        double takes; ///< seconds
    };

    world = healthy_world(seeded, 0.15, 0.6);
    world.begins = seeded.from_to(1500, 7000);
    world.has_time = true;

    const auto total = static_cast<double>(world.total);
    const double most = world.left - 0.06 * total;
    const bool on_cpu = seeded.one_in(2);
    std::vector<Step> steps;
    std::vector<double> levels{0};
    double rest = 0;
    const auto sum = [&] { return std::accumulate(levels.begin(), levels.end(), rest); };
    const auto change = [&](double time, std::size_t unit, double to, double takes) {
        steps.push_back({time, static_cast<int>(unit), levels[unit], to, takes});
        levels[unit] = to;
    };
    const auto change_rest = [&](double time, double to) {
        steps.push_back({time, -1, rest, to, 0});
        rest = to;
    };

    for (double time = seeded.from_to(10, 300); time < world.begins - 100;) {
        const std::size_t unit = levels.size() - 1;
        const double takes = seeded.scaled(0.1, 90);
        const double more = std::max(most - sum(), 0.0) * seeded.from_to(0, 1);

        switch (seeded.below(6)) {
        case 0: // take
            change(time, unit, levels[unit] + more, takes);
            break;
        case 1: // take for a moment
            change(time, unit, levels[unit] + more, 0.1);
            time += seeded.from_to(1, 20);
            change(time, unit, levels[unit] - more, 0.1);
            break;
        case 2: // give back
            change(time, seeded.below(levels.size()), 0, takes);
            break;
        case 3: // fork into new cgroups
            for (std::size_t n = 1 + seeded.below(4); n > 0 && levels.size() < 40; --n) {
                levels.push_back(0);
                change(time, levels.size() - 1, more / 5, takes);
            }
            break;
        case 4: // move away from what was taken
            change_rest(time, rest + levels[unit]);
            change(time, unit, 0, 0);
            levels.push_back(0);
            break;
        default: // the ended unit's remainder is freed
            change_rest(time, 0);
            break;
        }
        time += takes + seeded.scaled(1, 900);
    }
    // And all of it, in up to four.
    const std::size_t units = 1 + seeded.below(4);
    const double rate = seeded.scaled(0.05, 2) * gigabyte / static_cast<double>(units);
    const auto taken = taking(world, rate, total);
    const auto course_of = [&](int unit) {
        std::vector<Step> its;

        std::ranges::copy_if(steps, std::back_inserter(its),
                             [unit](const Step &step) { return step.unit == unit; });
        const bool goes_on =
            unit >= static_cast<int>(levels.size() - std::min(units, levels.size()));
        return [=](double time) {
            double held = 0;

            for (const Step &step : its) {
                if (step.time > time)
                    break;
                const double part =
                    step.takes == 0 ? 1 : std::clamp((time - step.time) / step.takes, 0.0, 1.0);
                held = step.from + (step.to - step.from) * part;
            }
            return held + (goes_on ? taken(time) : 0);
        };
    };
    std::vector<Course> courses;
    courses.reserve(levels.size());
    for (int unit = 0; unit < static_cast<int>(levels.size()); ++unit)
        courses.emplace_back(course_of(unit));
    const Course left = course_of(-1);

    world.culprits = {top};
    world.add(
        top, on_cpu,
        [=](double time) {
            double all = left(time);

            for (const Course &course : courses)
                all += course(time);
            return all;
        },
        HolderKind::tenant);
    for (std::size_t unit = 0; unit < courses.size(); ++unit) {
        const std::string path = std::string(top) + "/run-" + std::to_string(unit) + ".scope";

        world.culprits.push_back(path);
        world.add(path, on_cpu, courses[unit]);
    }
    world.add(top, on_cpu, left);
    world.parts.back().listed = false;
}

/// The container runtime grows, too, up to twice as fast as the container that is to blame.
void runtime_that_grows(World &world, Seeded &seeded) {
    static constexpr const char *runtimes[] = {"docker", "containerd", "crio", "kubelet"};
    const std::string runtime =
        std::string("/system.slice/") + runtimes[seeded.below(4)] + ".service";
    const double rate = seeded.scaled(0.05, 1) * gigabyte;

    leak_into(world, seeded, "/system.slice/docker-" + std::string(64, 'a') + ".scope", true, rate);
    world.add(runtime, true, taking(world, rate * seeded.scaled(0.5, 2), enough(world)));
}

// --- and what the guard does about it ------------------------------------------------------

/// Runs a guard on it; what it did, and when.
struct Run {
    std::vector<std::pair<double, Action>> done;
    double low_at = INFINITY; ///< time at which the floor was reached for good, to a millisecond
    bool dips = false;        ///< it was reached before
    bool exhausted = false;
};

/// Seconds from what is due to the step.
constexpr double in_time = 0.2;

double delay_of(const GuardPolicy &policy) {
    return static_cast<double>(policy.for_ns) / 1e9;
}

/// Finds the time between two at which less than the floor was available first.
double crossing(const World &world, double floor, double above, double below) {
    while (below - above > 0.001) {
        const double middle = (below + above) / 2;

        (static_cast<double>(world.available(middle)) < floor ? below : above) = middle;
    }
    return above;
}

void note(Run &run, World &world, const std::vector<Action> &actions, double now) {
    for (const Action &action : actions) {
        if (action.again || action.nobody)
            continue;
        run.done.emplace_back(now, action);
        if (action.undo || !world.is_right(action.path()))
            continue;
        if (!world.restarts) {
            world.stopped = std::min(world.stopped, now);
            continue;
        }
        world.begins = now + 2;
        ++world.parts.back().holder.id;
    }
}

Run run(World &world, const GuardPolicy &policy, double until = 12000) {
    Guard guard(policy, world.total, "/self");
    const auto floor = static_cast<double>(policy.floor->of(world.total));
    const Guard::Time start(1000s);
    Run run;
    double last = 0;
    double low_since = INFINITY;

    for (double now = 0; now < until;) {
        const std::uint64_t available = world.available(now);

        if (static_cast<double>(available) >= floor)
            low_since = INFINITY;
        else if (low_since == INFINITY)
            low_since = crossing(world, floor, last, now);
        // Memory that runs out before the policy lets the guard act is the policy's affair.
        run.exhausted =
            run.exhausted || (available == 0 && now > low_since + delay_of(policy) + in_time);
        if (run.done.empty() && static_cast<double>(available) >= floor) {
            run.dips = run.dips || run.low_at < INFINITY;
            run.low_at = INFINITY;
        } else if (run.low_at == INFINITY) {
            run.low_at = crossing(world, floor, last, now);
        }
        last = now;
        // Long enough for another step, and to find no culprit.
        if (world.restarts ? run.done.size() == 3
                           : !run.done.empty() && now > run.done.front().first + 60)
            break;
        if (world.culprits.empty() && now > run.low_at + 60)
            break;
        const auto time =
            start + std::chrono::duration_cast<Guard::Duration>(std::chrono::duration<double>(now));
        if (guard.read({time, available, 0, {}}))
            note(run, world, guard.decide(world.holders(now)), now);
        now = std::chrono::duration<double>(guard.due() - start).count();
    }
    return run;
}

GuardPolicy seeded_policy(GuardStep step = GuardStep::freeze) {
    GuardPolicy policy;

    policy.floor = Amount{.bytes = 0, .percent = 4};
    policy.for_ns = 300'000'000;
    policy.steps = {step};
    return policy;
}

/// Another seed can be given, to look for what these have not: a number, or "random", which is
/// printed.
std::uint64_t seed_of(int i) {
    static const std::uint64_t base = [] {
        const char *given = std::getenv("UMACCT_SEED");
        const bool random = given != nullptr && std::string(given) == "random";
        const std::uint64_t seed = random             ? std::random_device()() % 1'000'000
                                   : given != nullptr ? std::strtoull(given, nullptr, 0)
                                                      : 1;

        if (given != nullptr)
            printf("UMACCT_SEED=%lu\n", static_cast<unsigned long>(seed));
        return seed * 1'000'000;
    }();

    return base + static_cast<std::uint64_t>(i);
}

/// Whether all that was done was done to the right one, in time; if not, why.
std::string judge(const World &world, const Run &did, double &late) {
    for (const auto &[time, action] : did.done) {
        if (!action.undo && !world.is_right(action.path()))
            return action.text();
    }
    if (world.culprits.empty())
        return did.low_at < INFINITY ? "" : "the floor was never reached";
    if (did.done.empty())
        return "nothing was done";
    late = did.done.front().first - did.low_at - delay_of(seeded_policy());
    if (late > in_time && !world.has_time)
        return "it took " + std::to_string(late) + " s";
    if (world.restarts && (did.exhausted || did.done.size() < 3))
        return "one that began anew was not killed again";
    return "";
}

struct Kind {
    const char *name;
    void (*make)(World &world, Seeded &seeded);
};

constexpr Kind kinds[] = {
    {"LeakOfTheDriver", leak_of_driver},
    {"LeakOfTheCpu", leak_of_cpu},
    {"SuddenLoad", sudden_load},
    {"BombInOneCgroup", bomb_in_one_cgroup},
    {"BombOfCgroups", bomb_of_cgroups},
    {"LeakerThatRestarts", leaker_that_restarts},
    {"TmpfsThatStays", tmpfs_that_stays},
    {"TwoNewSiblings", two_new_siblings},
    {"RuntimeThatGrows", runtime_that_grows},
    {"LeakInAnOldCgroup", leak_in_an_old_cgroup},
    {"LeakThatMoves", leak_that_moves},
    {"LeakerWithPeaks", leaker_with_peaks},
    {"TenantAtRandom", tenant_at_random},
};

/// Number of machines of each kind; for the bars, 10,000 (BARS=1).
int each_kind() {
    return std::getenv("BARS") != nullptr ? 10'000 : 600;
}

class GuardSeeded : public testing::TestWithParam<std::size_t> {};

TEST_P(GuardSeeded, NobodyButTheRightOneIsTouched) {
    const Kind &kind = kinds[GetParam()];
    const int each = each_kind();
    double slowest = 0;
    int right = 0;

    for (int i = 0; i < each; ++i) {
        const std::uint64_t seed = seed_of(static_cast<int>(GetParam()) * each + i);
        Seeded seeded(seed);
        World world = healthy_world(seeded);
        double late = 0;

        kind.make(world, seeded);
        const std::string wrong = judge(
            world, run(world, seeded_policy(world.restarts ? GuardStep::kill : GuardStep::freeze)),
            late);
        EXPECT_EQ(wrong, "") << kind.name << ", seed " << seed;
        right += wrong.empty() ? 1 : 0;
        slowest = std::max(slowest, late);
    }
    printf("%-20s right %4d of %d, within %3.0f ms\n", kind.name, right, each, slowest * 1000);
}

INSTANTIATE_TEST_SUITE_P(All, GuardSeeded, testing::Range(std::size_t{0}, std::size(kinds)),
                         [](const auto &at) { return kinds[at.param].name; });

TEST(GuardCalm, InAnHourOfHealthyChurnNobodyIsTouched) {
    int dips = 0;

    for (int i = 0; i < 20; ++i) {
        SCOPED_TRACE("seed " + std::to_string(seed_of(i)));
        Seeded seeded(seed_of(i));
        World world = healthy_world(seeded);
        const double period = seeded.from_to(20, 60);
        const double lasts = seeded.from_to(0.1, 0.28);
        const double size = static_cast<double>(world.total) * 0.25;

        // Now and then a holder takes all there is, for a moment.
        world.add("/user.slice/user-1000.slice/session-1.scope", false, [=](double time) {
            return std::fmod(time, period) < lasts ? size : 0.1 * gigabyte;
        });
        world.culprits = {"nobody"};
        const auto did = run(world, seeded_policy(), 3600);
        dips += did.dips ? 1 : 0;
        EXPECT_EQ(did.done.size(), 0U) << did.done.front().second.text();
    }
    EXPECT_GT(dips, 0);
}

} // namespace
} // namespace umacct
