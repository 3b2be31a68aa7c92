// SPDX-License-Identifier: GPL-2.0-or-later
/// The doctor on machines that have one thing wrong each.
#include <algorithm>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>

#include "lib/host/program.h"
#include "tests/history_story.h"
#include "tests/tool_fixture.h"
#include "tool/doctor/spark_steps.h"

namespace umacct {
namespace {

using nlohmann::json;
namespace doctor = tool::doctor;

class Doctor : public test::ToolFixture {
protected:
    Doctor() {
        sandbox_.write("proc/sys/kernel/osrelease", "6.12.1-test\n");
        sandbox_.write("lib/modules/6.12.1-test/modules.dep", "updates/dkms/umacct.ko.xz:\n");
        sandbox_.write("cgroup/cgroup.controllers", "cpu memory pids\n");
        sandbox_.write("cgroup/cgroup.subtree_control", "cpu memory\n");
        sandbox_.write("sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
        sandbox_.write("sys/module/umacct/taint", "OE\n");
        sandbox_.write("dev/nvidiactl", "");
        sandbox_.write("proc/driver/nvidia/version",
                       "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.163.01\n");
        fake_.status.charge_default = UMACCT_CHARGE_ON;
        fake_.status.available = 8ULL << 30;
        fake_.status.module_version = UMACCT_VERSION;
    }

    void secure_boot() {
        sandbox_.write("sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
                       std::string("\6\0\0\0\1", 5));
    }

    /// The check of that name; with a hint exactly when it isn't well.
    json check(const std::string &name) {
        const json document = run_json({"doctor", "--json"});
        json found;

        for (const json &each : document["checks"]) {
            EXPECT_EQ(each["state"] == "ok", each["hint"].is_null()) << each;
            if (each["check"] == name && (found.is_null() || each["state"] != "ok"))
                found = each;
        }
        EXPECT_FALSE(found.is_null()) << name;
        return found;
    }

    void expect(const std::string &name, const std::string &state, const std::string &says,
                int code) {
        const json found = check(name);

        EXPECT_EQ(found["state"], state);
        EXPECT_NE(found["text"].get<std::string>().find(says), std::string::npos) << found;
        EXPECT_EQ(run({"doctor"}).code, code);
    }
};

TEST_F(Doctor, AHealthyMachine) {
    const json document = run_json({"doctor", "--json"});

    EXPECT_EQ(document["healthy"], true);
    EXPECT_EQ(document["failed"], 0);
    EXPECT_EQ(document["warned"], 0) << document;
    expect("driver", "ok", "550.163.01, open flavour, accounted", 0);
    EXPECT_NE(run({"doctor"}).out.find("\nhealthy: 0 failed, 0 warnings\n"), std::string::npos);
}

TEST_F(Doctor, RequestsThatFailedAreTold) {
    fake_.accounts = {{.id = sandbox_.add_cgroup("/"), .path = "/"}};
    expect("requests", "ok", "memory for each request since umacct began to count", 0);
    fake_.accounts[0].failed = 3;
    expect("requests", "warn", "no memory for 3 requests since umacct began to count", 0);

    constexpr std::int64_t second = 1000;
    const std::int64_t now = std::time(nullptr) * second;
    sandbox_.write("proc/sys/kernel/random/boot_id", "one\n");
    test::Story story(sandbox_, "one", now - 7200 * second);
    story.happenings.push_back(
        {.time_ms = now - 7200 * second, .type = "failed", .path = "/early"});
    story.pass(2);
    expect("requests", "ok", "each request of the last hour", 0);
    story.sample.uptime_ms = 7168 * second; // a happening is of about the time of its sample
    story.happenings.push_back({.time_ms = now - 30 * second,
                                .type = "failed",
                                .path = "/vllm",
                                .limit_path = "/most",
                                .size = 1ULL << 30,
                                .usage = 0,
                                .limit = 1ULL << 40,
                                .count = 2});
    story.pass(2);
    expect("requests", "warn", "2 requests failed; the last one at", 0);
    expect("requests", "warn",
           "of /vllm: the driver had no memory for 1.00 GiB: 0 B available; /most holds "
           "1.00 TiB",
           0);
}

TEST_F(Doctor, TheModuleIsMissing) {
    loaded_ = false;
    sandbox_.write("sys/module/umacct/taint", "");
    expect("module", "fail", "not loaded", 3);
    expect("signature", "ok", "need not be signed", 3);
}

TEST_F(Doctor, WhatOfItsSignatureMayKeepTheModuleAway) {
    const std::string module = "lib/modules/6.12.1-test/updates/dkms/umacct.ko";
    const std::string list = "sys/firmware/efi/mok-variables/MokListRT";

    loaded_ = false;
    sandbox_.write("sys/module/umacct/taint", "");
    secure_boot();
    expect("signature", "warn", "whether it is can't be seen in ", 3);
    sandbox_.write("lib/modules/6.12.1-test/modules.dep", "kernel/fs/ext4.ko:\n");
    expect("signature", "ok", "no module yet", 3);
    sandbox_.write("lib/modules/6.12.1-test/modules.dep", "updates/dkms/umacct.ko: x.ko\n");
    sandbox_.write(module, "code");
    expect("signature", "warn", "umacct.ko is not signed", 3);
    EXPECT_EQ(check("signature")["hint"].get<std::string>().find("mok.pub"), std::string::npos);

    sandbox_.write(module, "code~Module signature appended~\n");
    expect("signature", "warn", "its key is enrolled can't be seen", 3);
    sandbox_.write("var/lib/dkms/mok.pub", "certificate");
    sandbox_.write(list, "another's");
    expect("signature", "warn", "mok.pub is not enrolled", 3);
    EXPECT_NE(check("signature")["hint"].get<std::string>().find("umacct setup secure-boot"),
              std::string::npos);
    sandbox_.write(list, "another's, certificate, a third");
    expect("signature", "ok", "mok.pub is enrolled", 3);
}

TEST_F(Doctor, AModuleThatIsCompressedIsRead) {
    const std::string file = "lib/modules/6.12.1-test/updates/dkms/umacct.ko";
    const std::string path = (sandbox_.root() / file).string();

    loaded_ = false;
    sandbox_.write("sys/module/umacct/taint", "");
    secure_boot();
    sandbox_.write("lib/modules/6.12.1-test/modules.dep", "updates/dkms/umacct.ko.xz: x.ko\n");
    sandbox_.write(file + ".s", ".section .modinfo,\"a\"\n.asciz \"license=GPL\"\n");
    run_program({"cc", "-c", "-o", path, path + ".s"}, "gcc");
    run_program({"xz", path}, "xz-utils");
    expect("signature", "warn", "umacct.ko.xz is not signed", 3);
}

TEST_F(Doctor, TheModuleCantBeAsked) {
    loaded_ = false;
    unreachable_ = Failure::permission;
    expect("module", "fail", "the umacct kernel module", 4);
}

TEST_F(Doctor, TracingIsSwitchedOff) {
    loaded_ = false;
    sandbox_.write("proc/sys/kernel/ftrace_enabled", "0\n");
    expect("probes", "fail", "ftrace_enabled is 0", 3);
}

TEST_F(Doctor, VersionsDiffer) {
    fake_.status.module_version = "0.0.1";
    expect("module", "warn", "module 0.0.1, tool " UMACCT_VERSION, 0);
}

TEST_F(Doctor, ProbesDoNotFire) {
    fake_.status.flags &= ~static_cast<unsigned>(UMACCT_STATUS_SELFTEST);
    sandbox_.write("sys/kernel/debug/kprobes/enabled", "0\n");
    expect("probes", "fail", "did not fire", 1);
    EXPECT_NE(check("probes")["hint"].get<std::string>().find("echo 1"), std::string::npos);
}

TEST_F(Doctor, NotInstalledForThisKernel) {
    sandbox_.write("lib/modules/6.12.1-test/modules.dep", "kernel/fs/ext4.ko:\n");
    expect("installed", "warn", "not installed for kernel 6.12.1-test", 0);
}

TEST_F(Doctor, SecureBootAndLockdown) {
    expect("signature", "ok", "is unsigned (not required here)", 0);
    sandbox_.write("sys/module/module/parameters/sig_enforce", "Y\n");
    expect("signature", "warn", "module.sig_enforce on; the module is unsigned", 0);
    sandbox_.write("sys/module/module/parameters/sig_enforce", "N\n");
    sandbox_.write("sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
    expect("signature", "warn", "will not load again", 0);
    secure_boot();
    expect("signature", "warn", "Secure Boot on, lockdown none [integrity]", 0);
    sandbox_.write("sys/module/umacct/taint", "O\n");
    expect("signature", "ok", "is signed", 0);
}

TEST_F(Doctor, Dkms) {
    expect("dkms", "ok", "not used", 0);
    sandbox_.write("var/lib/dkms/umacct/0.1.0/6.1.0-old/x86_64/log/make.log", "");
    expect("dkms", "warn", "not built for kernel 6.12.1-test, whose headers are not installed", 0);
    EXPECT_EQ(check("dkms")["hint"], "apt install linux-headers-6.12.1-test; DKMS builds it then");
    sandbox_.write("lib/modules/6.12.1-test/build/include/linux/kernel.h", "");
    expect("dkms", "warn", "not built for kernel 6.12.1-test", 0);
    EXPECT_EQ(check("dkms")["hint"], "dkms install umacct/" UMACCT_VERSION
                                     " -k 6.12.1-test; its log is in /var/lib/dkms/umacct");
    sandbox_.write("var/lib/dkms/umacct/0.1.0/6.12.1-test/x86_64/log/make.log", "");
    expect("dkms", "ok", "built for kernel 6.12.1-test", 0);
}

TEST_F(Doctor, Cgroups) {
    sandbox_.write("cgroup/cgroup.subtree_control", "cpu\n");
    expect("memory controller", "warn", "not delegated", 0);
    sandbox_.write("cgroup/cgroup.controllers", "cpu\n");
    expect("memory controller", "warn", "no memory controller", 0);
    sandbox_.write("proc/self/mountinfo", "22 1 0:21 / /proc rw - proc proc rw\n");
    expect("cgroups", "fail", "no cgroup v2 hierarchy is mounted", 1);
}

TEST_F(Doctor, TheDriver) {
    fake_.status.driver_state = UMACCT_DRIVER_UNKNOWN;
    fake_.status.reason = "version 999.1 is newer than this module";
    expect("driver", "fail", "nothing is accounted: driver 550.163.01 is unknown: version 999.1",
           1);
    fake_.status.driver_state = UMACCT_DRIVER_ABSENT;
    expect("driver", "fail", "not loaded", 1);
    fake_.status.uvm_state = UMACCT_DRIVER_BROKEN;
    expect("nvidia-uvm", "fail", "limits do not hold for it: nvidia-uvm is broken", 1);
}

TEST_F(Doctor, WhatIsSetIsNotEnforced) {
    expect("enforcement", "ok", "is enforced", 0);
    fake_.status.flags |= UMACCT_STATUS_UNENFORCED;
    fake_.status.reason = "the hook is off";
    expect("enforcement", "fail", "nothing enforces them: the hook is off", 1);
}

TEST_F(Doctor, NoCgroupsOfVersion2) {
    fake_.status.flags &= ~static_cast<unsigned>(UMACCT_STATUS_CGROUP_V2);
    expect("cgroups", "warn", "everything is in one account", 0);
}

TEST_F(Doctor, EachHookHasALine) {
    Hook hook;

    hook.name = "view";
    hook.symbol = "si_meminfo";
    hook.state = UMACCT_HOOK_FAILED;
    hook.reason = "no such symbol";
    fake_.status.hooks.push_back(hook);
    expect("hook view", "warn", "hook view (si_meminfo) failed: no such symbol", 0);
    fake_.status.hooks.back().required = true;
    expect("hook view", "fail", "hook view (si_meminfo) failed", 1);
    fake_.status.hooks.back() = fake_.status.hooks.front();
    fake_.status.hooks.back().name = "deaf";
    fake_.status.hooks.back().missed = 3;
    expect("hook deaf", "fail", "missed 3 of ", 1);
    EXPECT_EQ(check("hook deaf")["values"]["missed"], 3);
}

TEST_F(Doctor, WhatMakesTheFiguresWrong) {
    fake_.status.untracked_count = 2;
    fake_.status.untracked = 1 << 20;
    expect("untracked", "fail", "2 allocations of 1.00 MiB", 1);
    fake_.status.stale_count = 1;
    expect("stale", "warn", "1 records were dropped", 1);
    fake_.status.unattributed_count = 4;
    expect("unattributed", "warn", "4 allocations were refused", 1);
    fake_.status.events_lost = 5;
    expect("events", "warn", "5 lost", 1);
}

TEST_F(Doctor, WhatTheKernelAndTheDriverDoWithMemory) {
    fake_.status.flags |= UMACCT_STATUS_PAGE_POOLS;
    expect("driver pools", "ok", "kept by the driver", 0);
    fake_.status.pools.reset();
    expect("driver pools", "warn", "can't be asked", 0);
    fake_.status.flags &= ~static_cast<unsigned>(UMACCT_STATUS_KMEM);
    sandbox_.write("proc/cmdline", "quiet cgroup.memory=nokmem\n");
    expect("kernel memory", "warn", "charging can't work", 0);
    EXPECT_EQ(check("kernel memory")["hint"], "boot without cgroup.memory=nokmem");
    fake_.status.charge_default = UMACCT_CHARGE_OFF;
    fake_.status.usage = 3 << 20;
    fake_.status.charged = 1 << 20;
    expect("blind spot", "ok", "1.00 MiB charged, 2.00 MiB uncharged", 0);
    EXPECT_EQ(check("blind spot")["values"]["uncharged_bytes"], 2 << 20);
    fake_.status.flags |= UMACCT_STATUS_NATIVE_CHARGE;
    expect("blind spot", "ok", "charges its pages itself", 0);
}

TEST_F(Doctor, AMemoryMaxThatDoesNotHoldIsNamed) {
    fake_.status.charge_default = UMACCT_CHARGE_OFF;
    fake_.accounts = {{.id = sandbox_.add_cgroup("/vllm"), .path = "/vllm"}};
    fake_.accounts[0].usage = 30 << 20;
    fake_.accounts[0].local = 30 << 20;
    sandbox_.write("cgroup/vllm/memory.current", "4194304\n");
    sandbox_.write("cgroup/vllm/memory.max", "max\n");
    EXPECT_EQ(run({"doctor"}).out.find("memory.max of"), std::string::npos);
    sandbox_.write("cgroup/vllm/memory.max", "67108864\n");
    EXPECT_EQ(run({"doctor"}).out.find("memory.max of"), std::string::npos);
    sandbox_.write("cgroup/vllm/memory.max", "16777216\n");
    expect("memory.max", "warn", "memory.max of /vllm does not hold: the driver took 30.00 MiB", 0);
    fake_.accounts[0].charged = 30 << 20;
    EXPECT_EQ(run({"doctor"}).out.find("memory.max of"), std::string::npos);
}

TEST_F(Doctor, ALimitAboveTheMachinesMemoryIsNamed) {
    fake_.accounts = {{.id = sandbox_.add_cgroup("/vllm"), .path = "/vllm"}};
    sandbox_.write("cgroup/vllm/memory.current", "4194304\n");
    sandbox_.write("cgroup/vllm/memory.max", "17179869184\n"); // all that there is
    EXPECT_EQ(run({"doctor"}).out.find("never binds"), std::string::npos);
    sandbox_.write("cgroup/vllm/memory.max", "137438953472\n");
    expect("memory.max", "warn",
           "memory.max of /vllm is 128.00 GiB, and the machine has 16.00 GiB: it never binds", 0);
    sandbox_.write("cgroup/vllm/memory.max", "max\n");
    fake_.accounts[0].hard = 20ULL << 30;
    expect("hard", "warn", "hard of /vllm is 20.00 GiB", 0);
}

TEST_F(Doctor, TheMachineComesFirst) {
    fake_.accounts = {{.id = sandbox_.add_cgroup("/vllm"), .path = "/vllm"}};
    fake_.accounts[0].local = 3ULL << 30;
    fake_.status.available = 8ULL << 30;
    expect("memory", "ok", "8.00 GiB of 16.00 GiB available; /vllm holds 3.00 GiB", 0);
    fake_.status.available = 600ULL << 20;
    expect("memory", "warn", "600.00 MiB of 16.00 GiB available; /vllm", 0);
    fake_.status.available = 0;
    fake_.status.module_version = "0.0.1";
    expect("memory", "fail", "0 B of 16.00 GiB available; /vllm holds 3.00 GiB", 1);
    EXPECT_TRUE(run({"doctor"}).out.starts_with("fail  memory: 0 B of"));

    fake_.status.available = 8ULL << 30;
    sandbox_.write("proc/pressure/memory", "some avg10=42.00 avg60=1.00 avg300=0.00 total=1\n"
                                           "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
    expect("memory", "warn", "tasks waited for memory for 42 % of the last 10 s", 0);
}

TEST_F(Doctor, AStepThatMayComeIsToldBeforeIt) {
    sandbox_.add_cgroup("/vllm");
    sandbox_.write("var/lib/umacctd/steps",
                   R"({"floor_bytes":0,"accounts":[{"path":"/gone","steps":[{"seconds":10,)"
                   R"("bytes":900000000000,"time_ms":1}]},{"path":"/vllm","steps":[{"seconds":3,)"
                   R"("bytes":5000000000,"time_ms":1},{"seconds":10,"bytes":800000000000,)"
                   R"("time_ms":1}]}]})");
    expect("largest step", "warn", "/vllm grew by 745.06 GiB within 10 s before; ", 0);
    EXPECT_NE(run({"doctor"}).out.find("floor = '5G', its growth in 3 s"), std::string::npos);
    sandbox_.write("var/lib/umacctd/steps",
                   R"({"floor_bytes":0,"accounts":[{"path":"/vllm","steps":[{"seconds":10,)"
                   R"("bytes":4096,"time_ms":1}]}]})");
    expect("largest step", "ok", "/vllm grew by 4.00 KiB within 10 s before; ", 0);
}

TEST_F(Doctor, MemoryThatIsSetAsideIsNamed) {
    const std::string meminfo = "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n";
    const auto has_hint = [this](const std::string &says) {
        return check("set aside")["hint"].get<std::string>().find(says) != std::string::npos;
    };

    expect("set aside", "ok", "nothing is kept from the driver", 0);
    sandbox_.write("proc/meminfo", meminfo + "CmaTotal: 65536 kB\nCmaFree: 60000 kB\n");
    expect("set aside", "ok", "64.00 MiB set aside for CMA", 0);
    sandbox_.write("proc/meminfo", meminfo + "CmaTotal: 524288 kB\nCmaFree: 102400 kB\n");
    expect("set aside", "warn",
           "512.00 MiB set aside for CMA, 100.00 MiB of it free: what programs use can be there, "
           "but neither the driver's memory nor what RDMA registers",
           0);
    EXPECT_TRUE(has_hint("cma=SIZE with less"));

    sandbox_.write("proc/meminfo", meminfo + "CmaTotal: 65536 kB\nCmaFree: 1114112 kB\n");
    expect("set aside", "warn", "1.06 GiB set aside for kexec handover (KHO) and CMA", 0);
    EXPECT_TRUE(has_hint("kho=off")) << "CmaTotal doesn't have it";
    sandbox_.write("proc/meminfo", meminfo + "CmaTotal: 0 kB\nCmaFree: 1024 kB\n");
    sandbox_.write("proc/zoneinfo", "Node 0, zone   Normal\n  pages free     100\n"
                                    "        managed  4000000\n        cma      262144\n");
    sandbox_.write("proc/buddyinfo", "Node 0, zone   Normal 1 1 1\n");
    expect("set aside", "warn", "1.00 GiB set aside for kexec handover (KHO), 1.00 MiB of it free",
           0);
    EXPECT_EQ(check("set aside")["values"]["kho_bytes"], 1ULL << 30) << "page cache is in it";
}

TEST_F(Doctor, RayUnderAViewOrALimit) {
    const auto no_ray = [this] { return run({"doctor"}).out.find("raylet") == std::string::npos; };
    const auto environment = [this](const std::string &text) {
        sandbox_.write("proc/77/environ", std::string("HOME=/", 6) + '\0' + text + '\0');
    };

    fake_.accounts = {{.id = sandbox_.add_cgroup("/"), .path = "/"},
                      {.id = sandbox_.add_cgroup("/vllm"), .path = "/vllm"}};
    sandbox_.add_cgroup("/vllm/below");
    sandbox_.add_process(77, "/vllm/below");
    sandbox_.write("proc/77/comm", "python3\n");
    EXPECT_TRUE(no_ray());
    sandbox_.write("proc/77/comm", "raylet\n");
    expect("ray", "ok",
           "raylet (77) of /vllm/below: it kills workers when 95 % of 16.00 GiB, the machine's", 0);

    Account &vllm = fake_.accounts[1];
    vllm.effective = vllm.hard = 1ULL << 30;
    expect("ray", "ok", "of 16.00 GiB, the machine's", 0);
    vllm.view = true;
    expect("ray", "warn", "when 95 % of 1.00 GiB, its limit, are in use", 0);
    EXPECT_NE(check("ray")["hint"].get<std::string>().find("'umacct view /vllm/below off'"),
              std::string::npos);
    environment("RAY_memory_usage_threshold=0.97");
    expect("ray", "warn", "when 97 % of 1.00 GiB", 0);
    environment("RAY_memory_usage_threshold=0.99");
    expect("ray", "ok", "when 99 % of 1.00 GiB", 0);
    environment("RAY_memory_monitor_refresh_ms=0");
    expect("ray", "ok", "its memory monitor is off", 0);

    environment("");
    vllm.view = false;
    vllm.effective = vllm.hard = std::nullopt;
    sandbox_.write("cgroup/vllm/memory.max", "2147483648\n");
    vllm.charge_effective = UMACCT_CHARGE_OFF;
    expect("ray", "ok", "of 16.00 GiB, the machine's", 0);
    vllm.charge_effective = UMACCT_CHARGE_ON;
    expect("ray", "warn", "when 95 % of 2.00 GiB, its limit", 0);
    vllm.charge_effective = UMACCT_CHARGE_OFF;
    fake_.accounts[0].view = true;
    expect("ray", "warn", "when 95 % of 16.00 GiB, its view of the machine, are in use", 0);
}

TEST_F(Doctor, WhatTheKernelKilledInTheLastHour) {
    expect("killed", "ok", "not visible to you", 0);
    sandbox_.write("proc/uptime", "10000.00 20000.00\n");
    sandbox_.write("dev/kmsg",
                   "4,100,1000000,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,"
                   "mems_allowed=0,global_oom,task_memcg=/early,task=early,pid=1,uid=0\n"
                   "3,101,9000000000,-;NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory "
                   "[NV_ERR_NO_MEMORY] (0x00000051)\n"
                   " SUBSYSTEM=pci\n");
    expect("killed", "ok", "killed no process", 0);
    expect("driver's log", "ok", "logged NV_ERR_NO_MEMORY 1 time:", 0);
    sandbox_.write("dev/kmsg",
                   "4,100,9900000000,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),"
                   "cpuset=/,mems_allowed=0,global_oom,task_memcg=/db,task=postgres,pid=12,uid=0\n"
                   "4,103,9900000001,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),"
                   "cpuset=/,mems_allowed=0,oom_memcg=/vllm,task_memcg=/vllm/a,task=python3,"
                   "pid=77,uid=0\n");
    expect("killed", "warn",
           "killed 2 processes for lack of memory: postgres (12) of /db, as the machine had no "
           "memory; python3 (77) of /vllm/a, at its cgroup's memory.max",
           0);
}

TEST_F(Doctor, WhatIsHealthyIsOneLineForEachGroup) {
    const std::string text = run({"doctor"}).out;
    const std::string all = run({"doctor", "-v"}).out;
    const json document = run_json({"doctor", "--json"});

    EXPECT_NE(text.find("\nok    driver: 550.163.01, open flavour, accounted; 1 more check is"),
              std::string::npos)
        << text;
    EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 14) << text;
    EXPECT_EQ(std::count(all.begin(), all.end(), '\n'),
              static_cast<long>(document["checks"].size()) + 2)
        << all;
}

TEST_F(Doctor, TheReportOfASparkHasNoNames) {
    fake_.accounts = {{.id = sandbox_.add_cgroup("/secret"), .path = "/secret"}};
    fake_.accounts[0].local = 15ULL << 30;
    fake_.status.available = 0;
    sandbox_.write("sys/class/dmi/id/product_name", "NVIDIA_DGX_Spark\n");
    sandbox_.write("sys/class/dmi/id/sys_vendor", "NVIDIA\n");
    const std::string text = run({"doctor", "--spark-report", "-"}).out;

    EXPECT_NE(text.find("NVIDIA NVIDIA_DGX_Spark"), std::string::npos) << text;
    EXPECT_NE(text.find("6.12.1-test"), std::string::npos) << text;
    EXPECT_EQ(text.find("secret"), std::string::npos) << text;
}

TEST_F(Doctor, TheReportOfASparkIsAFile) {
    const std::filesystem::path file = sandbox_.root() / "spark.txt";
    std::ifstream in;

    // CUDA's library, or a GPU, is missing here.
    const auto ran = run({"doctor", "--spark-report", file.c_str()});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_NE(ran.out.find("spark.txt: "), std::string::npos) << ran.out;
    in.open(file);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    EXPECT_NE(text.find("cuInit and a context"), std::string::npos) << text;
    EXPECT_NE(text.find("cuMemAlloc "), std::string::npos) << text;
    EXPECT_NE(run({"doctor", "--spark-report", sandbox_.root().c_str()}).code, 0) << "a folder";
}

/// A step of 1 GiB, and what it changed.
doctor::SparkStep step_of(std::int64_t fell, std::int64_t usage, std::int64_t cgroup,
                          std::int64_t charged = 0) {
    constexpr std::uint64_t gib = 1ULL << 30;
    doctor::SparkStep step{.name = "a step", .size = gib};
    const auto to = [](std::uint64_t from, std::int64_t mib) {
        return from + static_cast<std::uint64_t>(mib * (1 << 20));
    };

    step.before.available = 8 * gib;
    step.before.cgroup = gib;
    step.before.counted = doctor::Sight::Counted{};
    step.after = step.during = step.before;
    step.during.available = to(step.before.available, -fell);
    step.during.cgroup = to(*step.before.cgroup, cgroup);
    step.during.counted->usage = to(0, usage);
    step.during.counted->charged = to(0, charged);
    return step;
}

TEST(SparkStep, EachByteIsCountedOnce) {
    using doctor::judge;
    using doctor::Verdict;

    EXPECT_EQ(judge(step_of(1024, 1024, 1)), Verdict::right);
    EXPECT_EQ(judge(step_of(1024, 0, 1025)), Verdict::right) << "the process's own";
    EXPECT_EQ(judge(step_of(1030, 1024, 1024, 1024)), Verdict::right) << "charged to it";
    EXPECT_EQ(judge(step_of(1024, 1024, 1024)), Verdict::doubled);
    EXPECT_EQ(judge(step_of(10, 1024, 0)), Verdict::doubled) << "the machine doesn't lack it";
    EXPECT_EQ(judge(step_of(1024, 0, 2)), Verdict::blind);
    EXPECT_EQ(judge(step_of(1024, 900, 2)), Verdict::blind);
    EXPECT_EQ(judge(step_of(3, 2, 1)), Verdict::elsewhere);

    doctor::SparkStep kept = step_of(1024, 1024, 1);
    kept.after = kept.during;
    EXPECT_EQ(judge(kept), Verdict::kept);
    doctor::SparkStep metadata = step_of(1044, 1064, 1);
    metadata.during.counted->metadata = 40ULL << 20;
    EXPECT_EQ(judge(metadata), Verdict::right);
    doctor::SparkStep alone = step_of(1024, 0, 0);
    alone.before.counted = alone.during.counted = std::nullopt;
    EXPECT_EQ(judge(alone), Verdict::uncounted);
}

TEST_F(Doctor, RuntimesAreNamed) {
    expect("runtimes", "ok", "none found", 0);
    sandbox_.write("run/docker.sock", "");
    sandbox_.write("run/systemd/system/x", "");
    expect("runtimes", "ok", "systemd, docker", 0);
}

TEST_F(Doctor, WhatTheModuleSaysIsPrintable) {
    fake_.status.driver_version = "1\x1b[2J";
    EXPECT_EQ(run({"doctor"}).out.find('\x1b'), std::string::npos);
}

} // namespace
} // namespace umacct
