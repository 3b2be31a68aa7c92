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
    const std::string mounted =
        "cgroup v2 is mounted at " + at.machine.cgroups().mount().point.string();
    if (at.status)
        found.add(*at.status, "cgroups", mounted);
    else
        found.add(Health::ok, "cgroups", mounted);

    const std::string &root = at.machine.cgroups().mount().root;
    const auto has = at.machine.cgroups().read(root, "cgroup.controllers");
    const auto gives = at.machine.cgroups().read(root, "cgroup.subtree_control");

    if (!has || !has_word(*has, "memory"))
        found.add(
            Health::warn, "memory controller", "cgroup v2 has no memory controller",
            "without cgroup_disable=memory and cgroup v1's memory hierarchy it has; limits of "
            "umacct's own work all the same");
    else if (!gives || !has_word(*gives, "memory"))
        found.add(Health::warn, "memory controller", "it is not delegated to the cgroups below",
                  "echo +memory > " +
                      (at.machine.cgroups().mount().point / "cgroup.subtree_control").string());
    else
        found.add(Health::ok, "memory controller", "on, and delegated");
}

void check_device(const Examined &at, Findings &found) {
    const bool there = is_there(at.file("dev/nvidiactl"));

    found.add(there ? Health::ok : Health::warn, "device",
              there ? "/dev/nvidiactl is there" : "there is no /dev/nvidiactl",
              there ? "" : "nvidia-modprobe, or nvidia-smi as root, makes it");
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

std::span<const Check> machine_checks() {
    static constexpr std::array<Check, 3> table{check_cgroups, check_device, check_runtimes};

    return table;
}

} // namespace umacct::tool::doctor
