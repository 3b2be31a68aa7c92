// SPDX-License-Identifier: GPL-2.0-or-later
/// This machine: its cgroups, whom they are for and its memory, all below one root, so
/// that tests have a machine of their own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "lib/host/cgroup.h"
#include "lib/host/meminfo.h"
#include "lib/module/module.h"
#include "lib/owners/owners.h"
#include "lib/owners/target.h"

namespace umacct {

/// What the kernel's own controller says of a cgroup.
struct MemoryController {
    std::optional<std::uint64_t> current; ///< empty where it can't be read
    std::optional<std::uint64_t> max;     ///< the same; UMACCT_UNLIMITED for "max"
    std::optional<Pressure> pressure;     ///< where it was read: that takes a file of each
};

/// From the module where it knows; else from the cgroup's directory.
MemoryController memory_controller(const Cgroups &cgroups, const Account &account);
/// The same, with the pressure.
MemoryController memory_and_pressure(const Cgroups &cgroups, const Account &account);

/// Which start of the machine it is; empty where that isn't known.
std::string boot_id(const std::filesystem::path &proc);

class Machine {
public:
    /// proc: where procfs is. root: where /sys, /run, /var and the like are. connect: asks the
    /// module, where it may be loaded.
    Machine(std::filesystem::path proc, std::filesystem::path root,
            Connection::Connect connect = {});

    const Cgroups &cgroups() const { return cgroups_; }

    const Owners &owners() const { return owners_; }

    /// Looks for new names, for who runs for long.
    void refresh_owners() { owners_.refresh(); }

    /// Has other programs know what this one read of them: to be called again and again.
    void share_owners() { owners_.share(); }

    Target resolve(std::string_view target) const {
        return resolve_target(target, cgroups_, owners_);
    }

    /// The machine's memory, whatever view the caller's own cgroup has: what a view changes is
    /// the module's to say. Where it isn't loaded there is no view. A caller that may not see
    /// all, and so has no figures from the module, gets what /proc/meminfo tells it.
    /// Asks over a connection of its own: any thread may call it. Throws Error.
    Meminfo meminfo() const;
    /// The same, for who has the module's answer already.
    Meminfo meminfo(const Status &status) const;

    /// How long tasks wait for memory; empty where the kernel doesn't tell.
    std::optional<Pressure> pressure() const;

    const std::filesystem::path &proc() const { return proc_; }

    const std::filesystem::path &root() const { return root_; }

private:
    std::filesystem::path proc_;
    std::filesystem::path root_;
    Connection::Connect connect_;
    Cgroups cgroups_;
    Owners owners_;
};

} // namespace umacct
