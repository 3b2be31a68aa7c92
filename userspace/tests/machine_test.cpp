// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/machine.h"

#include <cerrno>

#include <gtest/gtest.h>

#include "lib/error.h"
#include "tests/fake_module.h"
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

TEST(Machine, WhatAViewChangesIsTheModulesToSay) {
    const test::Sandbox sandbox;
    test::FakeModule module;
    bool loaded = true;
    const Machine machine(sandbox.proc(), "/", [&] {
        if (!loaded)
            throw Error(Failure::missing, "not loaded");
        return module.connect();
    });
    const auto line = [&](const char *name) { return machine.meminfo().bytes(name); };

    sandbox.write("proc/meminfo", "MemTotal: 600 kB\nMemFree: 7 kB\nMemAvailable: 7 kB\n"
                                  "Buffers: 0 kB\nCached: 0 kB\nSReclaimable: 0 kB\n"
                                  "KReclaimable: 0 kB\nShmem: 5 kB\n");
    module.status.memory_total = 16;
    module.status.memory_free = 8;
    module.status.memory_available = 9;
    module.status.memory_buffers = 1;
    module.status.memory_cached = 2;
    module.status.memory_sreclaimable = 3;
    module.status.memory_kreclaimable = 4;
    EXPECT_EQ(machine.meminfo().total(), 16U);
    EXPECT_EQ(machine.meminfo().free(), 8U);
    EXPECT_EQ(machine.meminfo().available(), 9U);
    EXPECT_EQ(line("Buffers"), 1U);
    EXPECT_EQ(line("Cached"), 2U);
    EXPECT_EQ(line("SReclaimable"), 3U);
    EXPECT_EQ(line("KReclaimable"), 4U);
    EXPECT_EQ(line("Shmem"), 5U * 1024) << "no view changes this";
    EXPECT_EQ(machine.meminfo(Status()).total(), 600U * 1024) << "a caller that may not see all";
    module.fail_with = EPERM;
    EXPECT_EQ(machine.meminfo().total(), 600U * 1024);
    module.fail_with = ENOMEM;
    EXPECT_THROW(machine.meminfo(), Error) << "not known is not what a view says";
    loaded = false;
    EXPECT_EQ(machine.meminfo().total(), 600U * 1024) << "without a module there is no view";
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
