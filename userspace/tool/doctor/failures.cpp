// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/doctor/check.h"

#include <ctime>
#include <vector>

#include <fmt/format.h>

#include "lib/error.h"
#include "lib/history/analysis.h"
#include "lib/history/reader.h"
#include "lib/module/failure_event.h"
#include "tool/print/text.h"

namespace umacct::tool::doctor {

namespace {

using history::Happening;

constexpr std::int64_t hour_ms = 3'600'000;

constexpr const char *history_hint =
    "'umacct history' says who took the memory; 'umacct preflight SIZE "
    "--fix' gives back page cache "
    "and puts together what is free, and 'umacct headroom' keeps it so";

/// Failures since the machine started, from umacctd's history; empty if there is none, or the
/// caller may not read it.
std::optional<std::vector<Happening>> failures_of_last_hour(const Machine &machine) {
    try {
        history::Reader reader(machine.root());
        const auto boots = reader.boots();

        if (boots.empty() || boots.back().boot_id != boot_id(machine.proc()))
            return std::nullopt;
        return reader.happenings(boots.back(), {.since_ms = std::time(nullptr) * 1000 - hour_ms},
                                 1000, "failed");
    } catch (const Error &) {
        return std::nullopt;
    }
}

std::string requests(std::uint64_t count) {
    return counted(count, "request", "requests");
}

} // namespace

void check_failures(const Examined &at, Findings &found) {
    constexpr const char *check = "requests";

    found.group = machines_state;
    if (!at.failed)
        return;
    const auto failures = failures_of_last_hour(at.machine);
    if (!failures) {
        found.warn_unless(
            *at.failed == 0, check,
            *at.failed == 0
                ? "the driver had memory for each request since umacct began to count"
                : fmt::format("the driver had no memory for {} since umacct began to count",
                              requests(*at.failed)),
            fmt::format("{}; with umacctd's history, root sees when it was", history_hint),
            {{"failed", *at.failed}});
        return;
    }
    if (failures->empty()) {
        found.add(Health::ok, check, "the driver had memory for each request of the last hour", "",
                  {{"failed", 0}});
        return;
    }
    std::uint64_t count = 0;
    for (const Happening &each : *failures)
        count += each.count;
    const Happening &last = failures->back();
    const auto name = [&](const std::string &path) {
        return path.empty() ? path : display_path(at.machine.owners(), path);
    };
    const std::string whose = name(last.path);
    const std::string holder = name(last.limit_path);
    found.add(Health::warn, check,
              fmt::format("in the last hour, {} failed; the last one at {}, of {}: {}",
                          requests(count), history::clock_text(last.time_ms), whose,
                          failed_text(last.size, last.usage, holder, last.limit)),
              history_hint, {{"failed", count}});
    found.all.back().names = {whose, holder};
}

} // namespace umacct::tool::doctor
