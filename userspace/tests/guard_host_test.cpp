// SPDX-License-Identifier: GPL-2.0-or-later
/// The guard's reads and writes, on a sandbox's cgroups.
#include "guard/guard_host.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "guard/guard_thread.h"
#include "lib/host/cgroup_tree.h"
#include "lib/host/umacctd.h"
#include "lib/memory/strain.h"
#include "lib/policy/policy.h"
#include "tests/fake_module.h"
#include "tests/sandbox.h"

namespace umacct {
namespace {

constexpr std::uint64_t mib = 1ULL << 20;
constexpr std::uint64_t gib = 1ULL << 30;
constexpr const char *service = "/system.slice/llm.service";

class GuardHostTest : public testing::Test {
protected:
    GuardHostTest() {
        for (const char *path : {"/system.slice", service, "/system.slice/sshd.service"})
            cgroup(path);
        fake_.status.available = 30 * gib;
        fake_.status.reserve = gib;
        fake_.on_change = [this] {
            if (const auto reserve =
                    test::attribute(fake_.changes.back().attributes, UMACCT_A_STATUS_RESERVE))
                fake_.status.reserve = *reserve;
        };
    }

    /// Adds a cgroup with the files that the guard writes to.
    void cgroup(const std::string &path) {
        const std::uint64_t id = sandbox_.add_cgroup(path);

        for (const char *file : {"cgroup.freeze", "cgroup.kill", "memory.reclaim"})
            sandbox_.write(sandbox_.cgroup_mount() / path.substr(1) / file, "");
        Account account;
        account.id = id;
        account.path = path;
        fake_.accounts.push_back(account);
    }

    /// Sets the controllers that its children get.
    void give_to_user(const std::string &path, const std::string &controllers) const {
        const auto folder = sandbox_.cgroup_mount() / path.substr(1);

        sandbox_.write(folder / "memory.current", std::to_string(gib) + "\n");
        sandbox_.write(folder / "cgroup.subtree_control", controllers);
        ASSERT_EQ(chown(folder.c_str(), 1000, 1000), 0);
    }

    Account &account(const std::string &path) {
        return *std::ranges::find_if(fake_.accounts,
                                     [&](const Account &each) { return each.path == path; });
    }

    std::string file(const std::string &path, const char *name) const {
        std::ifstream in(sandbox_.cgroup_mount() / path.substr(1) / name);
        std::string text;

        std::getline(in, text);
        return text;
    }

    static bool eventually(const auto &is_so) {
        for (int i = 0; i < 1000 && !is_so(); ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        return is_so();
    }

    bool has_state() const {
        return std::filesystem::exists(machine_.root() / "run/umacctd/guard");
    }

    static GuardPolicy policy(std::vector<GuardStep> steps) {
        GuardPolicy policy;

        policy.floor = Amount{.bytes = 4 * gib, .percent = {}};
        policy.for_ns = 0;
        policy.wait_ns = 0;
        policy.release_ns = 0;
        policy.steps = std::move(steps);
        return policy;
    }

    /// Calm, and then the service takes nearly all.
    void leak(const GuardPolicy &with) {
        host_.set(with, gib);
        host_.run();
        account(service).usage = 20 * gib;
        fake_.status.available = 3 * gib;
        host_.run();
    }

    test::Sandbox sandbox_;
    test::FakeModule fake_;
    Connection connection_{[this] { return fake_.connect(); }};
    Machine machine_{sandbox_.proc(), sandbox_.proc().parent_path()};
    std::vector<std::string> told_;
    GuardHost host_{connection_, machine_,
                    [this](const Json &, const std::string &line, bool) { told_.push_back(line); }};
};

TEST_F(GuardHostTest, WhatAContainersRootSaysOfItsCgroupIsATenantsWord) {
    const std::string container = "/system.slice/docker-" + std::string(64, 'a') + ".scope";
    const auto attribute = [&](const std::string &path, const char *name, const char *value) {
        ASSERT_EQ(setxattr((sandbox_.cgroup_mount() / path.substr(1)).c_str(), name, value,
                           std::strlen(value), 0),
                  0)
            << name;
    };
    const auto preference = [&](const std::string &path) {
        for (const Holder &each : host_.holders()) {
            if (each.path == path)
                return each.preference;
        }
        return Preference::avoid;
    };

    cgroup(container);
    account(container).usage = gib;
    account(service).usage = gib;
    attribute(container, "user.oomd_omit", "1");
    attribute(service, "user.oomd_omit", "1");
    EXPECT_EQ(preference(container), Preference::none);
    EXPECT_EQ(preference(service), Preference::omit) << "systemd wrote it";
    attribute(container, "trusted.oomd_omit", "1");
    EXPECT_EQ(preference(container), Preference::omit) << "this machine's root wrote it";
}

TEST_F(GuardHostTest, ASoftLimitThatAContainerAskedForSavesItFromNothing) {
    const std::string container = "/system.slice/docker-" + std::string(64, 'a') + ".scope";
    const OrderBook book(machine_.cgroups(), machine_.root());

    cgroup(container);
    account(container).soft = 100 * gib;
    account(service).soft = 100 * gib;
    ASSERT_EQ(book.keep_container(container, {.asked = {.soft = 100 * gib}}), 0);
    host_.set(policy({GuardStep::freeze}), gib);
    host_.run();
    account(container).usage = 20 * gib;
    account(service).usage = 25 * gib;
    fake_.status.available = 3 * gib;
    host_.run();
    EXPECT_EQ(file(container, "cgroup.freeze"), "1");
    EXPECT_EQ(file(service, "cgroup.freeze"), "") << "its soft limit is the administrator's word";
    for (const Holder &each : host_.holders())
        EXPECT_EQ(each.soft.has_value(), each.path == service) << each.path;
    ASSERT_EQ(book.keep_person(container, {.asked = {.soft = 100 * gib}}), 0);
    for (const Holder &each : host_.holders())
        EXPECT_TRUE(each.soft || each.path != container) << "and so is this";
}

TEST_F(GuardHostTest, WhereNobodyIsToBlameItSaysWhoWaitsAndWhoHoldsThePieces) {
    const auto pressure = [&](const std::string &path, double percent) {
        sandbox_.write(sandbox_.cgroup_mount() / path.substr(1) / "memory.pressure",
                       fmt::format("some avg10={0:.2f} avg60={0:.2f} avg300=0.00 total=7\n"
                                   "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
                                   percent));
    };
    const auto machine_waited = [&](std::uint64_t us) {
        sandbox_.write("proc/pressure/memory",
                       fmt::format("some avg10=98.00 avg60=98.00 avg300=0.00 total={}\n"
                                   "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
                                   us));
    };
    GuardPolicy with = policy({GuardStep::reserve, GuardStep::kill});
    Client few;
    Client many;

    with.pressure = 20;
    pressure("/system.slice", 97);
    pressure(service, 95.5);
    pressure("/system.slice/sshd.service", 3);
    few.path = "/system.slice/sshd.service";
    few.records = 10;
    few.usage = 50 * gib;
    many.path = service;
    many.records = 1'000'000;
    many.usage = 4 * gib;
    fake_.clients = {few, many};
    sandbox_.write("proc/zoneinfo", "Node 0, zone   Normal\n  pages free 262144\n        low 0\n"
                                    "        managed 262144\n        protection: (0, 0)\n");
    sandbox_.write("proc/buddyinfo", "Node 0, zone   Normal 260096 0 0 0 0 0 0 0 0 4 0\n");
    host_.set(with, gib);
    machine_waited(0);
    host_.run();
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    machine_waited(60'000'000); // all of the time, however long it was
    host_.run();
    ASSERT_EQ(told_.size(), 1U);
    EXPECT_NE(told_[0].find("tasks wait although memory is available; no cgroup to act against"),
              std::string::npos)
        << told_[0];
    EXPECT_NE(told_[0].find("; /system.slice/llm.service waits most, 95.50% of the time"),
              std::string::npos)
        << told_[0];
    EXPECT_NE(told_[0].find("llm.service holds most pieces of driver memory, 4.00 GiB in 1000000"),
              std::string::npos)
        << told_[0];
    EXPECT_NE(told_[0].find(" lie in blocks of 2.00 MiB"), std::string::npos) << told_[0];
    EXPECT_TRUE(fake_.changes.empty());
    EXPECT_EQ(file(service, "cgroup.kill"), "");
}

TEST_F(GuardHostTest, KnowsWhatEachHoldsOnce) {
    cgroup("/system.slice/llm.service/inner");
    cgroup("/user.slice");
    cgroup("/user.slice/user-1000.slice");
    cgroup("/user.slice/user-1000.slice/user@1000.service");
    cgroup("/user.slice/user-1000.slice/user@1000.service/app.slice");
    cgroup("/user.slice/user-1000.slice/user@1000.service/app.slice/a.service");
    // A user makes these by hand: processes are in the outer ones, beside a cgroup or as if in a
    // slice.
    cgroup("/user.slice/user-1000.slice/user@1000.service/x");
    cgroup("/user.slice/user-1000.slice/user@1000.service/x/y");
    cgroup("/user.slice/user-1000.slice/user@1000.service/evil.slice");
    give_to_user("/user.slice/user-1000.slice/user@1000.service", "cpu memory pids\n");
    give_to_user("/user.slice/user-1000.slice/user@1000.service/app.slice", "memory pids\n");
    give_to_user("/user.slice/user-1000.slice/user@1000.service/x", "");
    give_to_user("/user.slice/user-1000.slice/user@1000.service/evil.slice", "");
    Account &llm = account(service);
    llm.usage = 10 * gib;
    llm.charged = 4 * gib;
    llm.memory_current = 7 * gib; // charged memory and page cache included
    sandbox_.write(sandbox_.cgroup_mount() / "system.slice/llm.service/memory.stat",
                   "anon 1\nfile 999999999\nactive_file 1073741824\ninactive_file 1073741824\n"
                   "slab_reclaimable 0\nshmem 536870912\n");

    const std::vector<Holder> holders = host_.holders();
    const auto of = [&](const std::string &path) {
        const auto found =
            std::ranges::find_if(holders, [&](const Holder &each) { return each.path == path; });

        return found == holders.end() ? Holder{} : *found;
    };
    EXPECT_EQ(of(service).driver, 10 * gib);
    EXPECT_EQ(of(service).other, gib / 2) << "without what is charged, page cache and tmpfs";
    EXPECT_EQ(of(service).kind, HolderKind::unit);
    EXPECT_EQ(of(service).id, account(service).id);
    EXPECT_EQ(of("/system.slice/llm.service/inner").path, ""); // not looked into
    const std::string user = "/user.slice/user-1000.slice";
    const std::string manager = user + "/user@1000.service";
    for (const std::string shared : {"/", "/system.slice", "/user.slice"})
        EXPECT_EQ(of(shared).path, "") << shared << " is of several tenants";
    EXPECT_EQ(of(user).kind, HolderKind::tenant);
    EXPECT_EQ(of(manager).kind, HolderKind::tenant);
    EXPECT_EQ(of(manager + "/app.slice").kind, HolderKind::tenant);
    EXPECT_EQ(of(manager + "/app.slice/a.service").kind, HolderKind::unit);
    EXPECT_EQ(of(manager + "/x").kind, HolderKind::unit) << "whatever is below it";
    EXPECT_EQ(of(manager + "/x/y").path, "");
    EXPECT_EQ(of(manager + "/evil.slice").kind, HolderKind::unit) << "whatever it is called";
}

TEST_F(GuardHostTest, KnowsWhoseMemoryIsOnSwap) {
    const auto folder = sandbox_.cgroup_mount() / "system.slice/llm.service";
    const auto swap = [this] {
        const auto holders = host_.holders();
        const auto found =
            std::ranges::find_if(holders, [](const Holder &each) { return each.path == service; });

        return found == holders.end() ? 0 : found->swap;
    };

    sandbox_.write(folder / "memory.current", "1000\n");
    sandbox_.write(folder / "memory.swap.current", std::to_string(9 * gib) + "\n");
    EXPECT_EQ(swap(), 0U) << "no swap is in use";
    sandbox_.write("proc/meminfo", "MemTotal: 16777216 kB\nSwapTotal: 20971520 kB\n"
                                   "SwapFree: 1024 kB\n");
    EXPECT_EQ(swap(), 9 * gib) << "however little it has in memory";
    sandbox_.write(folder / "memory.current", std::to_string(6 * gib) + "\n");
    sandbox_.write(folder / "memory.stat", "anon 6442450944\nswapcached 5368709120\n");
    EXPECT_EQ(swap(), 4 * gib) << "what is in memory again, and still on swap, is not twice its";
}

TEST_F(GuardHostTest, WithoutTheMemoryControllerATenantsProcessesMakeTheUnit) {
    const std::string manager = "/user.slice/user-1000.slice/user@1000.service";
    const auto kind = [this](const std::string &path) {
        for (const Holder &each : host_.holders()) {
            if (each.path == path)
                return each.kind;
        }
        return HolderKind::shared;
    };

    for (const std::string &path : {manager, manager + "/x", manager + "/x/y"}) {
        sandbox_.add_cgroup(path);
        give_to_user(path, "cpu pids\n");
        std::filesystem::remove(sandbox_.cgroup_mount() / path.substr(1) / "memory.current");
    }
    sandbox_.write(sandbox_.cgroup_mount() / manager.substr(1) / "x/cgroup.procs", "7\n");
    EXPECT_EQ(kind(manager), HolderKind::tenant);
    EXPECT_EQ(kind(manager + "/x"), HolderKind::unit);
}

TEST_F(GuardHostTest, IdentityIsTheCgroupsOwnAlsoWithoutAnAccount) {
    const std::string path = "/system.slice/leaky.service";
    const auto id = [&] {
        for (const Holder &each : host_.holders()) {
            if (each.path == path)
                return each.id;
        }
        return std::uint64_t{0};
    };

    const std::uint64_t first = sandbox_.add_cgroup(path);
    EXPECT_EQ(id(), first);
    // Kept, so that its number isn't given out again: the kernel does so by itself.
    std::filesystem::rename(sandbox_.cgroup_mount() / path.substr(1), sandbox_.root() / "removed");
    EXPECT_EQ(id(), 0U);
    const std::uint64_t second = sandbox_.add_cgroup(path);
    EXPECT_NE(first, second);
    EXPECT_EQ(id(), second);
}

TEST_F(GuardHostTest, WhatNoProcessIsInIsNobodysToDieFor) {
    account(service).usage = gib;
    sandbox_.write(sandbox_.cgroup_mount() / "system.slice/llm.service/cgroup.events",
                   "populated 0\nfrozen 0\n");
    EXPECT_TRUE(std::ranges::all_of(
        host_.holders(), [](const Holder &each) { return each.path != service || each.empty; }));
    leak(policy({GuardStep::freeze}));
    EXPECT_EQ(file(service, "cgroup.freeze"), "");
}

TEST_F(GuardHostTest, WhatATenantTookStaysItsOwnWhereverItsProcessesGo) {
    const std::string manager = "/user.slice/user-1000.slice/user@1000.service";
    const std::string x = manager + "/x";
    const auto add = [this](const std::string &path, const char *controllers) {
        cgroup(path);
        give_to_user(path, controllers);
    };
    const auto takes = [&](std::uint64_t bytes) {
        for (const std::string &path :
             {std::string("/user.slice"), std::string("/user.slice/user-1000.slice"), manager, x})
            account(path).usage = bytes;
    };

    cgroup("/user.slice");
    cgroup("/user.slice/user-1000.slice");
    add(manager, "memory\n");
    add(x, "");
    takes(15 * gib);
    host_.set(policy({GuardStep::freeze}), gib);
    host_.run();
    takes(28 * gib);
    // An innocent one grew, too.
    account(service).usage = 3 * gib;
    add(x + "/y", "");
    give_to_user(x, "memory\n");
    fake_.status.available = 3 * gib;
    host_.run();
    EXPECT_EQ(file(x, "cgroup.freeze"), "1");
    EXPECT_EQ(file(service, "cgroup.freeze"), "");
}

TEST_F(GuardHostTest, AGroupHoldsNoMoreThanItDoesInTheEnd) {
    const std::string group = "/user.slice/user-1000.slice";
    const auto held = [&] {
        for (const Holder &each : host_.holders()) {
            if (each.path == group)
                return each.held();
        }
        return std::uint64_t{0};
    };

    for (const std::string &path : {std::string("/user.slice"), group, group + "/a.service"})
        cgroup(path);
    account(group).usage = 20 * gib;
    account(group + "/a.service").usage = 4 * gib;
    EXPECT_EQ(held(), 20 * gib);
    // The service gave back what it held after the group's figure was read, and before its own.
    fake_.on_account = [&] { account(group).usage = 5 * gib; };
    EXPECT_EQ(held(), 5 * gib);
}

TEST_F(GuardHostTest, OfThoseThatHoldLittleItKnowsNoMoreThanItNeeds) {
    const auto holder = [this](const std::string &path) {
        for (const Holder &each : host_.holders()) {
            if (each.id == account(path).id)
                return std::optional(each);
        }
        return std::optional<Holder>();
    };
    const std::string group = "/user.slice/user-1000.slice";

    cgroup("/user.slice");
    cgroup(group);
    cgroup(group + "/big.service");
    cgroup(group + "/small.service");
    account(group + "/small.service").memory_current = mib;
    account(service).usage = 20 * gib;
    account(service).memory_current = mib;
    host_.set(policy({GuardStep::freeze}), gib);
    host_.run();
    EXPECT_FALSE(holder(group + "/small.service")) << "it never held anything";
    ASSERT_TRUE(holder(group));
    EXPECT_FALSE(holder(group)->shelters);
    // One that unloads its model has it again at the next question, which is no leak.
    account(service).usage = mib;
    host_.run();
    ASSERT_TRUE(holder(service));
    EXPECT_EQ(holder(service)->path, "") << "nothing is done to it as it is";
    fake_.status.available = 3 * gib;
    account(service).usage = 20 * gib;
    host_.run();
    EXPECT_EQ(file(service, "cgroup.freeze"), "");

    GuardPolicy protects = policy({GuardStep::freeze});
    protects.protect = {group + "/small*"};
    host_.set(protects, gib);
    ASSERT_TRUE(holder(group));
    EXPECT_TRUE(holder(group)->shelters) << "what is protected in it is, though it holds little";
}

/// Adds a tenant's cgroup with that many children that hold enough to be looked at.
class CrowdTest : public test::OnTmpfs, public GuardHostTest {
protected:
    static constexpr const char *manager = "/user.slice/user-1000.slice/user@1000.service";

    CrowdTest() {
        put_back();
        cgroup("/user.slice");
        cgroup("/user.slice/user-1000.slice");
        cgroup(manager);
        give_to_user(manager, "memory pids\n");
    }

    void add_crowd(int from, int to) const {
        for (int i = from; i < to; ++i) {
            const std::string path = fmt::format("{}/{}", manager, i);

            sandbox_.add_cgroup(path);
            sandbox_.write(sandbox_.cgroup_mount() / path.substr(1) / "memory.current",
                           std::to_string(gib) + "\n");
        }
    }

    std::vector<Holder> in_it() {
        std::vector<Holder> holders = host_.holders();

        std::erase_if(holders, [](const Holder &each) { return !is_below(each.path, manager); });
        return holders;
    }
};

TEST_F(CrowdTest, OfATenantsOnlySoManyAreLookedAt) {
    add_crowd(0, 900);
    EXPECT_EQ(in_it().size(), 900U);
    add_crowd(900, 1500);
    EXPECT_EQ(in_it().size(), 1024U);
}

TEST_F(CrowdTest, OfATenantsOnlySoDeepAreLookedAt) {
    std::string deep = manager;

    for (int i = 0; i < 100; ++i) {
        deep += "/d";
        sandbox_.add_cgroup(deep);
        give_to_user(deep, "memory\n");
    }
    EXPECT_EQ(in_it().size(), 16U);
}

TEST_F(CrowdTest, WhatIsNotLookedAtIsTheGroups) {
    GuardPolicy freezes = policy({GuardStep::freeze});

    add_crowd(0, 1500);
    host_.set(freezes, gib);
    host_.run();
    // Whichever of them grew, it may be among those that are not looked at.
    account(manager).usage = account("/user.slice/user-1000.slice").usage = 4000 * gib;
    fake_.status.available = 3 * gib;
    host_.run();
    EXPECT_EQ(file(manager, "cgroup.freeze"), "1");
}

TEST_F(CrowdTest, WhoWaitsIsLookedForAmongSoMany) {
    auto folder = sandbox_.cgroup_mount() / std::string(manager).substr(1);
    const std::string waits = "some avg10=90.00 avg60=90.00 avg300=0.00 total=7\n"
                              "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";

    for (const char *above : {"user.slice", "user.slice/user-1000.slice",
                              "user.slice/user-1000.slice/user@1000.service"})
        sandbox_.write(sandbox_.cgroup_mount() / above / "memory.pressure", waits);
    for (int depth = 0; depth < 3; ++depth) {
        for (int i = 0; i < 2100; ++i)
            std::filesystem::create_directory(folder / std::to_string(i));
        folder /= "0";
        sandbox_.write(folder / "memory.pressure", waits);
    }
    const std::string waiter = Strain::look(connection_.module(), machine_).waiter;
    EXPECT_TRUE(waiter == manager || is_below(waiter, manager)) << waiter;
    EXPECT_NE(waiter, fmt::format("{}/0/0/0", manager));
}

TEST_F(CrowdTest, WhatIsProtectedMayBeAmongThoseNotLookedAt) {
    const auto shelters = [this](std::vector<std::string> patterns) {
        GuardPolicy protects = policy({GuardStep::freeze});

        protects.protect = std::move(patterns);
        host_.set(protects, gib);
        for (const Holder &each : host_.holders()) {
            if (each.path == manager)
                return each.shelters;
        }
        return false;
    };

    add_crowd(0, 900);
    EXPECT_FALSE(shelters({"/**/precious"}));
    add_crowd(900, 1500);
    EXPECT_TRUE(shelters({"/**/precious"}));
    EXPECT_TRUE(shelters({fmt::format("{}/precious", manager)}));
    EXPECT_FALSE(shelters({"/system.slice/precious*"}));
    EXPECT_FALSE(shelters({"/user.slice/user-1001.slice/**"}));
}

TEST_F(GuardHostTest, ItSaysWhatItSeesForUmacctGuard) {
    leak(policy({GuardStep::freeze}));

    std::ifstream file(machine_.root() / ranking_file);
    const Json seen = Json::parse(file);
    EXPECT_EQ(seen.at("obtainable_bytes"), 2 * gib);
    EXPECT_EQ(seen.at("floor_bytes"), 4 * gib);
    EXPECT_EQ(seen.at("steps"), Json::array({"freeze"}));
    EXPECT_EQ(seen.at("candidates").at(0).at("path"), service);
    EXPECT_EQ(seen.at("candidates").at(0).at("driver_bytes"), 20 * gib);
    EXPECT_EQ(seen.at("candidates").at(0).at("candidate"), true);
    EXPECT_EQ(seen.at("last").at("step"), "freeze");
    host_.set(std::nullopt, gib);
    EXPECT_FALSE(std::filesystem::exists(machine_.root() / ranking_file));
}

TEST_F(GuardHostTest, FreezesAndThaws) {
    leak(policy({GuardStep::freeze}));
    EXPECT_EQ(file(service, "cgroup.freeze"), "1");
    EXPECT_TRUE(has_state());
    ASSERT_EQ(told_.size(), 1U);
    EXPECT_EQ(told_[0].substr(0, 59),
              "guard: freeze /system.slice/llm.service: 2.00 GiB available");
    EXPECT_NE(
        told_[0].find("it holds 20.00 GiB through the driver and 0 B else, grew 20.00 GiB above"),
        std::string::npos)
        << told_[0];
    fake_.status.available = 30 * gib;
    host_.run();
    EXPECT_EQ(file(service, "cgroup.freeze"), "0");
    EXPECT_FALSE(has_state());
}

TEST_F(GuardHostTest, OneThatIsMadeAnewUnderAFrozenOnesNameIsFrozenToo) {
    leak(policy({GuardStep::freeze}));
    EXPECT_EQ(file(service, "cgroup.freeze"), "1");
    std::filesystem::rename(sandbox_.cgroup_mount() / std::string(service).substr(1),
                            sandbox_.root() / "gone");
    std::erase_if(fake_.accounts, [](const Account &each) { return each.path == service; });
    host_.run();
    cgroup(service);
    account(service).usage = 20 * gib;
    host_.run();
    EXPECT_EQ(file(service, "cgroup.freeze"), "1");
    fake_.status.available = 30 * gib;
    host_.run();
    EXPECT_EQ(file(service, "cgroup.freeze"), "0");
    EXPECT_FALSE(has_state());
}

TEST_F(GuardHostTest, WhatAnotherFrozeStaysFrozen) {
    const auto file_of_service = sandbox_.cgroup_mount() / "system.slice/llm.service/cgroup.freeze";

    sandbox_.write(file_of_service, "1\n");
    leak(policy({GuardStep::freeze}));
    ASSERT_EQ(told_.size(), 1U);
    EXPECT_NE(told_[0].find("it was frozen already"), std::string::npos) << told_[0];
    EXPECT_FALSE(has_state()) << "nobody has to undo it";
    fake_.status.available = 30 * gib;
    host_.run();
    ASSERT_EQ(told_.size(), 2U);
    EXPECT_NE(told_[1].find("it stays frozen"), std::string::npos) << told_[1];
    EXPECT_EQ(file(service, "cgroup.freeze"), "1");

    // Thawed by who froze it, it is the guard's to freeze and to thaw.
    sandbox_.write(file_of_service, "0\n");
    account(service).usage = 28 * gib;
    fake_.status.available = 3 * gib;
    host_.run();
    EXPECT_TRUE(has_state());
    host_.stop();
    EXPECT_EQ(file(service, "cgroup.freeze"), "0");
}

TEST_F(GuardHostTest, ASignalThawsWhatTheGuardFrozeAlone) {
    const auto freeze = [this](const char *value) {
        sandbox_.write(sandbox_.cgroup_mount() / "system.slice/llm.service/cgroup.freeze", value);
    };

    freeze("1\n");
    leak(policy({GuardStep::freeze, GuardStep::signal}));
    host_.run();
    EXPECT_EQ(file(service, "cgroup.freeze"), "1");
    host_.set(std::nullopt, gib);
    EXPECT_EQ(file(service, "cgroup.freeze"), "1");

    freeze("0\n");
    account(service).usage = 0;
    fake_.status.available = 30 * gib;
    leak(policy({GuardStep::freeze, GuardStep::signal}));
    EXPECT_EQ(file(service, "cgroup.freeze"), "1");
    host_.run();
    EXPECT_EQ(file(service, "cgroup.freeze"), "0");
    EXPECT_FALSE(has_state());
}

TEST_F(GuardHostTest, ASignalReachesWhoIsInTheCgroup) {
    const auto begin = [] {
        const pid_t pid = fork();

        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            pause();
            _exit(0);
        }
        return pid;
    };
    const auto ends = [](pid_t pid) {
        int status = 0;

        return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    };
    const pid_t direct = begin();
    const pid_t below = begin();

    // Nothing of them is in /proc: umacctd's unit hides what is not its own there.
    cgroup("/system.slice/llm.service/inner");
    sandbox_.write("cgroup/system.slice/llm.service/cgroup.procs", fmt::format("{}\n", direct));
    sandbox_.write("cgroup/system.slice/llm.service/inner/cgroup.procs",
                   fmt::format("{}\n", below));
    leak(policy({GuardStep::signal}));
    EXPECT_EQ(ends(direct), SIGTERM);
    EXPECT_EQ(ends(below), SIGTERM);
}

TEST_F(GuardHostTest, WhatIsRefilledAfterAKillCountsAsEmpty) {
    const std::string group = "/user.slice/user-1000.slice";
    const std::string unit = group + "/a.service";
    const auto has = [&](const char *pids) {
        sandbox_.write(sandbox_.cgroup_mount() / unit.substr(1) / "cgroup.procs", pids);
    };
    const auto is_empty = [&] {
        const auto holders = host_.holders();
        const auto it =
            std::ranges::find_if(holders, [&](const Holder &each) { return each.path == unit; });

        return it != holders.end() && it->empty;
    };

    for (const std::string &path : {std::string("/user.slice"), group, unit})
        cgroup(path);
    has("11\n12\n");
    host_.set(policy({GuardStep::kill}), gib);
    host_.run();
    for (const std::string &path : {std::string("/user.slice"), group, unit})
        account(path).usage = 20 * gib;
    fake_.status.available = 3 * gib;
    host_.run();
    ASSERT_EQ(file(unit, "cgroup.kill"), "1");
    has("12\n");
    EXPECT_FALSE(is_empty()) << "one of them is about to end";
    has("13\n");
    EXPECT_TRUE(is_empty()) << "nothing of what it holds goes with a process that came since";
}

TEST_F(GuardHostTest, RaisesTheReserveAndPutsItBack) {
    leak(policy({GuardStep::reserve}));
    EXPECT_EQ(fake_.status.reserve, 5 * gib);
    host_.stop();
    EXPECT_EQ(fake_.status.reserve, gib);
    EXPECT_FALSE(has_state());
}

TEST_F(GuardHostTest, OfTwoReservesTheHigherOneHolds) {
    const GuardPolicy raises = policy({GuardStep::reserve});

    leak(raises);
    EXPECT_EQ(fake_.status.reserve, 5 * gib);
    host_.set(raises, 2 * gib);
    host_.stop();
    EXPECT_EQ(fake_.status.reserve, 2 * gib) << "which another order has asked for meanwhile";
    EXPECT_FALSE(has_state());
}

TEST_F(GuardHostTest, ReclaimsAndKills) {
    leak(policy({GuardStep::reclaim, GuardStep::kill}));
    EXPECT_EQ(file(service, "memory.reclaim"), std::to_string(32 * mib));
    host_.run();
    EXPECT_EQ(file(service, "cgroup.kill"), "1");
}

TEST_F(GuardHostTest, ADryRunTouchesNothing) {
    GuardPolicy dry = policy({GuardStep::reserve, GuardStep::freeze, GuardStep::kill});

    dry.dry_run = true;
    leak(dry);
    host_.run();
    host_.run();
    EXPECT_EQ(told_.size(), 3U);
    EXPECT_EQ(told_[2].substr(0, 30), "guard would: kill /system.slic");
    EXPECT_EQ(file(service, "cgroup.freeze"), "");
    EXPECT_EQ(file(service, "cgroup.kill"), "");
    EXPECT_TRUE(fake_.changes.empty());
    EXPECT_FALSE(has_state());
}

TEST_F(GuardHostTest, WhatOneLeftTheNextUndoes) {
    leak(policy({GuardStep::reserve, GuardStep::freeze}));
    host_.run();
    EXPECT_EQ(file(service, "cgroup.freeze"), "1");
    EXPECT_EQ(fake_.status.reserve, 5 * gib);

    GuardHost next(connection_, machine_, [](const Json &, const std::string &, bool) {});
    next.set(std::nullopt, gib);
    next.recover();
    EXPECT_EQ(file(service, "cgroup.freeze"), "0");
    EXPECT_EQ(fake_.status.reserve, gib);
    EXPECT_FALSE(has_state());
}

TEST_F(GuardHostTest, WhatCannotBeDoneIsToldAndTheRestGoesOn) {
    std::filesystem::remove(sandbox_.cgroup_mount() / "system.slice/llm.service/cgroup.freeze");
    leak(policy({GuardStep::freeze, GuardStep::kill}));
    ASSERT_EQ(told_.size(), 1U);
    EXPECT_EQ(told_[0].substr(0, 20), "guard: cannot freeze") << told_[0];
    host_.run();
    EXPECT_EQ(file(service, "cgroup.kill"), "1");
}

TEST_F(GuardHostTest, WithoutAPolicyItIsOff) {
    EXPECT_FALSE(host_.due());
    host_.set(policy({GuardStep::freeze}), gib);
    EXPECT_TRUE(host_.due());
    leak(policy({GuardStep::freeze}));
    host_.set(std::nullopt, gib);
    EXPECT_FALSE(host_.due());
    EXPECT_EQ(file(service, "cgroup.freeze"), "0");
}

TEST_F(GuardHostTest, InItsThreadItUndoesAlsoAfterAFailure) {
    std::atomic<int> connected = 0;

    fake_.status.reserve = 4 * gib;
    sandbox_.write("run/umacctd/guard", "reserve 4294967296\n");
    {
        GuardThread thread(
            [&] {
                if (++connected == 1)
                    throw Error(Failure::failed, "no answer");
                return fake_.connect();
            },
            sandbox_.proc(), sandbox_.root(), [](const Json &, const std::string &, bool) {});

        thread.set(policy({GuardStep::freeze}), gib);
        thread.module_is(true);
        EXPECT_TRUE(eventually([this] { return !has_state(); }));
    }
    EXPECT_GE(connected, 2);
    EXPECT_EQ(fake_.status.reserve, gib);
}

TEST_F(GuardHostTest, InItsThreadItActsUndoesAndEnds) {
    std::atomic<int> told = 0;
    GuardThread thread([this] { return fake_.connect(); }, sandbox_.proc(), sandbox_.root(),
                       [&](const Json &, const std::string &, bool) { ++told; });
    GuardPolicy keeps = policy({GuardStep::freeze});

    keeps.release_ns = 60'000'000'000;
    account(service).usage = 20 * gib;
    thread.set(keeps, 0);
    thread.module_is(true);
    // Memory that exists at the first look is no growth; later memory is.
    ASSERT_TRUE(
        eventually([this] { return std::filesystem::exists(sandbox_.root() / ranking_file); }));
    thread.pause();
    cgroup("/system.slice/new.service");
    account("/system.slice/new.service").usage = 9 * gib;
    fake_.status.available = 3 * gib;
    thread.set(keeps, 0);
    ASSERT_TRUE(
        eventually([this] { return file("/system.slice/new.service", "cgroup.freeze") == "1"; }));
    thread.pause();
    EXPECT_EQ(file("/system.slice/new.service", "cgroup.freeze"), "0");
    thread.set(keeps, 0);
    ASSERT_TRUE(
        eventually([this] { return file("/system.slice/new.service", "cgroup.freeze") == "1"; }));
    // Everything is thawed once the module is gone.
    thread.module_is(false);
    EXPECT_TRUE(
        eventually([this] { return file("/system.slice/new.service", "cgroup.freeze") == "0"; }));
    EXPECT_TRUE(eventually([&] { return told >= 4; })) << "each step is told after it";
}

} // namespace
} // namespace umacct
