// SPDX-License-Identifier: GPL-2.0-or-later
/// Free memory of the kernel's page allocator, as far as NVIDIA's driver can use it: its pages
/// can't be moved, so CMA areas and the zone for movable memory are not for it, nor is memory below
/// a zone's watermarks. Counts are pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <istream>
#include <string>
#include <vector>

namespace umacct {

struct Zone {
    std::uint32_t node = 0;
    std::string name;
    std::uint64_t free = 0;
    std::uint64_t low = 0;        ///< the watermark under which the kernel begins to reclaim
    std::uint64_t protection = 0; ///< kept for what can be in lower zones alone
    std::uint64_t first = 0;      ///< page number
    std::uint64_t spanned = 0;
    std::uint64_t managed = 0;
    std::uint64_t cma = 0;      ///< kept for devices, free or not
    std::uint64_t cma_free = 0; ///< free pages of those
    std::uint64_t file = 0;     ///< page cache
    std::uint64_t in_cpu_lists = 0;
    std::uint64_t reserved = 0;          ///< kept for what may not wait; an upper bound
    std::vector<std::uint64_t> blocks;   ///< free blocks, by order
    std::vector<std::uint64_t> unusable; ///< blocks of those that the driver can't use

    /// Returns the pages that can be allocated before the kernel begins to reclaim.
    std::uint64_t usable() const;
    /// Blocks of that order that may be, as they are or as parts of larger ones.
    std::uint64_t usable_blocks(std::size_t order) const;
};

class Zones {
public:
    /// Parses /proc/zoneinfo, buddyinfo and pagetypeinfo; the last may be empty, as only root reads
    /// it. Throws Error where the others are malformed.
    Zones(std::istream &zoneinfo, std::istream &buddyinfo, std::istream &pagetypeinfo);

    static Zones read(const std::filesystem::path &proc);

    /// Reads the free blocks anew, from buddyinfo alone: it costs a tenth of all the rest, which
    /// seldom changes.
    void refresh(std::istream &buddyinfo);
    void refresh(const std::filesystem::path &proc);

    /// Those that the driver's pages come from.
    const std::vector<Zone> &list() const { return zones_; }

    /// Adds up a member of all zones.
    template <class Value>
    std::uint64_t sum(Value Zone::*member) const {
        std::uint64_t total = 0;

        for (const Zone &zone : zones_)
            total += std::invoke(member, zone);
        return total;
    }

    std::uint64_t usable() const { return sum(&Zone::usable); }

    std::uint64_t usable_blocks(std::size_t order) const;
    /// The largest block that the allocator keeps.
    std::size_t largest_order() const;

private:
    std::vector<Zone> zones_;
};

std::uint64_t page_size();

} // namespace umacct
