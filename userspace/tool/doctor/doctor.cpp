// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>

#include <CLI/CLI.hpp>
#include <fmt/color.h>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/module/health.h"
#include "lib/text.h"
#include "tool/arguments.h"
#include "tool/doctor/check.h"
#include "tool/print/text.h"
#include "tool/session.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace doctor {

namespace {

/// Of a module that doesn't answer.
int report_absence(const Error &error, Findings &found) {
    const bool missing = error.failure() == Failure::missing;

    found.add(
        Health::fail, "module", missing ? "umacct.ko is not loaded" : error.what(),
        missing || error.hint().empty()
            ? "modprobe umacct; if there is none: apt install umacct-dkms, or 'make dkms-install'; "
              "until then 'umacct observer on' counts"
            : error.hint());
    return static_cast<int>(error.failure());
}

/// Of all; nothing where the caller may not see all.
std::optional<std::uint64_t> failed_requests(Module &module, const Machine &machine) {
    try {
        const auto all = module.account(machine.cgroups().id("/"));

        return all ? std::optional(all->failed) : std::nullopt;
    } catch (const Error &) {
        return std::nullopt;
    }
}

} // namespace

Diagnosis diagnose(Connection &connection, const Machine &machine) {
    Examined at{.machine = machine, .status = {}};
    Diagnosis made;

    try {
        at.status = connection.module().status();
        if (at.status->has(UMACCT_STATUS_OBSERVER))
            made.absence = report_absence(Error(Failure::missing, ""), made.found);
        at.failed = failed_requests(connection.module(), machine);
    } catch (const Error &error) {
        made.absence = report_absence(error, made.found);
    }
    check_module(at, made.found);
    check_machine(at, made.found);
    check_nvml(at, made.found);
    if (at.status)
        check_driver(at, made.found);
    check_failures(at, made.found);
    made.status = std::move(at.status);
    return made;
}

} // namespace doctor

namespace {

using doctor::Findings;
using doctor::Found;
using doctor::Health;

void print_json(const Output &output, const Findings &found) {
    Json rows = Json::array();

    for (const Found &each : found.all)
        rows.push_back({{"check", each.check},
                        {"state", word_of(each.health)},
                        {"text", each.text},
                        {"hint", each.hint.empty() ? Json(nullptr) : Json(each.hint)},
                        {"values", each.values}});
    output.document({{"healthy", found.count(Health::fail) == 0},
                     {"failed", found.count(Health::fail)},
                     {"warned", found.count(Health::warn)},
                     {"checks", rows}});
}

void print_text(const Output &output, const Findings &found) {
    static constexpr std::array colours{fmt::terminal_color::green, fmt::terminal_color::yellow,
                                        fmt::terminal_color::red};

    for (const Found &each : found.all) {
        const auto health = static_cast<std::size_t>(each.health);
        const std::string word = fmt::format("{:<4}", word_of(each.health));

        fmt::print(output.out, "{}  {}: {}\n",
                   output.colour ? fmt::format(fmt::fg(colours.at(health)), "{}", word) : word,
                   each.check, each.text);
        if (!each.hint.empty())
            fmt::print(output.out, "      hint: {}\n", each.hint);
    }
    const std::size_t failed = found.count(Health::fail);
    fmt::print(output.out, "\n{}: {} failed, {}\n", failed == 0 ? "healthy" : "not healthy", failed,
               counted(found.count(Health::warn), "warning", "warnings"));
}

int examine(Connection &connection, const Machine &machine, const Output &output) {
    const doctor::Diagnosis made = doctor::diagnose(connection, machine);

    (output.json ? print_json : print_text)(output, made.found);
    return made.absence == 0 && made.found.count(Health::fail) > 0
               ? static_cast<int>(Failure::failed)
               : made.absence;
}

} // namespace

Action add_doctor(CLI::App &verb) {
    add_examples(verb, "umacct doctor\n"
                       "umacct doctor --json");
    return [](Session &session) {
        return examine(session.connection, session.machine, session.output);
    };
}

} // namespace umacct::tool
