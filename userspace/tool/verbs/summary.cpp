// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>

#include <fmt/color.h>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/history/steps.h"
#include "lib/json.h"
#include "lib/module/health.h"
#include "lib/text.h"
#include "lib/units.h"
#include "tool/audit/statement.h"
#include "tool/print/columns.h"
#include "tool/print/owners.h"
#include "tool/print/table.h"
#include "tool/print/text.h"
#include "tool/session.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

constexpr std::size_t top_count = 5;

struct Summary {
    Status status;
    std::vector<std::string> warnings;
    Meminfo memory;
    Division division;
    std::vector<Account> accounts; ///< the largest by own memory
    std::vector<Client> clients;   ///< the largest
};

/// Keeps the largest few that hold anything.
template <class T>
void keep_top(std::vector<T> &all, std::uint64_t T::*bytes) {
    std::erase_if(all, [&](const T &each) { return each.*bytes == 0; });
    std::stable_sort(all.begin(), all.end(),
                     [&](const T &a, const T &b) { return a.*bytes > b.*bytes; });
    if (all.size() > top_count)
        all.resize(top_count);
}

Summary read_summary(Module &module, const Machine &machine) {
    const Status status = module.status();
    Summary summary{.status = status,
                    .warnings = warnings(status),
                    .memory = machine.meminfo(status),
                    .division = {},
                    .accounts = module.accounts(),
                    .clients = module.clients()};

    if (const auto next = history::next_step(machine, status); next && !next->fits())
        summary.warnings.push_back(fmt::format("{} {}: another such step won't fit",
                                               display_path(machine.owners(), next->steps.path),
                                               next->text()));
    summary.division = divide(machine, summary.memory, status, summary.accounts);
    keep_top(summary.accounts, &Account::local);
    keep_top(summary.clients, &Client::usage);
    return summary;
}

std::uint64_t driver_memory(const Status &status) {
    return status.usage + status.driver_usage;
}

/// Memory that is neither free nor in any counter: what the driver took before the observer came
/// is in here. Empty where the module answers, which says what it can't know itself.
std::optional<std::uint64_t> unattributed(const Machine &machine, const Summary &summary) {
    if (!summary.status.has(UMACCT_STATUS_OBSERVER))
        return std::nullopt;
    const Statement statement = machine_statement(machine, summary.memory, summary.status);
    return static_cast<std::uint64_t>(std::max<std::int64_t>(statement[Part::unexplained], 0));
}

void print_summary_json(const Machine &machine, Output &output, const Summary &summary) {
    Json json = to_json(summary.status);
    const auto all = [&](const auto &values) {
        Json list = Json::array();

        for (const auto &value : values)
            list.push_back(to_json(machine.owners(), value));
        return list;
    };

    json["memory"] = {{"total_bytes", summary.memory.total()},
                      {"free_bytes", summary.memory.free()},
                      {"available_bytes", summary.memory.available()}};
    json["machine"] = to_json(machine.owners(), summary.division);
    json["driver_memory_bytes"] =
        summary.status.tells_all() ? Json(driver_memory(summary.status)) : Json(nullptr);
    const auto left_over = unattributed(machine, summary);
    json["unattributed_bytes"] = left_over ? Json(*left_over) : Json(nullptr);
    json["warnings"] = summary.warnings;
    json["top_accounts"] = all(summary.accounts);
    json["top_clients"] = all(summary.clients);
    output.document(json);
}

std::string driver_line(const Status &status) {
    if (status.driver_state == UMACCT_DRIVER_ABSENT)
        return "driver not loaded";

    return fmt::format("driver {} {}", printable(status.driver_version),
                       name_of(status.driver_state));
}

/// Names the source of the figures: the module, or the observer in its place.
std::string version_of(const Status &status) {
    return status.has(UMACCT_STATUS_OBSERVER) ? fmt::format("{} without its module", UMACCT_VERSION)
                                              : printable(status.module_version);
}

/// "7 armed, 4 off"
std::string hooks_line(const Status &status) {
    std::string line;

    for (const umacct_hook_state state :
         {UMACCT_HOOK_ARMED, UMACCT_HOOK_FAILED, UMACCT_HOOK_OFF, UMACCT_HOOK_IDLE}) {
        const auto count = std::count_if(status.hooks.begin(), status.hooks.end(),
                                         [&](const Hook &hook) { return hook.state == state; });

        if (count > 0)
            line += fmt::format("{}{} {}", line.empty() ? "" : ", ", count, name_of(state));
    }
    return line;
}

void print_figures(const Machine &machine, const Output &output, const Summary &summary) {
    const Status &status = summary.status;
    Table figures({{}, {"", Align::right}, {}});

    figures.add({"Hooks", std::to_string(status.hooks.size()), hooks_line(status)});
    figures.add({"Machine memory", format_size(summary.memory.total())});
    figures.add({"  free", format_size(summary.memory.free())});
    figures.add({"  available", format_size(summary.memory.available())});
    if (status.tells_all()) {
        figures.add({"Driver memory", format_size(driver_memory(status))});
        figures.add({"  of accounts", format_size(status.usage),
                     fmt::format("{}, {}", counted(status.accounts, "account", "accounts"),
                                 counted(status.clients, "process", "processes"))});
    } else {
        figures.add({"Driver memory", format_size(status.usage), "of your cgroup and below it"});
    }
    figures.add({"    charged", format_size(status.charged), "memory.current sees it"});
    figures.add({"    uncharged", format_size(status.uncharged()), "memory.current doesn't"});
    figures.add({"    managed", format_size(status.managed), "nvidia-uvm's pages"});
    figures.add({"    metadata", format_size(status.metadata), "kept beside the pages"});
    if (!status.tells_all()) {
        figures.print(output);
        fmt::print(output.out, "The rest of the machine is not visible to you: run as root.\n");
        return;
    }
    figures.add({"  the driver's own", format_size(status.driver_usage),
                 fmt::format("peak {}", format_size(status.driver_peak))});
    // A driver that has none needs no line of its own.
    if (status.pools != 0U)
        figures.add({"  in its pools", size_or_unknown(status.pools), "freed, and kept for later"});
    if (const auto left_over = unattributed(machine, summary))
        figures.add({"Unattributed", format_size(*left_over),
                     fmt::format("in no counter; in use before {}, if the driver's",
                                 format_clock(status.since_ns.value_or(0)))});
    if (status.untracked_count > 0)
        figures.add({"  untracked", format_size(status.untracked), "ever; see the warning"});
    figures.add(
        {"Reserve", status.reserve == 0 ? "off" : format_size(status.reserve),
         status.reserve_count == 0 ? "" : counted(status.reserve_count, "refusal", "refusals")});
    figures.add({"Charging",
                 status.has(UMACCT_STATUS_NATIVE_CHARGE)
                     ? "driver's"
                     : std::string(name_of(status.charge_default)),
                 status.has(UMACCT_STATUS_NATIVE_CHARGE) ? "this driver charges its pages itself"
                                                         : "where no account says otherwise"});
    figures.print(output);
}

void print_top(const Machine &machine, const Output &output, const Summary &summary) {
    const auto print = [&](const char *title, const std::vector<Row> &rows, Of of,
                           const std::vector<std::string_view> &names) {
        if (rows.empty())
            return;
        fmt::print(output.out, "\n{}\n", title);
        print_rows(output, rows, chosen_columns({}, of, names), of, {}, 2);
    };

    print("Top processes",
          process_rows(machine, summary.clients, summary.accounts,
                       column("total", Of::processes, "")),
          Of::processes, {"total", "usage", "peak", "pid", "name", "account"});
}

} // namespace

int print_summary(Session &session) {
    const Summary summary = read_summary(session.module(), session.machine);
    Output &output = session.output;
    // The summary answers "does it work here", so what is missing is its exit code.
    const int code = summary.status.driver_state == UMACCT_DRIVER_ABSENT
                         ? static_cast<int>(Failure::missing)
                         : 0;

    if (output.json) {
        print_summary_json(session.machine, output, summary);
        return code;
    }

    print_division(output, summary.division);
    const std::string head =
        fmt::format("umacct {}, {}", version_of(summary.status), driver_line(summary.status));
    fmt::print(output.out, "\n{}\n\n",
               output.colour ? fmt::format(fmt::emphasis::bold, "{}", head) : head);
    print_figures(session.machine, output, summary);
    print_top(session.machine, output, summary);
    for (const std::string &warning : summary.warnings) {
        const std::string line = "warning: " + warning;

        fmt::print(output.out, "\n{}\n",
                   output.colour ? fmt::format(fmt::fg(fmt::terminal_color::yellow), "{}", line)
                                 : line);
    }
    return code;
}

} // namespace umacct::tool
