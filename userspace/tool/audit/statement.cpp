// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/audit/statement.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <numeric>
#include <set>
#include <sstream>
#include <vector>

#include "lib/arithmetic.h"
#include "lib/memory/zones.h"

namespace umacct {

namespace {

/// A share of the usage that other kernel pages (pipes, rings) may make up.
constexpr std::uint64_t usage_per_slack = 64;

/// Parses a number at the beginning; 0 without one.
std::uint64_t number_in(std::string_view text) {
    std::uint64_t number = 0;

    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

/// Splits the usage by what the kernel itself has charged.
void judge(CgroupStatement &statement, std::uint64_t slack) {
    const Account &account = statement.account;
    const std::uint64_t counted = statement.kernel_pages;
    const std::uint64_t pages = account.usage - account.metadata;
    const std::uint64_t off = std::max(counted, account.charged) - //
                              std::min(counted, account.charged);
    // The module's figure is all there is without memory.stat.
    const std::uint64_t has = !statement.current || off <= slack ? account.charged : counted;
    const std::uint64_t seen = std::min(has, pages);
    // Metadata is charged in addition while charging is on.
    const std::uint64_t beside = std::min(has - seen, account.metadata);

    statement.twice = std::min(has - seen - beside, seen);
    statement.once = seen - statement.twice;
    statement.unseen = account.usage - seen;
    if (pages == 0)
        statement.verdict = Verdict::none;
    else if (statement.twice > 0)
        statement.verdict = Verdict::doubled;
    else if (pages - seen > slack || statement.once == 0)
        statement.verdict = Verdict::blind;
    else
        statement.verdict = Verdict::charged;
}

/// Is that slab cache one of NVIDIA's modules?
bool is_drivers(std::string_view cache) {
    return cache.starts_with("nvidia_") || cache.starts_with("uvm_");
}

/// The caches that the kernel has merged with others, some of theirs among them.
std::set<std::string> shared_caches(const std::filesystem::path &caches) {
    std::map<std::filesystem::path, std::vector<std::string>> merged;
    std::set<std::string> shared;
    std::error_code error;

    // They come and go meanwhile.
    for (std::filesystem::directory_iterator at(caches, error), end; !error && at != end;
         at.increment(error)) {
        std::error_code no_link;
        const auto target = std::filesystem::read_symlink(at->path(), no_link);

        if (!no_link)
            merged[target].push_back(at->path().filename());
    }
    for (const auto &[_, names] : merged) {
        if (!std::ranges::all_of(names, is_drivers))
            shared.insert(names.begin(), names.end());
    }
    return shared;
}

} // namespace

const std::array<PartForm, part_count> &part_forms() {
    static constexpr std::array<PartForm, part_count> forms{
        PartForm{Part::free, "free", '.', "free", "#e8ece8"},
        PartForm{Part::free_lists, "free_lists", '.', "free, in per-CPU lists", "#dbe2db"},
        PartForm{Part::page_cache, "page_cache", 'c', "page cache", "#8fbc8f"},
        PartForm{Part::shared_memory, "shared_memory", 's', "shared memory, tmpfs", "#6fa8a8"},
        PartForm{Part::anonymous, "anonymous", 'a', "anonymous", "#6f8fc8"},
        PartForm{Part::hugetlb, "hugetlb", 'h', "huge page pool", "#4f6fa8"},
        PartForm{Part::slab, "slab", 'k', "kernel: slab", "#d8c8a0"},
        PartForm{Part::kernel_stack, "kernel_stack", 'k', "kernel: stacks", "#ccb888"},
        PartForm{Part::page_tables, "page_tables", 'k', "kernel: page tables", "#c0a870"},
        PartForm{Part::vmalloc, "vmalloc", 'k', "kernel: vmalloc", "#b49858"},
        PartForm{Part::percpu, "percpu", 'k', "kernel: percpu", "#a88840"},
        PartForm{Part::kernel_other, "kernel_other", 'k', "kernel: other", "#9c7828"},
        PartForm{Part::zram, "zram", 'z', "zram's store", "#7898b0"},
        PartForm{Part::cma, "cma", 'm', "devices' memory (CMA)", "#b088b0"},
        PartForm{Part::other_gpu, "other_gpu", 'g', "other GPU drivers", "#987098"},
        PartForm{Part::driver_charged, "driver_charged", 'C', "driver: charged", "#e8a860"},
        PartForm{Part::driver_uncharged, "driver_uncharged", 'U', "driver: uncharged", "#c8742c"},
        PartForm{Part::driver_own, "driver_own", 'D', "driver: its own", "#8f4f1c"},
        PartForm{Part::driver_pools, "driver_pools", 'P', "driver: its pools", "#dcb48c"},
        PartForm{Part::unexplained, "unexplained", '?', "unexplained", "#888888"},
    };

    return forms;
}

namespace {

std::int64_t as_signed(std::uint64_t bytes) {
    return static_cast<std::int64_t>(bytes);
}

/// The formula is that of si_mem_available() in the kernel's mm/show_mem.c.
AvailableStatement available_statement(const Meminfo &memory, const Watermarks &watermarks) {
    AvailableStatement it{.available = memory.available(),
                          .free = memory.free(),
                          .reserve = watermarks.reserve,
                          .file = memory.bytes("Active(file)") + memory.bytes("Inactive(file)"),
                          .slab = memory.bytes("SReclaimable"),
                          .other =
                              without(memory.bytes("KReclaimable"), memory.bytes("SReclaimable"))};

    it.file_kept = std::min(it.file / 2, watermarks.low);
    it.slab_kept = std::min((it.slab + it.other) / 2, watermarks.low);
    it.rest = as_signed(it.available) -
              std::max<std::int64_t>(as_signed(it.free + it.file + it.slab + it.other) -
                                         as_signed(it.reserve + it.file_kept + it.slab_kept),
                                     0);
    it.locked_file =
        without(memory.bytes("Buffers") + memory.bytes("Cached"), memory.bytes("Shmem") + it.file);
    return it;
}

} // namespace

std::int64_t Statement::taken(Part part) const {
    const std::int64_t whole = (*this)[part];

    switch (part) {
    case Part::free:
        return whole - as_signed(available.free) + as_signed(available.reserve);
    case Part::page_cache:
        return whole - as_signed(available.file) + as_signed(available.file_kept);
    case Part::slab:
        return whole - as_signed(available.slab) + as_signed(available.slab_kept);
    case Part::kernel_other:
        return whole - as_signed(available.other - available.pools);
    case Part::driver_pools:
        return whole - as_signed(available.pools);
    default:
        return whole;
    }
}

Statement machine_statement(const Machine &machine, const Meminfo &memory, const Status &status) {
    std::ifstream zoneinfo(machine.proc() / "zoneinfo");
    std::ifstream vmstat(machine.proc() / "vmstat");
    const Watermarks watermarks = Watermarks::read(zoneinfo, page_size());
    const auto devices = pages_of_devices(machine.root() / "sys/kernel/mm/cma");

    return machine_statement(memory, watermarks,
                             {.free_lists = watermarks.free_lists,
                              .zspages = VmCounters::read(vmstat).zspages * page_size(),
                              .cma = devices.value_or(0) * page_size()},
                             status);
}

Statement machine_statement(const Meminfo &memory, const Watermarks &watermarks,
                            const BesideMeminfo &beside, const Status &status) {
    Statement statement{.total = memory.total(), .available = {}};
    const auto set = [&](Part part, std::uint64_t bytes) { statement[part] = as_signed(bytes); };

    statement.available = available_statement(memory, watermarks);
    statement.available.pools = std::min(statement.available.other, status.pools.value_or(0));
    set(Part::free, memory.free());
    set(Part::free_lists, beside.free_lists);
    // Cached has shared memory (tmpfs, shm) in it.
    set(Part::page_cache,
        memory.bytes("Buffers") + without(memory.bytes("Cached"), memory.bytes("Shmem")));
    set(Part::shared_memory, memory.bytes("Shmem"));
    set(Part::anonymous, memory.bytes("AnonPages"));
    set(Part::hugetlb, memory.bytes("Hugetlb"));
    set(Part::slab, memory.bytes("Slab"));
    set(Part::kernel_stack, memory.bytes("KernelStack"));
    set(Part::page_tables, memory.bytes("PageTables") + memory.bytes("SecPageTables"));
    // Stacks are mapped by vmalloc, which counts them too.
    set(Part::vmalloc, without(memory.bytes("VmallocUsed"), memory.bytes("KernelStack")));
    set(Part::percpu, memory.bytes("Percpu"));
    set(Part::kernel_other, statement.available.other - statement.available.pools +
                                memory.bytes("Bounce") + memory.bytes("WritebackTmp") +
                                memory.bytes("Zswap") + memory.bytes("Balloon"));
    // zswap's store is in zspages, too.
    set(Part::zram, without(beside.zspages, memory.bytes("Zswap")));
    set(Part::cma, beside.cma);
    set(Part::other_gpu, memory.bytes("GPUActive") + memory.bytes("GPUReclaim"));
    set(Part::driver_charged, status.charged);
    // Metadata is in slab and vmalloc already.
    set(Part::driver_uncharged, without(status.uncharged(), status.metadata));
    set(Part::driver_own, status.driver_usage);
    set(Part::driver_pools, status.pools.value_or(0));
    statement.pools_known = status.pools.has_value();
    statement[Part::unexplained] =
        static_cast<std::int64_t>(statement.total) -
        std::accumulate(statement.parts.begin(), statement.parts.end(), std::int64_t{0});
    return statement;
}

Watermarks Watermarks::read(std::istream &zoneinfo, std::uint64_t page) {
    Watermarks all;
    std::uint64_t managed = 0;
    std::uint64_t boost = 0;
    std::uint64_t high = 0;

    for (std::string line; std::getline(zoneinfo, line);) {
        std::istringstream words(line);
        std::string key;
        std::uint64_t pages = 0;

        words >> key;
        if (key == "count:" && words >> pages) {
            all.free_lists += pages * page;
        } else if (key == "boost" && words >> pages) {
            boost = pages;
        } else if (key == "low" && words >> pages) {
            all.low += pages * page;
        } else if (key == "high" && words >> pages) {
            // The kernel raises all three marks of a zone for a while, for want of large pieces;
            // what it doesn't call available stays as it was.
            high = without(pages, boost);
        } else if (key == "managed" && words >> pages) {
            managed = pages;
        } else if (key == "protection:") {
            // "(0, 1790, 1790)": what the zone keeps from requests that higher zones could serve.
            std::uint64_t most = 0;
            char separator = 0;

            while (words >> separator >> pages)
                most = std::max(most, pages);
            all.reserve += std::min(managed, most + high) * page;
        }
    }
    return all;
}

std::optional<std::uint64_t> pages_of_devices(const std::filesystem::path &cma) {
    std::uint64_t pages = 0;
    std::error_code error;
    const auto number = [](const std::filesystem::path &file) -> std::optional<std::uint64_t> {
        std::ifstream text(file);
        std::uint64_t value = 0;

        return text >> value ? std::optional(value) : std::nullopt;
    };

    if (!std::filesystem::exists(cma, error))
        return std::nullopt;
    for (std::filesystem::directory_iterator at(cma, error), end; !error && at != end;
         at.increment(error)) {
        const auto taken = number(at->path() / "alloc_pages_success");
        const auto given_back = number(at->path() / "release_pages_success");

        if (!taken || !given_back)
            return std::nullopt;
        pages += without(*taken, *given_back);
    }
    return pages;
}

VmCounters VmCounters::read(std::istream &vmstat) {
    std::map<std::string, std::uint64_t> values;
    std::uint64_t value = 0;

    for (std::string key; vmstat >> key >> value;)
        values[key] = value;
    return {.pinned = without(values["nr_foll_pin_acquired"], values["nr_foll_pin_released"]),
            .zspages = values["nr_zspages"]};
}

SlabBookkeeping bookkeeping_in_slab(std::istream &slabinfo, const std::filesystem::path &caches) {
    const std::set<std::string> shared = shared_caches(caches);
    SlabBookkeeping bookkeeping;

    for (std::string line; std::getline(slabinfo, line);) {
        // NAME ACTIVE_OBJS NUM_OBJS OBJSIZE OBJPERSLAB PAGESPERSLAB : tunables LIMIT
        // BATCHCOUNT SHAREDFACTOR : slabdata ACTIVE_SLABS NUM_SLABS SHAREDAVAIL
        std::istringstream row(line);
        std::vector<std::string> words(std::istream_iterator<std::string>(row), {});

        if (words.size() <= 14 || !is_drivers(words[0]) || shared.contains(words[0]))
            continue;
        bookkeeping.pages =
            bookkeeping.pages.value_or(0) + number_in(words[5]) * number_in(words[14]);
        if (words[0] == "nvidia_pte_cache")
            bookkeeping.partial = false;
    }
    return bookkeeping;
}

std::optional<std::uint64_t> bookkeeping_in_vmalloc(std::istream &vmallocinfo) {
    static constexpr std::string_view pages_mark = " pages=";
    std::optional<std::uint64_t> pages;

    for (std::string line; std::getline(vmallocinfo, line);) {
        const auto at = line.find(pages_mark);

        if (at != std::string::npos && line.find(" [nvidia") < at)
            pages = pages.value_or(0) + number_in(line.substr(at + pages_mark.size()));
    }
    return pages;
}

std::string_view name_of(Verdict verdict) {
    static constexpr std::array<std::string_view, 4> names{"none", "blind", "charged", "doubled"};

    return names.at(static_cast<std::size_t>(verdict));
}

CgroupStatement cgroup_statement(const Account &account, std::optional<std::uint64_t> current,
                                 std::map<std::string, std::uint64_t> stat, std::uint64_t slack) {
    CgroupStatement statement{.account = account, .current = current};

    if (current) {
        statement.anonymous = stat["anon"];
        statement.file = stat["file"];
        statement.kernel = stat["kernel"];
        for (const char *key :
             {"slab", "kernel_stack", "pagetables", "sec_pagetables", "percpu", "vmalloc", "zswap"})
            statement.kernel_objects += stat[key];
        statement.kernel_objects = std::min(statement.kernel_objects, statement.kernel);
        statement.kernel_pages = statement.kernel - statement.kernel_objects;
        statement.other =
            static_cast<std::int64_t>(*current) -
            static_cast<std::int64_t>(statement.anonymous + statement.file + statement.kernel);
    }
    judge(statement, std::max(slack, account.usage / usage_per_slack));
    return statement;
}

} // namespace umacct
