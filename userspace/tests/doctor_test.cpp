// SPDX-License-Identifier: GPL-2.0-or-later
/// The doctor on machines that have one thing wrong each.
#include <ctime>
#include <string>

#include "lib/host/program.h"
#include "tests/history_story.h"
#include "tests/tool_fixture.h"

namespace umacct {
namespace {

using nlohmann::json;

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
        {.time_ms = now - 3700 * second, .type = "failed", .path = "/early"});
    story.pass(2);
    expect("requests", "ok", "each request of the last hour", 0);
    story.happenings.push_back({.time_ms = now - 30 * second,
                                .type = "failed",
                                .path = "/vllm",
                                .limit_path = "/most",
                                .size = 1ULL << 30,
                                .usage = 1ULL << 20,
                                .limit = 1ULL << 40,
                                .count = 2});
    story.pass(2);
    expect("requests", "warn", "2 requests failed; the last one at", 0);
    expect("requests", "warn",
           "of /vllm: the driver had no memory for 1.00 GiB: 1.00 MiB available; /most holds "
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
    expect("blind spot", "warn", "1.00 MiB charged, 2.00 MiB uncharged", 0);
    EXPECT_EQ(check("blind spot")["values"]["uncharged_bytes"], 2 << 20);
    fake_.status.flags |= UMACCT_STATUS_NATIVE_CHARGE;
    expect("blind spot", "ok", "charges its pages itself", 0);
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
