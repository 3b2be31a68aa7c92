// SPDX-License-Identifier: GPL-2.0-or-later
/// Whether the driver would get an amount of memory, in blocks of a size. Decided from readings
/// alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/memory/protection.h"
#include "lib/memory/survey.h"
#include "lib/memory/zones.h"

namespace umacct {

/// Allocation size of NVIDIA's driver for models.
constexpr std::uint64_t default_block = 2ULL << 20;

/// The driver writes down some 40 bytes for a page of 4 KiB, and the kernel has page tables
/// and slabs for it: a 64th is more than that.
constexpr std::uint64_t overhead_share = 64;

/// "2M": a power of two, from a page on. Throws Error (usage).
std::uint64_t parse_block(const std::string &text);

/// An amount of free memory, in pages and in blocks of 1 << order pages.
struct Need {
    std::size_t order = 0;
    std::uint64_t pages = 0;
    std::uint64_t blocks = 0;

    std::uint64_t block_pages() const { return std::uint64_t{1} << order; }
};

/// Returns the need of a driver allocation, its metadata included.
Need need_of_driver(std::uint64_t bytes, std::uint64_t block);

/// Returns the need of that many bytes and no more.
Need need_of(std::uint64_t bytes, std::uint64_t block);

/// The missing part of a need.
struct Shortfall {
    std::uint64_t pages = 0;
    std::uint64_t blocks = 0;

    bool none() const { return pages == 0 && blocks == 0; }
};

Shortfall shortfall(const Need &need, const Zones &zones);

/// A bound that keeps the driver from available memory.
struct Bound {
    std::string what;                ///< "the hard limit of /a"
    std::uint64_t left = 0;          ///< bytes
    std::uint64_t after_reclaim = 0; ///< the same, without page cache
};

enum class Prospect {
    fits,             ///< now, without waiting
    after_reclaim,    ///< fits once page cache is reclaimed
    after_compaction, ///< perhaps, when pages are moved as well
    none,
};

struct Preflight {
    Prospect prospect = Prospect::none;
    std::uint64_t free = 0;       ///< bytes in such blocks now
    std::uint64_t cache = 0;      ///< bytes of page cache that could be given back
    std::uint64_t to_reclaim = 0; ///< bytes of it that would have to be
    std::uint64_t missing = 0;    ///< bytes, where there is no prospect
    std::uint64_t kept = 0;       ///< bytes of page cache that memory.min protects
    std::string kept_by;          ///< cgroup whose memory.min protects it; empty if none does
    std::optional<Bound> bound;   ///< the obstacle, if it isn't memory
};

/// survey: where it could be made, else less is known for certain.
Preflight preflight(std::uint64_t bytes, std::uint64_t block, const Zones &zones,
                    const std::optional<Survey> &survey, const std::vector<Bound> &bounds,
                    const Protection &protection = {});

} // namespace umacct
