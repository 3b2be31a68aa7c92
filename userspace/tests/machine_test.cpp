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

TEST(Machine, TotalHasNothingTwiceAndNoCache) {
    const test::Sandbox sandbox;
    const Cgroups cgroups(sandbox.proc());
    const Files files{.total = true, .pressure = false};
    Account account;

    account.path = "/a";
    account.usage = 700;
    account.charged = 200;
    sandbox.add_cgroup("/a");
    EXPECT_EQ(memory_controller(cgroups, account, files).total, 700U)
        << "without the controller, the driver's";
    account.memory_current = 1000;
    sandbox.write(sandbox.cgroup_mount() / "a/memory.stat",
                  "anon 500\nfile 130\nshmem 10\nactive_file 40\ninactive_file 50\n"
                  "unevictable 30\nslab_reclaimable 5\nslab 9\n");
    sandbox.write(sandbox.cgroup_mount() / "a/memory.swap.current", "300\n");
    const MemoryController memory = memory_controller(cgroups, account, files);
    EXPECT_EQ(memory.total, 500U + 1000 - 95);
    EXPECT_EQ(memory.cache, 95U) << "what is locked or shared does not come back by itself";
    EXPECT_EQ(memory.swap, 300U);
    EXPECT_FALSE(memory_controller(cgroups, account).total) << "unless it is asked for";
    account.path = "/";
    account.memory_current.reset();
    EXPECT_FALSE(memory_controller(cgroups, account, files).total) << "the machine's is another";
}

TEST(Machine, TotalOfAProcessIsOfThatProcess) {
    const test::Sandbox sandbox;
    Client client;

    client.pid = 7;
    client.usage = 1 << 20;
    client.start_time_ns = 5'000'000'000;
    EXPECT_EQ(process_memory(sandbox.proc(), client).total, client.usage) << "it is gone";
    sandbox.add_process(7, "/a");
    sandbox.write("proc/7/stat", "7 (a) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 500 0 0 0 0 0 0 "
                                 "0 0 0 0 0\n");
    sandbox.write("proc/7/status", "Name:\ta\nVmPTE:\t 16 kB\nVmSwap:\t 4 kB\n"
                                   "RssAnon:\t 100 kB\nRssFile:\t 50 kB\nRssShmem:\t 8 kB\n");
    EXPECT_EQ(process_memory(sandbox.proc(), client).total, (1024U + 124) * 1024);
    EXPECT_EQ(process_memory(sandbox.proc(), client).swap, 4096U);
    sandbox.write("sys/module/nvidia/version", "610.57.04\n");
    EXPECT_EQ(process_memory(sandbox.proc(), client).total, (1024U + 124) * 1024);
    client.managed = client.usage - 4096;
    sandbox.write("sys/module/nvidia/version", "615.71.09\n");
    EXPECT_EQ(process_memory(sandbox.proc(), client).total, (1024U + 120) * 1024)
        << "the driver has counted its pages there, too";
    client.start_time_ns = 6'000'000'000;
    EXPECT_EQ(process_memory(sandbox.proc(), client).total, client.usage)
        << "another has its pid now";
    EXPECT_FALSE(process_memory(sandbox.proc(), client).swap);
}

TEST(Machine, PressureIsReadWhereItIsAskedFor) {
    const test::Sandbox sandbox;
    const Machine machine(sandbox.proc(), sandbox.proc().parent_path());
    const char *text = "some avg10=7.50 avg60=0.00 avg300=0.00 total=5\n"
                       "full avg10=0.00 avg60=0.00 avg300=0.00 total=3\n";
    Account account;

    account.path = "/a";
    sandbox.add_cgroup("/a");
    const Files files{.total = false, .pressure = true};
    EXPECT_FALSE(memory_controller(machine.cgroups(), account, files).pressure);
    EXPECT_FALSE(machine.pressure());
    sandbox.write(sandbox.cgroup_mount() / "a/memory.pressure", text);
    sandbox.write("proc/pressure/memory", text);
    EXPECT_EQ(memory_controller(machine.cgroups(), account, files).pressure->some.avg10, 7.5);
    EXPECT_FALSE(memory_controller(machine.cgroups(), account).pressure);
    EXPECT_EQ(machine.pressure()->full.total_us, 3U);
}

} // namespace
} // namespace umacct
