// SPDX-License-Identifier: GPL-2.0-or-later
/// Ray's raylet: it kills its workers when 95 % of what it takes for the machine is in use. Where
/// that is a view's total or memory.max, a server that fills its limit is killed for nothing.
#include "tool/doctor/check.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "lib/host/path.h"
#include "lib/units.h"
#include "tool/print/text.h"

namespace umacct::tool::doctor {

namespace {

namespace fs = std::filesystem;

/// Number of raylets that are reported: each user can give a process that name.
constexpr std::size_t most_told = 3;
constexpr double usual_threshold = 0.95;
/// A share at which a limit is as good as full.
constexpr double late_threshold = 0.99;

/// A variable of a process's environment; empty where it isn't set, or can't be read.
std::string variable(const fs::path &process, std::string_view name) {
    const std::string all = '\0' + contents_of(process / "environ");
    const std::size_t at = all.find(fmt::format("{}{}=", '\0', name));

    return at == std::string::npos ? "" : std::string(all.c_str() + at + name.size() + 2);
}

/// Returns the share of the memory at which it kills; empty where its settings switch that off.
std::optional<double> threshold(const fs::path &process) {
    const std::string share = variable(process, "RAY_memory_usage_threshold");

    if (variable(process, "RAY_memory_monitor_refresh_ms") == "0")
        return std::nullopt;
    return share.empty() ? usual_threshold : std::strtod(share.c_str(), nullptr);
}

/// The machine as processes of a cgroup see it.
struct Seen {
    bool view = false;
    std::uint64_t limit = UMACCT_UNLIMITED; ///< the lowest that the driver's memory counts for

    bool differs() const { return view || limit != UMACCT_UNLIMITED; }
};

Seen seen_from(const Examined &at, std::string path) {
    const Account *nearest = nullptr;
    Seen seen;
    std::uint64_t max = UMACCT_UNLIMITED;

    for (;; path = parent_path(path)) {
        const auto account = std::ranges::find(at.accounts, path, &Account::path);

        max = std::min(max,
                       at.machine.cgroups().number(path, "memory.max").value_or(UMACCT_UNLIMITED));
        if (account != at.accounts.end()) {
            seen.view = seen.view || account->view;
            nearest = nearest == nullptr ? &*account : nearest;
        }
        if (path == "/")
            break;
    }
    if (nearest != nullptr && nearest->charge_effective == UMACCT_CHARGE_ON)
        seen.limit = max;
    if (nearest != nullptr && seen.view)
        seen.limit = std::min(seen.limit, nearest->effective.value_or(UMACCT_UNLIMITED));
    return seen;
}

/// One raylet, which has that number.
void check_raylet(const Examined &at, const fs::path &process, Findings &found) {
    const std::string pid = process.filename().string();
    const auto path = at.machine.cgroups().of_pid(
        static_cast<std::uint32_t>(std::strtoul(pid.c_str(), nullptr, 10)));
    const std::optional<double> share = threshold(process);
    const Seen seen = path ? seen_from(at, *path) : Seen();
    const std::uint64_t total = std::min(seen.limit, at.meminfo().total());
    const std::string name = path ? display_path(at.machine.owners(), *path) : "";
    std::string what = "its memory monitor is off";

    if (share)
        what = fmt::format("it kills workers when {:.0f} % of {}, {}, are in use", *share * 100,
                           format_size(total),
                           seen.limit != UMACCT_UNLIMITED ? "its limit"
                           : seen.view                    ? "its view of the machine"
                                                          : "the machine's");
    found.warn_unless(
        !share || *share >= late_threshold || !seen.differs(), "ray",
        fmt::format("raylet ({}) of {}: {}", pid, name, what),
        fmt::format(
            "start Ray with RAY_memory_usage_threshold={}, or RAY_memory_monitor_refresh_ms=0, "
            "as umacct refuses what doesn't fit{}",
            late_threshold,
            seen.view ? fmt::format("; or leave the view out: 'umacct view {} off'", *path) : ""),
        {{"total_bytes", total}});
    if (path)
        found.all.back().names = {*path, name};
}

} // namespace

void check_ray(const Examined &at, Findings &found) {
    std::size_t told = 0;
    std::error_code error;

    found.group = "machine";
    for (const fs::directory_entry &process : fs::directory_iterator(at.machine.proc(), error)) {
        if (line_of(process.path() / "comm") == "raylet" && told++ < most_told)
            check_raylet(at, process.path(), found);
    }
}

} // namespace umacct::tool::doctor
