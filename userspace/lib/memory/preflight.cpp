// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/memory/preflight.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "lib/arithmetic.h"
#include "lib/error.h"
#include "lib/text.h"
#include "lib/units.h"

namespace umacct {

namespace {

/// Memory for the driver's metadata breaks up larger blocks.
constexpr std::uint64_t overhead_least = 2ULL << 20;

std::uint64_t divided_up(std::uint64_t a, std::uint64_t b) {
    return a / b + (a % b != 0 ? 1 : 0);
}

/// Memory for devices that is not free: page cache there is of no use to the driver.
std::uint64_t kept_for_devices(const Zones &zones) {
    std::uint64_t pages = 0;

    for (const Zone &zone : zones.list())
        pages += without(zone.cma, zone.cma_free);
    return pages;
}

/// kept: pages of protected page cache.
Preflight by_memory(const Need &need, const Zones &zones, const std::optional<Survey> &survey,
                    std::uint64_t kept) {
    const Shortfall now = shortfall(need, zones);
    const std::uint64_t devices = kept_for_devices(zones);
    std::uint64_t cache =
        without(survey ? survey->clean_pages : zones.sum(&Zone::file), devices + kept);
    // The kernel keeps some of it whatever happens, as MemAvailable has it.
    cache -= std::min(cache / 2, zones.sum(&Zone::low));
    // Blocks that would be free: for certain; and perhaps, all of them if none was inspected.
    const std::uint64_t not_these = divided_up(devices, need.block_pages());
    const std::uint64_t certain = survey ? without(survey->reclaimable, not_these) : 0;
    const std::uint64_t perhaps =
        survey ? without(survey->obtainable(zones.sum(&Zone::in_cpu_lists)), not_these)
               : now.blocks;
    Preflight result{.free = (zones.usable_blocks(need.order) << need.order) * page_size(),
                     .cache = cache * page_size(),
                     .kept_by = {},
                     .bound = {}};

    if (now.none())
        result.prospect = Prospect::fits;
    else if (now.pages > cache)
        result.missing = (now.pages - cache) * page_size();
    else if (now.blocks <= certain)
        result.prospect = Prospect::after_reclaim;
    else if (now.blocks <= perhaps)
        result.prospect = Prospect::after_compaction;
    else
        result.missing = ((now.blocks - perhaps) << need.order) * page_size();
    if (result.prospect == Prospect::after_reclaim)
        result.to_reclaim = std::max(now.pages, now.blocks << need.order) * page_size();
    else if (result.prospect == Prospect::after_compaction)
        result.to_reclaim = now.pages * page_size();
    return result;
}

} // namespace

std::uint64_t parse_block(const std::string &text) {
    const std::uint64_t bytes = parse_size(text);

    if (!std::has_single_bit(bytes) || bytes < page_size())
        throw Error(
            Failure::usage,
            fmt::format("'{}' is an invalid block size: it must be a power of two, at least {}",
                        printable(text), format_size(page_size())),
            "for example 2M or 64K");
    return bytes;
}

Need need_of(std::uint64_t bytes, std::uint64_t block) {
    Need need;

    need.order = static_cast<std::size_t>(std::countr_zero(
        std::max<std::uint64_t>(1, std::bit_ceil(divided_up(block, page_size())))));
    need.blocks = divided_up(divided_up(bytes, page_size()), need.block_pages());
    need.pages = need.blocks << need.order;
    return need;
}

Need need_of_driver(std::uint64_t bytes, std::uint64_t block) {
    Need need = need_of(bytes, block);
    const std::uint64_t overhead =
        need.pages / overhead_share + divided_up(overhead_least, page_size());

    need.pages += overhead;
    need.blocks += divided_up(overhead, need.block_pages());
    return need;
}

Shortfall shortfall(const Need &need, const Zones &zones) {
    return {.pages = without(need.pages, zones.usable()),
            .blocks = without(need.blocks, zones.usable_blocks(need.order))};
}

Preflight preflight(std::uint64_t bytes, std::uint64_t block, const Zones &zones,
                    const std::optional<Survey> &survey, const std::vector<Bound> &bounds,
                    const Protection &protection) {
    const Need need = need_of_driver(bytes, block);
    const std::uint64_t kept = protection.total();
    Preflight result = by_memory(need, zones, survey, kept / page_size());

    result.kept = kept;
    if (kept > 0 && result.prospect != by_memory(need, zones, survey, 0).prospect)
        result.kept_by = protection.most();
    for (const Bound &bound : bounds) {
        if (bound.left >= bytes)
            continue;
        if (bound.after_reclaim >= bytes) {
            if (result.prospect == Prospect::fits) {
                result.prospect = Prospect::after_reclaim;
                result.to_reclaim = bytes - bound.left;
                result.bound = bound;
            }
            continue;
        }
        if (!result.bound || result.prospect != Prospect::none ||
            bytes - bound.after_reclaim > result.missing) {
            result.missing = std::max(result.missing, bytes - bound.after_reclaim);
            result.bound = bound;
        }
        result.prospect = Prospect::none;
        result.to_reclaim = 0;
    }
    return result;
}

} // namespace umacct
