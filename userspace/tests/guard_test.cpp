// SPDX-License-Identifier: GPL-2.0-or-later
/// The guard's decisions: first one by one, then over seeded machines on which something goes
/// wrong, or nothing does.
#include "daemon/guard.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <random>
#include <set>

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
            .whole = true};
}

std::string words(const std::vector<Action> &actions) {
    std::string text;

    for (const Action &action : actions)
        text += (text.empty() ? "" : ", ") + std::string(action.undo ? "undo " : "") +
                std::string(name_of(action.step)) + ' ' + action.path();
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
            if (!guard_.read({now_, available, reserve_, waited_us_}))
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
    EXPECT_EQ(after(20s, 4 * gib), ""); // it is dying; nobody else has to
    std::erase_if(holders_, [](const Holder &h) { return h.path == "/leaker"; });
    EXPECT_EQ(after(20s, 30 * gib), "undo freeze /leaker, undo reserve ");
    EXPECT_EQ(reserve_, gib);
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
    at("/server").driver = 61 * gib; // which may be nothing
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
        holders_.push_back(holder("/docker/" + std::to_string(i), 600 * mib));
        available = std::max(available - 600 * mib, 2 * gib);
        after(1s, available);
        for (const Action &action : last_)
            frozen.insert(action.path());
    }
    EXPECT_GT(frozen.size(), 1U);
    EXPECT_FALSE(frozen.contains("/server") || frozen.contains("/leaker"));
}

TEST_F(GuardTest, NobodyGrewSoNobodyIsTouched) {
    after(60s, 30 * gib);
    EXPECT_EQ(after(60s, 4 * gib), "reserve ");
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
    at("/small").driver = 400 * mib;
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

        group.whole = false;
        holders_.push_back(group);
        for (int i = 0; i < 100; ++i)
            holders_.push_back(holder("/user/bomb/" + std::to_string(i), 250 * mib));
        at("/user/bomb").driver = 25000 * mib;
    };

    after(60s, 30 * gib);
    bomb();
    EXPECT_EQ(after(600ms, 4 * gib), "reclaim /user/bomb");

    // What was there before is not done away with because of what is beside it.
    holders_.resize(2);
    use(policy());
    holders_.push_back(holder("/user/bomb/old", 10 * gib));
    holders_.push_back(holder("/user/bomb", 10 * gib));
    holders_.back().whole = false;
    after(60s, 30 * gib);
    holders_.pop_back();
    bomb();
    at("/user/bomb").driver += 10 * gib;
    after(600ms, 4 * gib);
    EXPECT_EQ(last_.front().path().substr(0, 11), "/user/bomb/");
    EXPECT_NE(last_.front().path(), "/user/bomb/old");
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

TEST_F(GuardTest, AnothersReserveIsLeftAlone) {
    after(60s, 30 * gib);
    EXPECT_EQ(after(60s, 4 * gib), "reserve ");
    EXPECT_EQ(reserve_, 5 * gib);
    reserve_ = 2 * gib; // somebody set it
    EXPECT_EQ(after(100ms, 4 * gib), "");
}

// --- seeded machines -----------------------------------------------------------------

/// The machine's own.
constexpr std::uint64_t own = 2 * gib;

/// What a cgroup holds at a time, in seconds.
using Course = std::function<Holder(double)>;

struct World {
    std::uint64_t total = 0;
    std::vector<Course> courses;
    std::vector<std::string> culprits; ///< any of these is right
    double stopped = INFINITY;         ///< when the culprit was frozen
    double begins = 0;

    std::vector<Holder> holders(double time) const {
        std::vector<Holder> all;

        for (const Course &course : courses) {
            Holder each = course(time);

            if (each.held() > 0)
                all.push_back(std::move(each));
        }
        return all;
    }

    std::uint64_t available(double time) const {
        std::uint64_t held = own;

        for (const Holder &each : holders(time))
            held += each.whole ? each.held() : 0;
        return total - std::min(held, total);
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

std::uint64_t bytes(double of) {
    return static_cast<std::uint64_t>(std::max(of, 0.0));
}

/// Holds so much, and up to a part of it more, time and again.
Course healthy(Seeded &seeded, const std::string &path, double size, double part) {
    const double period = seeded.scaled(3, 120);
    const double phase = seeded.from_to(0, period);
    const bool on_cpu = seeded.one_in(3);
    const bool in_steps = seeded.one_in(2);

    return [=](double time) {
        double at = std::fmod(time + phase, period) / period;

        at = in_steps ? std::floor(at * 4) / 4 : std::abs(at * 2 - 1);
        const std::uint64_t held = bytes(size * (1 + part * at));
        return on_cpu ? holder(path, 0, held) : holder(path, held);
    };
}

/// When all take what they ever take, 12 to 20 % is left: by a big server and others.
World healthy_world(Seeded &seeded) {
    World world;
    const auto others = 2 + seeded.below(12);
    const double total = seeded.scaled(32, 128) * static_cast<double>(gib);
    const double most = total * seeded.from_to(0.80, 0.88) - static_cast<double>(own);
    double rest = most * seeded.from_to(0.2, 0.5);

    world.total = bytes(total);
    world.courses.emplace_back(
        healthy(seeded, "/system.slice/vllm.service", (most - rest) / 1.05, 0.05));
    for (std::size_t i = 0; i < others; ++i) {
        const double share = rest / static_cast<double>(others);
        const double part = seeded.scaled(0.01, 2);

        world.courses.emplace_back(healthy(
            seeded, "/system.slice/s" + std::to_string(i) + ".service", share / (1 + part), part));
    }
    return world;
}

/// How much somebody took who takes so much in a second, until there is none, or he is frozen.
std::function<double(double)> taking(const World &world, double rate, double from, double most) {
    return [&world, rate, from, most](double time) {
        return std::clamp((std::min(time, world.stopped) - from) * rate, 0.0, most);
    };
}

void add_leak(World &world, Seeded &seeded, bool on_cpu, bool sudden) {
    const auto g = static_cast<double>(gib);
    const double rate = sudden ? seeded.scaled(1, 8) * g : seeded.scaled(0.003, 2) * g;
    const double base = seeded.one_in(2) ? 0 : seeded.scaled(0.1, 1) * g;
    const std::string path = "/user.slice/user-1000.slice/session-3.scope";
    const auto taken = taking(world, rate, world.begins, static_cast<double>(world.total) * 0.2);

    world.culprits = {path};
    world.courses.emplace_back([=](double time) {
        const std::uint64_t held = bytes(base + taken(time));

        return on_cpu ? holder(path, 0, held) : holder(path, held);
    });
}

void add_bomb(World &world, Seeded &seeded, bool of_cgroups) {
    const auto size = static_cast<double>(mib) * seeded.scaled(50, 400);
    const double each_second = seeded.scaled(2, 20);
    const std::string top = "/user.slice/user-1001.slice";
    const auto started =
        taking(world, each_second, world.begins, static_cast<double>(world.total) * 0.2 / size);

    world.culprits = {top};
    if (!of_cgroups) {
        world.courses.emplace_back(
            [=](double time) { return holder(top, bytes(std::floor(started(time)) * size)); });
        return;
    }
    world.courses.emplace_back([=](double time) {
        Holder group = holder(top, bytes(std::floor(started(time)) * size));

        group.whole = false;
        return group;
    });
    for (int i = 0; i < static_cast<double>(world.total) * 0.2 / size; ++i) {
        const std::string path = top + "/run-" + std::to_string(i) + ".scope";

        world.culprits.push_back(path);
        world.courses.emplace_back(
            [=](double time) { return holder(path, started(time) > i + 1 ? bytes(size) : 0); });
    }
}

/// Runs a guard on it; what it did, and when.
struct Run {
    std::vector<std::pair<double, Action>> done;
    double low_at = INFINITY; ///< when the floor was reached for good, to a millisecond
    bool dips = false;        ///< it was reached before
};

/// Between two times: when less than the floor could be had first.
double crossing(const World &world, double floor, double above, double below) {
    while (below - above > 0.001) {
        const double middle = (below + above) / 2;

        (static_cast<double>(world.available(middle)) < floor ? below : above) = middle;
    }
    return above;
}

void note(Run &run, World &world, const std::vector<Action> &actions, double now) {
    for (const Action &action : actions) {
        if (action.again)
            continue;
        run.done.emplace_back(now, action);
        if (action.step == GuardStep::freeze && !action.undo &&
            std::ranges::find(world.culprits, action.path()) != world.culprits.end())
            world.stopped = std::min(world.stopped, now);
    }
}

Run run(World &world, const GuardPolicy &policy, double until = 9000) {
    Guard guard(policy, world.total, "/self");
    const auto floor = static_cast<double>(policy.floor->of(world.total));
    const Guard::Time start(1000s);
    Run run;
    double last = 0;

    for (double now = 0; now < until;) {
        const std::uint64_t available = world.available(now);

        if (run.done.empty() && static_cast<double>(available) >= floor) {
            run.dips = run.dips || run.low_at < INFINITY;
            run.low_at = INFINITY;
        } else if (run.low_at == INFINITY) {
            run.low_at = crossing(world, floor, last, now);
        }
        last = now;
        // Long enough for another step.
        if (!run.done.empty() && now > run.done.front().first + 60)
            break;
        const auto time =
            start + std::chrono::duration_cast<Guard::Duration>(std::chrono::duration<double>(now));
        if (guard.read({time, available, 0, {}}))
            note(run, world, guard.decide(world.holders(now)), now);
        now = std::chrono::duration<double>(guard.due() - start).count();
    }
    return run;
}

GuardPolicy seeded_policy() {
    GuardPolicy policy;

    policy.floor = Amount{.bytes = 0, .percent = 4};
    policy.for_ns = 300'000'000;
    policy.steps = {GuardStep::freeze};
    return policy;
}

/// Another seed can be given, to look for what these have not.
std::uint64_t seed_of(int i) {
    const char *given = std::getenv("UMACCT_SEED");

    return (given != nullptr ? std::strtoull(given, nullptr, 0) : 1) * 1000 +
           static_cast<std::uint64_t>(i);
}

/// Whether all that was done was done to the right one, in time; if not, why.
std::string judge(const World &world, const Run &did, double &late) {
    if (did.done.empty())
        return "nothing was done";
    for (const auto &[time, action] : did.done) {
        if (std::ranges::find(world.culprits, action.path()) == world.culprits.end())
            return action.text();
    }
    late = did.done.front().first - did.low_at - static_cast<double>(seeded_policy().for_ns) / 1e9;
    return late <= 0.2 ? "" : "it took " + std::to_string(late) + " s";
}

TEST(GuardSeeded, TheRightOneIsChosenAHundredTimes) {
    static constexpr const char *kinds[] = {"a leak through the driver", "a sudden load",
                                            "a leak on the CPU's side", "a fork bomb in one cgroup",
                                            "a fork bomb of cgroups"};

    for (int kind = 0; kind < 5; ++kind) {
        double slowest = 0;
        int right = 0;

        for (int i = kind; i < 100; i += 5) {
            Seeded seeded(seed_of(i));
            World world = healthy_world(seeded);
            double late = 0;

            world.begins = seeded.from_to(60, 600);
            if (kind < 3)
                add_leak(world, seeded, kind == 2, kind == 1);
            else
                add_bomb(world, seeded, kind == 4);

            const std::string wrong = judge(world, run(world, seeded_policy()), late);
            EXPECT_EQ(wrong, "") << kinds[kind] << ", seed " << seed_of(i);
            right += wrong.empty() ? 1 : 0;
            slowest = std::max(slowest, late);
        }
        printf("%-28s right %3d of 20, within %3.0f ms\n", kinds[kind], right, slowest * 1000);
    }
}

TEST(GuardSeeded, InAnHourOfHealthyChurnNobodyIs) {
    int dips = 0;

    for (int i = 0; i < 20; ++i) {
        SCOPED_TRACE("seed " + std::to_string(seed_of(i)));
        Seeded seeded(seed_of(i));
        World world = healthy_world(seeded);
        const double period = seeded.from_to(20, 60);
        const double lasts = seeded.from_to(0.1, 0.28);
        const double size = static_cast<double>(world.total) * 0.25;

        // Now and then somebody takes all there is, for a moment.
        world.courses.emplace_back([=](double time) {
            return holder("/user.slice/user-1000.slice/session-1.scope",
                          std::fmod(time, period) < lasts ? bytes(size) : 100 * mib);
        });
        const auto did = run(world, seeded_policy(), 3600);
        dips += did.dips ? 1 : 0;
        EXPECT_EQ(did.done.size(), 0U) << did.done.front().second.text();
    }
    EXPECT_GT(dips, 0);
}

} // namespace
} // namespace umacct
