// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/doctor/check.h"

#include <array>

#include <fmt/format.h>

#include "lib/error.h"

namespace umacct::tool::doctor {

namespace {

void check_cgroups(const Examined &at, Findings &found) {
    try {
        at.machine.cgroups().mount();
    } catch (const Error &error) {
        found.add(Health::fail, "cgroups", error.what(), error.hint());
        return;
    }
    found.add(at.status, "cgroups",
              "cgroup v2 is mounted at " + at.machine.cgroups().mount().point.string());

    const std::string &root = at.machine.cgroups().mount().root;
    const auto has = at.machine.cgroups().read(root, "cgroup.controllers");
    const auto gives = at.machine.cgroups().read(root, "cgroup.subtree_control");

    if (!has || !has_word(*has, "memory"))
        found.add(Health::warn, "memory controller", "cgroup v2 has no memory controller",
                  "boot without cgroup_disable=memory and unmount cgroup v1's memory controller; "
                  "umacct's "
                  "own limits work all the same");
    else if (!gives || !has_word(*gives, "memory"))
        found.add(Health::warn, "memory controller", "it is not delegated to the cgroups below",
                  "echo +memory > " +
                      (at.machine.cgroups().mount().point / "cgroup.subtree_control").string());
    else
        found.add(Health::ok, "memory controller", "on, and delegated");
}

void check_device(const Examined &at, Findings &found) {
    const bool there = is_there(at.file("dev/nvidiactl"));

    found.warn_unless(there, "device",
                      there ? "/dev/nvidiactl is there" : "there is no /dev/nvidiactl",
                      "nvidia-modprobe, or nvidia-smi as root, makes it");
}

void check_runtimes(const Examined &at, Findings &found) {
    struct Runtime {
        const char *name;
        const char *trace;
    };

    static constexpr std::array runtimes{
        Runtime{"systemd", "run/systemd/system"}, Runtime{"docker", "run/docker.sock"},
        Runtime{"podman", "run/podman"}, Runtime{"containerd", "run/containerd/containerd.sock"},
        Runtime{"cri-o", "run/crio/crio.sock"}};
    std::string names;

    for (const Runtime &runtime : runtimes) {
        if (is_there(at.file(runtime.trace)))
            names += fmt::format("{}{}", names.empty() ? "" : ", ", runtime.name);
    }
    found.add(Health::ok, "runtimes", names.empty() ? "none found" : names);
}

} // namespace

void check_machine(const Examined &at, Findings &found) {
    found.group = "machine";
    check_cgroups(at, found);
    check_device(at, found);
    check_runtimes(at, found);
}

} // namespace umacct::tool::doctor
