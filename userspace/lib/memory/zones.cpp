// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/memory/zones.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string_view>

#include <unistd.h>

#include "lib/arithmetic.h"
#include "lib/error.h"

namespace umacct {

namespace {

/// The part of a zone that the kernel keeps for requests that can't wait: one per cent.
constexpr std::uint64_t reserved_share = 100;

/// The driver's pages may not be moved, and it doesn't ask for low ones.
bool is_for_driver(std::string_view zone) {
    static constexpr std::array<std::string_view, 3> names{"DMA", "DMA32", "Normal"};

    return std::ranges::find(names, zone) != names.end();
}

/// "Node 0, zone   Normal, ...": the words after it are left in line.
bool read_zone_name(std::istream &line, std::uint32_t &node, std::string &name) {
    std::string word;

    if (!(line >> word) || word != "Node" || !(line >> node >> word) || word != "," ||
        !(line >> word) || word != "zone" || !(line >> name))
        return false;
    if (name.ends_with(','))
        name.pop_back();
    return true;
}

Zone *find(std::vector<Zone> &zones, std::uint32_t node, const std::string &name) {
    const auto found = std::ranges::find_if(
        zones, [&](const Zone &zone) { return zone.node == node && zone.name == name; });

    return found == zones.end() ? nullptr : &*found;
}

std::vector<std::uint64_t> read_numbers(std::istream &line) {
    std::vector<std::uint64_t> numbers;

    for (std::string word; line >> word;) {
        // The kernel stops counting at some time: ">100000".
        std::istringstream number(word.front() == '>' ? word.substr(1) : word);
        std::uint64_t value = 0;

        number >> value;
        numbers.push_back(value);
    }
    return numbers;
}

/// "protection: (0, 1790, 1790)": what this zone keeps from a request that could come from
/// the zone at each place.
std::vector<std::uint64_t> read_protection(std::istream &line) {
    std::vector<std::uint64_t> values;
    char separator = 0;

    for (std::uint64_t value = 0; line >> separator >> value;)
        values.push_back(value);
    return values;
}

void read_line_of(Zone &zone, std::vector<std::uint64_t> &protection, std::istream &line) {
    std::string key;
    std::uint64_t value = 0;

    line >> key;
    if (key == "protection:")
        protection = read_protection(line);
    else if (key == "pages" && line >> key >> value)
        zone.free = value;
    else if (line >> value) {
        if (key == "count:")
            zone.in_cpu_lists += value;
        for (const auto &[name, field] :
             {std::pair{"low", &zone.low}, std::pair{"start_pfn:", &zone.first},
              std::pair{"spanned", &zone.spanned}, std::pair{"managed", &zone.managed},
              std::pair{"cma", &zone.cma}, std::pair{"nr_free_cma", &zone.cma_free}}) {
            if (key == name)
                *field = value;
        }
        if (key == "nr_zone_inactive_file" || key == "nr_zone_active_file")
            zone.file += value;
    }
}

/// All zones, in the kernel's order.
std::vector<Zone> read_zoneinfo(std::istream &zoneinfo) {
    std::vector<std::string> names;
    std::vector<Zone> zones;
    std::vector<std::vector<std::uint64_t>> protections;

    for (std::string line; std::getline(zoneinfo, line);) {
        std::istringstream head(line);
        Zone zone;

        if (read_zone_name(head, zone.node, zone.name)) {
            if (std::ranges::find(names, zone.name) == names.end())
                names.push_back(zone.name);
            zones.push_back(zone);
            protections.emplace_back();
        } else if (!zones.empty()) {
            std::istringstream words(line);

            read_line_of(zones.back(), protections.back(), words);
        }
    }
    // Its index in its node selects the protection that applies to the driver.
    const auto normal =
        static_cast<std::size_t>(std::ranges::find(names, "Normal") - names.begin());
    for (std::size_t i = 0; i < zones.size(); ++i)
        zones[i].protection = normal < protections[i].size() ? protections[i][normal] : 0;
    return zones;
}

void read_buddyinfo(std::istream &buddyinfo, std::vector<Zone> &zones) {
    for (std::string text; std::getline(buddyinfo, text);) {
        std::istringstream line(text);
        std::uint32_t node = 0;
        std::string name;

        if (!read_zone_name(line, node, name))
            continue;
        if (Zone *zone = find(zones, node, name))
            zone->blocks = read_numbers(line);
    }
}

void add(std::vector<std::uint64_t> &to, const std::vector<std::uint64_t> &counts) {
    to.resize(std::max(to.size(), counts.size()));
    for (std::size_t order = 0; order < counts.size(); ++order)
        to[order] += counts[order];
}

/// Blocks of types that are kept for others or taken out of use.
std::uint64_t reserved_blocks(const std::vector<std::string> &types,
                              const std::vector<std::uint64_t> &counts) {
    std::uint64_t blocks = 0;

    for (std::size_t i = 0; i < std::min(types.size(), counts.size()); ++i) {
        if (types[i] == "HighAtomic" || types[i] == "Isolate")
            blocks += counts[i];
    }
    return blocks;
}

/// Free blocks by type, then how many of the larger blocks are of which type.
void read_pagetypeinfo(std::istream &pagetypeinfo, std::vector<Zone> &zones) {
    std::vector<std::string> types;
    std::uint64_t pages_per_block = 0;

    for (std::string text; std::getline(pagetypeinfo, text);) {
        std::istringstream line(text);
        std::string word;
        std::uint32_t node = 0;
        std::string name;

        if (text.starts_with("Pages per block:")) {
            line.ignore(static_cast<std::streamsize>(text.find(':')) + 1);
            line >> pages_per_block;
        } else if (text.starts_with("Number of blocks type")) {
            line.ignore(
                static_cast<std::streamsize>(std::string_view("Number of blocks type").size()));
            while (line >> word)
                types.push_back(word);
        } else if (read_zone_name(line, node, name)) {
            Zone *zone = find(zones, node, name);

            if (zone == nullptr)
                continue;
            if (types.empty()) {
                line >> word >> word; // "type", and which
                if (word == "CMA" || word == "HighAtomic" || word == "Isolate")
                    add(zone->unusable, read_numbers(line));
                continue;
            }
            zone->reserved = pages_per_block * reserved_blocks(types, read_numbers(line));
        }
    }
}

} // namespace

std::uint64_t Zone::usable() const {
    return without(free, cma_free + reserved + low + protection);
}

std::uint64_t Zone::usable_blocks(std::size_t order) const {
    std::uint64_t pages = 0;

    for (std::size_t at = order; at < blocks.size(); ++at)
        pages += without(blocks[at], at < unusable.size() ? unusable[at] : 0) << at;
    return std::min(pages, usable()) >> order;
}

Zones::Zones(std::istream &zoneinfo, std::istream &buddyinfo, std::istream &pagetypeinfo) {
    std::vector<Zone> zones = read_zoneinfo(zoneinfo);

    read_buddyinfo(buddyinfo, zones);
    for (Zone &zone : zones) {
        // Assumes at first that all memory for devices is in the largest blocks.
        zone.reserved = zone.managed / reserved_share;
        zone.unusable.assign(zone.blocks.size(), 0);
    }
    if (pagetypeinfo.peek() != std::istream::traits_type::eof()) {
        read_pagetypeinfo(pagetypeinfo, zones);
    } else {
        for (Zone &zone : zones) {
            std::uint64_t left = zone.cma_free;

            for (std::size_t order = zone.blocks.size(); order-- > 0 && left > 0;) {
                zone.unusable[order] = std::min(zone.blocks[order], (left >> order) + 1);
                left = without(left, zone.unusable[order] << order);
            }
        }
    }
    std::ranges::copy_if(zones, std::back_inserter(zones_), [](const Zone &zone) {
        return is_for_driver(zone.name) && !zone.blocks.empty();
    });
    if (zones_.empty())
        throw Error(Failure::failed,
                    "cannot read the zones of memory: /proc/zoneinfo and buddyinfo have none for "
                    "the driver",
                    "umacct reads from procfs what is free: is /proc mounted?");
}

Zones Zones::read(const std::filesystem::path &proc) {
    std::ifstream zoneinfo(proc / "zoneinfo");
    std::ifstream buddyinfo(proc / "buddyinfo");
    std::ifstream pagetypeinfo(proc / "pagetypeinfo");

    return {zoneinfo, buddyinfo, pagetypeinfo};
}

void Zones::refresh(std::istream &buddyinfo) {
    read_buddyinfo(buddyinfo, zones_);
    for (Zone &zone : zones_) {
        zone.free = 0;
        for (std::size_t order = 0; order < zone.blocks.size(); ++order)
            zone.free += zone.blocks[order] << order;
    }
}

void Zones::refresh(const std::filesystem::path &proc) {
    std::ifstream buddyinfo(proc / "buddyinfo");

    refresh(buddyinfo);
}

std::uint64_t Zones::usable_blocks(std::size_t order) const {
    std::uint64_t blocks = 0;

    for (const Zone &zone : zones_)
        blocks += zone.usable_blocks(order);
    return blocks;
}

std::size_t Zones::largest_order() const {
    return std::ranges::max(zones_, {}, [](const Zone &zone) { return zone.blocks.size(); })
               .blocks.size() -
           1;
}

std::uint64_t page_size() {
    return static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

} // namespace umacct
