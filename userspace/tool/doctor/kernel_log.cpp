// SPDX-License-Identifier: GPL-2.0-or-later
/// The last hour of the kernel's log: processes that it killed for lack of memory, and the
/// driver's complaints.
#include "tool/doctor/check.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "lib/host/kernel_log.h"
#include "lib/units.h"
#include "tool/print/text.h"

namespace umacct::tool::doctor {

namespace {

constexpr std::uint64_t hour_us = 3'600'000'000;
constexpr std::size_t victims_shown = 3;

/// Entries of the log since a time, in microseconds since the machine's start.
struct Hour {
    std::vector<KernelKill> killed;
    std::uint64_t no_memory = 0; ///< lines of the driver's
};

Hour read_hour(KernelLog &log, std::uint64_t since_us) {
    Hour hour;

    while (const auto record = log.next()) {
        if (record->time_us < since_us)
            continue;
        if (auto kill = KernelKill::parse(record->text))
            hour.killed.push_back(std::move(*kill));
        else if (record->text.find(driver_complaint) != std::string::npos)
            hour.no_memory++;
    }
    return hour;
}

void check_killed(const Examined &at, const Hour &hour, Findings &found) {
    std::string text;
    std::vector<std::string> names;

    if (hour.killed.empty()) {
        found.add(Health::ok, "killed",
                  "the kernel killed no process for lack of memory, in the "
                  "last hour");
        return;
    }
    const std::size_t first = hour.killed.size() - std::min(hour.killed.size(), victims_shown);
    for (std::size_t i = first; i < hour.killed.size(); i++) {
        const KernelKill &victim = hour.killed[i];
        const std::string whose = display_path(at.machine.owners(), victim.path);

        text += fmt::format("{}{} ({}) of {}, {}", text.empty() ? "" : "; ", victim.name,
                            victim.pid, whose,
                            !victim.limit_path.empty() ? "at its cgroup's memory.max"
                                                       : "as the machine had no memory");
        names.insert(names.end(), {whose, victim.name});
    }
    found.add(Health::warn, "killed",
              fmt::format("in the last hour the kernel killed {} for lack of memory: {}{}",
                          counted(hour.killed.size(), "process", "processes"),
                          first > 0 ? "..., " : "", text),
              "'umacct history' says who held the memory then; a [guard] in the policy stops who "
              "grows instead",
              {{"processes", hour.killed.size()}});
    found.all.back().names = std::move(names);
}

} // namespace

void check_kernel_log(const Examined &at, Findings &found) {
    KernelLog log(at.file("dev/kmsg"), KernelLog::From::begin);
    double uptime_s = 0;

    found.group = machines_state;
    std::istringstream(line_of(at.machine.proc() / "uptime")) >> uptime_s;
    const auto now_us = static_cast<std::uint64_t>(uptime_s * 1e6);
    if (!log.is_open()) {
        found.add(Health::ok, "killed",
                  "not visible to you: processes that the kernel killed; run as root");
        return;
    }
    const Hour hour = read_hour(log, now_us - std::min(now_us, hour_us));
    check_killed(at, hour, found);
    if (hour.no_memory > 0)
        found.add(Health::ok, "driver's log",
                  fmt::format("in the last hour the driver logged NV_ERR_NO_MEMORY {}: it does so "
                              "for each try, also if a smaller one then succeeds or a limit "
                              "refused it",
                              counted(hour.no_memory, "time", "times")),
                  "", {{"lines", hour.no_memory}});
}

} // namespace umacct::tool::doctor
