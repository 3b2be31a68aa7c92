// SPDX-License-Identifier: GPL-2.0-or-later
/// Statements that add up, for the machine and for a cgroup, from the kernel's counters and the
/// module's. They print nothing and guess nothing: memory that no counter owns is shown as the
/// rest.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <istream>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "lib/host/meminfo.h"
#include "lib/machine.h"
#include "lib/module/model.h"

namespace umacct {

/// The parts of the machine's memory; they don't overlap.
enum class Part : std::uint8_t {
    free,
    free_lists,
    page_cache,
    shared_memory,
    anonymous,
    hugetlb,
    slab,
    kernel_stack,
    page_tables,
    vmalloc,
    percpu,
    kernel_other,
    zram,
    cma,
    other_gpu,
    driver_charged,
    driver_uncharged,
    driver_own,
    driver_pools,
    unexplained,
};

constexpr std::size_t part_count = static_cast<std::size_t>(Part::unexplained) + 1;

/// How a part is shown.
struct PartForm {
    Part part;
    std::string_view name; ///< key in JSON
    char letter;           ///< letter in the bar
    const char *label;     ///< row in the table
    const char *colour;    ///< colour in the picture
};

/// Returns the forms in the order of the parts.
const std::array<PartForm, part_count> &part_forms();

inline const PartForm &form_of(Part part) {
    return part_forms().at(static_cast<std::size_t>(part));
}

/// Counters of the kernel's outside of /proc/meminfo, in bytes.
struct BesideMeminfo {
    std::uint64_t free_lists = 0; ///< free pages that wait in per-CPU lists
    std::uint64_t zspages = 0;    ///< zram's and zswap's compressed store
    std::uint64_t cma = 0;        ///< devices' part of CMA areas, as far as the kernel counts it
};

/// How the kernel comes to MemAvailable, in bytes.
struct AvailableStatement {
    std::uint64_t available = 0;
    std::uint64_t free = 0;
    std::uint64_t reserve = 0;   ///< part of it that is kept for the kernel itself
    std::uint64_t file = 0;      ///< page cache that can be given back
    std::uint64_t file_kept = 0; ///< part of it that stays under the watermarks
    std::uint64_t slab = 0;      ///< the kernel's objects that can be given back
    std::uint64_t slab_kept = 0; ///< likewise
    std::uint64_t other = 0;     ///< reclaimable memory that drivers report
    std::uint64_t pools = 0;     ///< the part of it that the NVIDIA driver reports, from 595.99 on
    std::int64_t rest = 0;       ///< MemAvailable less all of these; read at other moments
    std::uint64_t locked_file = 0; ///< page cache that can't be given back: not in it
};

/// The sum of the parts is the total: unexplained is what is left, and below
/// zero where counters overlap or were read at different moments.
struct Statement {
    std::uint64_t total = 0;
    bool pools_known = false; ///< otherwise what is in driver_pools is unexplained, too
    std::array<std::int64_t, part_count> parts{};
    AvailableStatement available;

    std::int64_t &operator[](Part part) { return parts.at(static_cast<std::size_t>(part)); }

    std::int64_t operator[](Part part) const { return parts.at(static_cast<std::size_t>(part)); }

    /// Returns a part's share of the memory that isn't in MemAvailable. The sum over all parts is
    /// that memory, except for the rest.
    std::int64_t taken(Part part) const;
};

/// The kernel's watermarks, in bytes, from /proc/zoneinfo.
struct Watermarks {
    std::uint64_t low = 0;        ///< sum of all zones
    std::uint64_t reserve = 0;    ///< up to here, memory isn't called available
    std::uint64_t free_lists = 0; ///< free pages in per-CPU lists

    static Watermarks read(std::istream &zoneinfo, std::uint64_t page);
};

Statement machine_statement(const Meminfo &memory, const Watermarks &watermarks,
                            const BesideMeminfo &beside, const Status &status);

/// Makes the same statement from the kernel's files as they are now.
Statement machine_statement(const Machine &machine, const Meminfo &memory, const Status &status);

/// Reads the devices' part of CMA areas, in pages, from /sys/kernel/mm/cma; empty if the kernel has
/// areas but no counters of them.
std::optional<std::uint64_t> pages_of_devices(const std::filesystem::path &cma);

/// Counters of /proc/vmstat, in pages.
struct VmCounters {
    std::uint64_t pinned = 0;  ///< currently pinned for devices; part of other parts
    std::uint64_t zspages = 0; ///< compressed memory's

    static VmCounters read(std::istream &vmstat);
};

/// Slab memory of NVIDIA's modules: mainly their metadata of allocations.
struct SlabBookkeeping {
    std::optional<std::uint64_t> pages; ///< pages of their own caches; empty if there are none
    bool partial = true;                ///< the notes of each page are not in there
};

/// slabinfo: /proc/slabinfo. caches: /sys/kernel/slab, where those that the kernel has merged
/// are links to one place. Drivers from 580 on have no cache for the notes of each page.
SlabBookkeeping bookkeeping_in_slab(std::istream &slabinfo, const std::filesystem::path &caches);

/// Pages that they have from vmalloc, from /proc/vmallocinfo; empty likewise.
std::optional<std::uint64_t> bookkeeping_in_vmalloc(std::istream &vmallocinfo);

enum class Verdict : std::uint8_t {
    none,    ///< it holds no driver memory
    blind,   ///< memory.current doesn't see all of what it holds
    charged, ///< memory.current sees it, once
    doubled, ///< memory.current has it more than once
};

std::string_view name_of(Verdict verdict);

/// One cgroup with those below it. memory.current is anonymous + file + kernel +
/// other, kernel is kernel_objects + kernel_pages; the driver's usage is once +
/// twice + unseen.
struct CgroupStatement {
    Account account;
    std::optional<std::uint64_t> current; ///< the other figures of the kernel's are 0 without
    std::uint64_t anonymous = 0;
    std::uint64_t file = 0;
    std::uint64_t kernel = 0;
    std::uint64_t kernel_objects = 0; ///< slab, stacks, page tables, percpu, vmalloc, zswap
    std::uint64_t kernel_pages = 0; ///< whole pages: charged driver memory, managed memory, others
    std::int64_t other = 0;         ///< sockets; and what per-CPU stocks hold
    std::uint64_t once = 0;
    std::uint64_t twice = 0;
    std::uint64_t unseen = 0;
    Verdict verdict = Verdict::none;
};

/// stat: its memory.stat. slack: how far the kernel's counters may lag.
CgroupStatement cgroup_statement(const Account &account, std::optional<std::uint64_t> current,
                                 std::map<std::string, std::uint64_t> stat, std::uint64_t slack);

} // namespace umacct
