// SPDX-License-Identifier: GPL-2.0-or-later
/// Whether the machine is short of memory now, and who holds most of it.
#include "tool/doctor/check.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "lib/error.h"
#include "lib/history/analysis.h"
#include "lib/history/steps.h"
#include "lib/memory/zones.h"
#include "lib/units.h"
#include "tool/print/holders.h"
#include "tool/print/text.h"

namespace umacct::tool::doctor {

namespace {

constexpr std::size_t holders_shown = 3;
/// Shares of the memory that is available: below the first the machine is short, below the second
/// it is about to stop.
constexpr std::uint64_t short_share = 25;
constexpr std::uint64_t gone_share = 100;
/// The least that is worth a warning when it is set aside: a share of all memory, and more than
/// kernels take for small devices.
constexpr std::uint64_t set_aside_share = 50;
constexpr std::uint64_t set_aside_least = 256ULL << 20;
/// The share of the last ten seconds in which tasks waited for memory, in per cent.
constexpr double high_pressure = 10;

std::vector<Holder> largest(const Examined &at) {
    std::vector<Holder> list = holders(at.machine, at.accounts);

    std::erase_if(list, [](const Holder &holder) { return holder.held() == 0; });
    std::ranges::stable_sort(list, std::greater<>(), &Holder::held);
    list.resize(std::min(list.size(), holders_shown));
    return list;
}

/// Pages that the driver can have: the module knows it best.
std::uint64_t available(const Examined &at, const Meminfo &meminfo) {
    return at.status && at.status->tells_all() ? at.status->available : meminfo.available();
}

/// Memory that only pages which can be moved may use. Those that a device or RDMA pins must leave
/// it first, and the driver's are never in it.
struct SetAside {
    std::uint64_t areas = 0;    ///< CMA areas, as CmaTotal has them
    std::uint64_t handover = 0; ///< memory for the next kernel (KHO): CmaTotal doesn't have it
    std::uint64_t free = 0;

    std::uint64_t all() const { return areas + handover; }
};

SetAside set_aside(const Machine &machine, const Meminfo &meminfo) {
    SetAside kept{.areas = meminfo.bytes("CmaTotal"), .free = meminfo.bytes("CmaFree")};
    std::uint64_t in_zones = kept.free;

    try {
        in_zones = std::max(in_zones, Zones::read(machine.proc()).sum(&Zone::cma) * page_size());
    } catch (const Error &) {
        // CmaFree alone tells it then, while nothing uses that memory.
    }
    kept.handover = without(in_zones, kept.areas);
    return kept;
}

/// Returns it as options and policies take a size.
std::string rounded_up(std::uint64_t bytes) {
    constexpr std::uint64_t mib = 1ULL << 20;
    constexpr std::uint64_t gib = 1ULL << 30;

    return bytes >= 4 * gib ? fmt::format("{}G", (bytes + gib - 1) / gib)
                            : fmt::format("{}M", (bytes + mib - 1) / mib);
}

} // namespace

void check_memory(const Examined &at, Findings &found) {
    found.group = machines_state;
    try {
        const Meminfo meminfo = at.meminfo();
        const std::uint64_t total = meminfo.total();
        const std::uint64_t left = available(at, meminfo);
        const auto pressure = at.machine.pressure();
        const double waiting = pressure ? pressure->some.avg10 : 0;
        std::string text = fmt::format("{} of {} available", format_size(left), format_size(total));
        std::vector<std::string> names;

        for (const Holder &holder : largest(at)) {
            const std::string name = display_path(at.machine.owners(), holder.path);

            text += fmt::format("{} {} holds {}", names.empty() ? ";" : ",", name,
                                format_size(holder.held()));
            names.push_back(holder.path);
            names.push_back(name);
        }
        if (waiting >= high_pressure)
            text += fmt::format("; tasks waited for memory for {:.0f} % of the last 10 s", waiting);
        const Health health = left < total / gone_share    ? Health::fail
                              : left < total / short_share ? Health::warn
                              : waiting >= high_pressure   ? Health::warn
                                                           : Health::ok;
        found.add(
            health, "memory", text,
            health == Health::ok
                ? ""
                : "end what is not needed ('umacct ps' has the pids), or bound it: 'umacct "
                  "limit TARGET --hard SIZE'; 'umacct reserve SIZE' keeps some for the machine",
            {{"available_bytes", left}, {"total_bytes", total}});
        found.all.back().names = std::move(names);
    } catch (const Error &error) {
        found.add(Health::warn, "memory", error.what(),
                  error.hint().empty() ? "mount procfs at /proc" : error.hint());
    }
}

void check_set_aside(const Examined &at, Findings &found) {
    found.group = "machine";
    try {
        const Meminfo meminfo = at.meminfo();
        const SetAside kept = set_aside(at.machine, meminfo);
        const bool is_handover = kept.handover > kept.areas;
        std::string text = "nothing is kept from the driver";

        if (kept.all() > 0)
            text =
                fmt::format("{} set aside for {}, {} of it free: what programs use can be there, "
                            "but neither the driver's memory nor what RDMA registers",
                            format_size(kept.all()),
                            kept.handover == 0 ? "CMA"
                            : kept.areas == 0  ? "kexec handover (KHO)"
                                               : "kexec handover (KHO) and CMA",
                            format_size(kept.free));
        found.warn_unless(
            kept.all() < std::max(meminfo.total() / set_aside_share, set_aside_least), "set aside",
            text,
            fmt::format("{} on the kernel's command line, and a restart; until then 'umacct "
                        "preflight SIZE' counts it out",
                        is_handover ? "kho=off, which DGX OS's package nvidia-spark-grub-kho sets,"
                                    : "cma=SIZE with less"),
            {{"cma_bytes", kept.areas}, {"kho_bytes", kept.handover}, {"free_bytes", kept.free}});
    } catch (const Error &) {
        // check_memory() has said it.
    }
}

/// Warns before the largest known step, not after it.
void check_steps(const Examined &at, Findings &found) {
    if (!at.status)
        return;
    const auto next = history::next_step(at.machine, *at.status);

    if (!next)
        return;
    const std::string name = display_path(at.machine.owners(), next->steps.path);
    const history::Steps::Step &quick = next->steps.largest.at(1);

    found.add(
        next->fits() ? Health::ok : Health::warn, "largest step",
        fmt::format("{} {}{}; that was at {}", name, next->text(),
                    next->fits() ? "" : ": another such step won't fit",
                    history::clock_text(next->steps.longest().time_ms)),
        next->fits()
            ? ""
            : fmt::format("make room before ('umacct preflight {} --fix'); a [guard] with floor = "
                          "'{}', its growth in {} s, acts in time, and 'umacct reserve {}' has the "
                          "step refused instead",
                          rounded_up(next->longest()), rounded_up(quick.bytes),
                          history::step_seconds.at(1), rounded_up(quick.bytes)),
        {{"step_bytes", next->longest()}, {"left_bytes", next->left}});
    found.all.back().names = {next->steps.path, name};
}

} // namespace umacct::tool::doctor
