// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/module/health.h"

#include <functional>

#include <gtest/gtest.h>

#include "tests/fake_module.h"

namespace umacct {
namespace {

/// The warnings of a status that is well but for this.
std::vector<std::string> warned(const std::function<void(Status &)> &change) {
    Status status = test::FakeModule().status;

    change(status);
    return warnings(status);
}

TEST(Health, OfAModuleThatSeesAllIsGood) {
    EXPECT_TRUE(warned([](Status & /*status*/) {}).empty());
    EXPECT_TRUE(warned([](Status &status) { status.driver_state = UMACCT_DRIVER_ABSENT; }).empty());
}

TEST(Health, OfAnObserverSaysSinceWhenItCounts) {
    const auto found = warned([](Status &status) {
        status.flags = UMACCT_STATUS_OBSERVER | UMACCT_STATUS_CGROUP_V2;
        status.since_ns = 1'000'000'000'000'000'000;
    });

    ASSERT_EQ(found.size(), 1U);
    EXPECT_NE(found[0].find("only allocations since 2001-09-09 "), std::string::npos) << found[0];
}

TEST(Health, SaysEachThingThatMakesTheFiguresWrong) {
    using Words = std::vector<std::string>;

    EXPECT_EQ(warned([](Status &status) {
                  status.driver_state = UMACCT_DRIVER_UNKNOWN;
                  status.driver_version = "1\x1b[2J";
                  status.reason = "too new";
              }),
              Words{"nothing is accounted: driver 1?[2J is unknown: too new"});
    EXPECT_EQ(warned([](Status &status) { status.reason = "taken for another"; }),
              Words{"taken for another"});
    EXPECT_EQ(warned([](Status &status) { status.uvm_state = UMACCT_DRIVER_BROKEN; }),
              Words{"managed memory is not accounted, and limits do not hold for it: nvidia-uvm is "
                    "broken"});
    EXPECT_EQ(warned([](Status &status) { status.flags &= ~UMACCT_STATUS_CGROUP_V2; }),
              Words{"there are no cgroups in the v2 hierarchy: everything is in one account"});
    EXPECT_EQ(warned([](Status &status) { status.flags &= ~UMACCT_STATUS_SELFTEST; }),
              Words{"a probe on the module's own code did not fire: kprobes do not work here"});
    EXPECT_EQ(warned([](Status &status) {
                  status.hooks[0].state = UMACCT_HOOK_FAILED;
                  status.hooks[0].reason = "gone";
              }),
              Words{"hook allocate (nvidia:nv_alloc_pages) failed: gone"});
    EXPECT_EQ(warned([](Status &status) { status.hooks[0].missed = 3; }),
              Words{"hook allocate (nvidia:nv_alloc_pages) missed 3 of 15 calls: the figures "
                    "are off"});
    EXPECT_EQ(warned([](Status &status) {
                  status.flags |= UMACCT_STATUS_UNENFORCED;
                  status.reason = "no hook";
              }),
              Words{"limits, a reserve or charging are set and nothing enforces them: no hook"});
    EXPECT_EQ(warned([](Status &status) {
                  status.untracked_count = 2;
                  status.untracked = 4096;
              }),
              Words{"2 allocations of 4.00 KiB could not be recorded and are in no account"});
    EXPECT_EQ(warned([](Status &status) { status.unattributed_count = 7; }),
              Words{"7 allocations were refused, as there was no memory to find out whose they "
                    "are"});
    EXPECT_EQ(warned([](Status &status) { status.stale_count = 5; }),
              Words{"5 records were dropped because their free was never seen"});
}

} // namespace
} // namespace umacct
