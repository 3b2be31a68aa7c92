// SPDX-License-Identifier: GPL-2.0-or-later
/// Contents of each block of memory, page by page, from /proc/kpageflags, which only root can read:
/// the blocks that would be free without page cache, and those that would be if the rest of their
/// pages moved away.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include "lib/memory/zones.h"

namespace umacct {

/// Blocks of one size; each is counted once.
struct Survey {
    std::uint64_t reclaimable = 0; ///< nothing but free pages and clean page cache
    std::uint64_t movable = 0;     ///< and pages that the kernel can move
    /// And pages that nothing is known of, by how many: they may be free, in a CPU's list.
    std::vector<std::uint64_t> unknown;

    std::uint64_t clean_pages = 0; ///< page cache of such blocks

    /// Call before add(): marks the flags of a page whose cgroup's page cache may be protected.
    void keep(std::uint64_t &flags);
    /// The flags of all the pages of one block.
    void add(std::span<const std::uint64_t> block);

    /// Blocks that may be had without page cache and by moving, if that many unknown pages
    /// are free ones.
    std::uint64_t obtainable(std::uint64_t unknown_free) const;
};

/// keepers: ids of cgroups whose page cache may be protected: a block with some of it isn't
/// reclaimable for certain. Empty where the caller may not read it. Takes two seconds for a
/// hundred gigabytes, and twice as long with keepers.
std::optional<Survey> survey_blocks(const std::filesystem::path &proc, const Zones &zones,
                                    std::size_t order,
                                    const std::unordered_set<std::uint64_t> &keepers = {});

} // namespace umacct
