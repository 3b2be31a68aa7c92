// SPDX-License-Identifier: GPL-2.0-or-later
/// Page cache that the kernel doesn't give back, because it is protected by memory.min: neither
/// the driver gets it nor any program. memory.low is another thing: where nothing else is left,
/// the kernel takes what that protects, within the same attempt, and the driver has it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/host/cgroup.h"

namespace umacct {

/// One cgroup's memory with its descendants', in bytes.
struct MemoryUse {
    std::string path;
    std::uint64_t usage = 0; ///< memory.current
    std::uint64_t min = 0;   ///< memory.min; UMACCT_UNLIMITED for "max"
    std::uint64_t cache = 0; ///< page cache of memory.stat
};

/// Protected page cache of one cgroup, without its descendants'.
struct ProtectedCache {
    std::string path;
    std::uint64_t bytes = 0;
    std::string by; ///< cgroup whose memory.min protects it: itself or an ancestor
};

class Protection {
public:
    Protection() = default;

    /// cgroups: all of them but the root, parents before children, as Cgroups::for_each() visits
    /// them. recursive: the hierarchy is mounted with memory_recursiveprot. Computed as the
    /// kernel's effective_protection() does it, from what each uses now. What others give back
    /// changes who keeps how much of what is protected above; in all it may become less, never
    /// more.
    Protection(const std::vector<MemoryUse> &cgroups, bool recursive);

    static Protection read(const Cgroups &cgroups);

    /// Those that keep something.
    const std::vector<ProtectedCache> &list() const { return list_; }

    std::uint64_t total() const { return below("/"); }

    /// Returns the protected memory below a cgroup; without its own, which its own limit doesn't
    /// spare.
    std::uint64_t below(std::string_view path) const;

    /// Returns the cgroup whose memory.min protects most; empty if nothing is protected.
    std::string most() const;

private:
    std::vector<ProtectedCache> list_;
};

} // namespace umacct
