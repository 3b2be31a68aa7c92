// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/machine.h"

#include <gtest/gtest.h>

#include "tests/sandbox.h"

namespace umacct {
namespace {

TEST(Machine, IsAllBelowOneRoot) {
    const test::Sandbox sandbox;
    const Machine machine(sandbox.proc(), sandbox.proc().parent_path());
    const std::uint64_t id = sandbox.add_cgroup("/system.slice/a.service");

    EXPECT_EQ(machine.resolve("a").id, id);
    EXPECT_EQ(machine.cgroups().id("/system.slice/a.service"), id);
    EXPECT_EQ(machine.owners().of("/system.slice/a.service")->label(), "a.service");
    EXPECT_EQ(machine.meminfo().free(), 1ULL << 30);
    EXPECT_EQ(machine.proc(), sandbox.proc());
    EXPECT_EQ(machine.root(), sandbox.proc().parent_path());
}

TEST(Machine, LooksForNewNames) {
    const test::Sandbox sandbox;
    Machine machine(sandbox.proc(), sandbox.proc().parent_path());
    const std::string id(64, 'a');
    const auto add = [&](const char *name) {
        sandbox.write("var/lib/docker/containers/" + id + "/config.v2.json",
                      std::string(R"({"Name":"/)") + name + "\"}");
    };

    add("one");
    EXPECT_EQ(machine.owners().of("/docker/" + id)->name, "one");
    add("other");
    EXPECT_EQ(machine.owners().of("/docker/" + id)->name, "one");
    machine.refresh_owners();
    EXPECT_EQ(machine.owners().of("/docker/" + id)->name, "other");
}

TEST(Machine, TheModuleKnowsMoreOfTheMemoryControllerThanADirectory) {
    const test::Sandbox sandbox;
    const Cgroups cgroups(sandbox.proc());
    Account account;

    account.path = "/a";
    EXPECT_FALSE(memory_controller(cgroups, account).current);
    sandbox.add_cgroup("/a");
    sandbox.write(sandbox.cgroup_mount() / "a/memory.current", "100\n");
    sandbox.write(sandbox.cgroup_mount() / "a/memory.max", "max\n");
    EXPECT_EQ(memory_controller(cgroups, account).current, 100U);
    EXPECT_EQ(memory_controller(cgroups, account).max, UMACCT_UNLIMITED);
    account.memory_current = 200;
    account.memory_max = 300;
    EXPECT_EQ(memory_controller(cgroups, account).current, 200U);
    EXPECT_EQ(memory_controller(cgroups, account).max, 300U);
}

TEST(Machine, PressureIsReadWhereItIsAskedFor) {
    const test::Sandbox sandbox;
    const Machine machine(sandbox.proc(), sandbox.proc().parent_path());
    const char *text = "some avg10=7.50 avg60=0.00 avg300=0.00 total=5\n"
                       "full avg10=0.00 avg60=0.00 avg300=0.00 total=3\n";
    Account account;

    account.path = "/a";
    sandbox.add_cgroup("/a");
    EXPECT_FALSE(memory_and_pressure(machine.cgroups(), account).pressure);
    EXPECT_FALSE(machine.pressure());
    sandbox.write(sandbox.cgroup_mount() / "a/memory.pressure", text);
    sandbox.write("proc/pressure/memory", text);
    EXPECT_EQ(memory_and_pressure(machine.cgroups(), account).pressure->some.avg10, 7.5);
    EXPECT_FALSE(memory_controller(machine.cgroups(), account).pressure);
    EXPECT_EQ(machine.pressure()->full.total_us, 3U);
}

} // namespace
} // namespace umacct
