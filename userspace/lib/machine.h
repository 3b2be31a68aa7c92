// SPDX-License-Identifier: GPL-2.0-or-later
/// This machine: its cgroups, their owners and its memory, all below one root, so
/// that tests have a machine of their own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "lib/arithmetic.h"
#include "lib/host/cgroup.h"
#include "lib/host/meminfo.h"
#include "lib/module/module.h"
#include "lib/owners/owners.h"
#include "lib/owners/target.h"

namespace umacct {

/// Computes TOTAL, the memory that would come back to the machine if all of its users ended: what
/// the driver took and memory.current doesn't see, and memory.current without the cache that the
/// kernel takes back by itself. docs/limits.md defines it for users.
constexpr std::uint64_t total_of(std::uint64_t driver, std::uint64_t charged, std::uint64_t current,
                                 std::uint64_t cache) {
    return without(driver, charged) + without(current, cache);
}

/// Returns the cache in a cgroup's memory.stat, for total_of(): page cache that isn't locked, and
/// slab that can be reclaimed.
std::uint64_t cache_of(const std::map<std::string, std::uint64_t> &stat);

/// Figures of the kernel's memory controller for a cgroup.
struct MemoryController {
    std::optional<std::uint64_t> current; ///< empty where it can't be read
    std::optional<std::uint64_t> max;     ///< the same; UMACCT_UNLIMITED for "max"

    // Read on demand: they cost files of each cgroup.

    std::optional<Pressure> pressure;
    std::optional<std::uint64_t> total; ///< see total_of(); driver memory alone without current
    std::optional<std::uint64_t> cache; ///< see cache_of()
    std::optional<std::uint64_t> swap;  ///< memory on swap, beside current
};

/// Files of a cgroup to read.
struct Files {
    bool total = false; ///< those for total, cache and swap
    bool pressure = false;
};

/// Takes the figures from the module if it has them, else from the cgroup's directory.
MemoryController memory_controller(const Cgroups &cgroups, const Account &account,
                                   Files files = {});

/// Memory of a process; empty if it is gone or can't be looked at.
struct ProcessMemory {
    /// Driver, anonymous and shared memory and page tables, as total_of(). Shared memory counts for
    /// each process that has it mapped.
    std::optional<std::uint64_t> total;
    std::optional<std::uint64_t> swap;
};

ProcessMemory process_memory(const std::filesystem::path &proc, const Client &client);

/// Returns the part of a process's RssShmem that is the driver's pages: all of them from 615 on.
std::uint64_t driver_in_rss(const std::filesystem::path &proc, const Client &client);

/// Returns the id of this boot; empty if not known.
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
    /// all, and so has no figures from the module, gets those of /proc/meminfo.
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
    Owners owners_; // copies cgroups_, so it is declared after it
};

} // namespace umacct
