// SPDX-License-Identifier: GPL-2.0-or-later
/// Makes the kernel reclaim an amount of memory, and compact free memory.
#pragma once

#include <cstdint>
#include <filesystem>

#include "lib/host/cgroup.h"

namespace umacct {

class Reclaimer {
public:
    /// root: where /sys is. anonymous: programs' memory too, into swap; else page cache
    /// alone, the coldest first.
    Reclaimer(const Cgroups &cgroups, std::filesystem::path proc, std::filesystem::path root,
              bool anonymous);

    /// Returns whether it reclaimed all of it. Throws Error where it can't be asked.
    bool reclaim(std::uint64_t bytes);

    /// Moves what can be moved, of the whole machine; may take seconds. Throws Error.
    void compact() const;

private:
    bool swaps() const;
    void empty_cpu_lists() const;

    const Cgroups &cgroups_;
    std::filesystem::path proc_;
    std::filesystem::path root_;
    bool anonymous_;
    bool takes_swappiness_ = true; ///< memory.reclaim does, as far as is known
};

} // namespace umacct
