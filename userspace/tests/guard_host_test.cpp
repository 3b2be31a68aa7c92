// SPDX-License-Identifier: GPL-2.0-or-later
/// What the guard reads and writes, on a sandbox's cgroups.
#include "daemon/guard_host.h"

#include <algorithm>
#include <fstream>

#include <gtest/gtest.h>

#include "daemon/policy.h"
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

    /// With the files that the guard writes to.
    void cgroup(const std::string &path) {
        const std::uint64_t id = sandbox_.add_cgroup(path);

        for (const char *file : {"cgroup.freeze", "cgroup.kill", "memory.reclaim"})
            sandbox_.write(sandbox_.cgroup_mount() / path.substr(1) / file, "");
        Account account;
        account.id = id;
        account.path = path;
        fake_.accounts.push_back(account);
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
        host_.set(with);
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
    GuardHost host_{
        connection_, machine_,
        [this](const Guard::Action &, const std::string &line, bool) { told_.push_back(line); }};
};

TEST_F(GuardHostTest, KnowsWhatEachHoldsOnce) {
    cgroup("/system.slice/llm.service/inner");
    cgroup("/user.slice");
    cgroup("/user.slice/user-1000.slice");
    cgroup("/user.slice/user-1000.slice/user@1000.service");
    cgroup("/user.slice/user-1000.slice/user@1000.service/app.slice");
    cgroup("/user.slice/user-1000.slice/user@1000.service/app.slice/a.service");
    Account &llm = account(service);
    llm.usage = 10 * gib;
    llm.charged = 4 * gib;
    llm.memory_current = 7 * gib; // with what is charged, and with page cache
    sandbox_.write(sandbox_.cgroup_mount() / "system.slice/llm.service/memory.stat",
                   "anon 1\nfile 999999999\nactive_file 1073741824\ninactive_file 1073741824\n"
                   "slab_reclaimable 0\n");

    const std::vector<Holder> holders = host_.holders();
    const auto of = [&](const std::string &path) {
        const auto found =
            std::ranges::find_if(holders, [&](const Holder &each) { return each.path == path; });

        return found == holders.end() ? Holder{} : *found;
    };
    EXPECT_EQ(of(service).driver, 10 * gib);
    EXPECT_EQ(of(service).other, 1 * gib);
    EXPECT_TRUE(of(service).whole);
    EXPECT_EQ(of("/system.slice/llm.service/inner").path, ""); // nobody looks inside
    EXPECT_FALSE(of("/system.slice").whole);
    EXPECT_FALSE(of("/user.slice/user-1000.slice/user@1000.service").whole);
    EXPECT_TRUE(of("/user.slice/user-1000.slice/user@1000.service/app.slice/a.service").whole);
}

TEST_F(GuardHostTest, FreezesAndThaws) {
    leak(policy({GuardStep::freeze}));
    EXPECT_EQ(file(service, "cgroup.freeze"), "1");
    EXPECT_TRUE(has_state());
    ASSERT_EQ(told_.size(), 1U);
    EXPECT_EQ(told_[0].substr(0, 62),
              "guard: freeze /system.slice/llm.service: 2.00 GiB could be had");
    EXPECT_NE(told_[0].find("it holds 20.00 GiB through the driver and 0 B else, 20.00 GiB more"),
              std::string::npos)
        << told_[0];
    fake_.status.available = 30 * gib;
    host_.run();
    EXPECT_EQ(file(service, "cgroup.freeze"), "0");
    EXPECT_FALSE(has_state());
}

TEST_F(GuardHostTest, RaisesTheReserveAndPutsItBack) {
    leak(policy({GuardStep::reserve}));
    EXPECT_EQ(fake_.status.reserve, 5 * gib);
    host_.stop();
    EXPECT_EQ(fake_.status.reserve, gib);
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

    GuardHost next(connection_, machine_, [](const Guard::Action &, const std::string &, bool) {});
    next.recover();
    EXPECT_EQ(file(service, "cgroup.freeze"), "0");
    EXPECT_EQ(fake_.status.reserve, gib);
    EXPECT_FALSE(has_state());
}

TEST_F(GuardHostTest, WhatCannotBeDoneIsToldAndTheRestGoesOn) {
    std::filesystem::remove(sandbox_.cgroup_mount() / "system.slice/llm.service/cgroup.freeze");
    leak(policy({GuardStep::freeze, GuardStep::kill}));
    ASSERT_EQ(told_.size(), 1U);
    EXPECT_EQ(told_[0].substr(0, 18), "guard can't freeze") << told_[0];
    host_.run();
    EXPECT_EQ(file(service, "cgroup.kill"), "1");
}

TEST_F(GuardHostTest, WithoutAPolicyItIsOff) {
    EXPECT_FALSE(host_.due());
    host_.set(policy({GuardStep::freeze}));
    EXPECT_TRUE(host_.due());
    leak(policy({GuardStep::freeze}));
    host_.set(std::nullopt);
    EXPECT_FALSE(host_.due());
    EXPECT_EQ(file(service, "cgroup.freeze"), "0");
}

} // namespace
} // namespace umacct
