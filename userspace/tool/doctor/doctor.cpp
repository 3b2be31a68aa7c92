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

std::string contents_of(const std::filesystem::path &file) {
    std::ostringstream all;

    all << std::ifstream(file).rdbuf();
    return all.str();
}

std::string line_of(const std::filesystem::path &file) {
    const std::string contents = contents_of(file);

    return contents.substr(0, contents.find('\n'));
}

bool has_word(const std::string &line, const std::string &word) {
    return (" " + line + " ").find(" " + word + " ") != std::string::npos;
}

bool is_there(const std::filesystem::path &path) {
    std::error_code ignored;

    return std::filesystem::exists(path, ignored);
}

std::string Examined::release() const {
    return line_of(machine.proc() / "sys/kernel/osrelease");
}

std::size_t Findings::count(Health health) const {
    return static_cast<std::size_t>(std::ranges::count(all, health, &Found::health));
}

void Findings::add(Health health, std::string check, const std::string &text,
                   const std::string &hint, Json values) {
    all.push_back({health, std::move(check), printable(text), printable(hint), std::move(values)});
}

void Findings::warn_unless(bool well, std::string check, const std::string &text,
                           const std::string &hint, Json values) {
    add(well ? Health::ok : Health::warn, std::move(check), text, well ? "" : hint,
        std::move(values));
}

void Findings::add(const std::optional<Status> &status, const std::string &check,
                   const std::string &well, const Json &values, const std::string &hint) {
    const std::size_t before = all.size();

    for (const Problem &problem : status ? problems(*status) : std::vector<Problem>()) {
        if (problem.check == check)
            add(problem.fatal ? Health::fail : Health::warn, check, problem.text,
                hint.empty() ? problem.hint : hint, values);
    }
    if (all.size() == before)
        add(Health::ok, check, well, "", values);
}

} // namespace doctor

namespace {

using doctor::Findings;
using doctor::Found;
using doctor::Health;

constexpr std::array<std::string_view, 3> names{"ok", "warn", "fail"};

/// Of a module that doesn't answer.
int report_absence(const Error &error, Findings &found) {
    const bool missing = error.failure() == Failure::missing;

    found.add(
        Health::fail, "module", missing ? "umacct.ko is not loaded" : error.what(),
        missing || error.hint().empty()
            ? "modprobe umacct; if there is none: apt install umacct-dkms, or 'make dkms-install'"
            : error.hint());
    return static_cast<int>(error.failure());
}

void print_json(const Output &output, const Findings &found) {
    Json rows = Json::array();

    for (const Found &each : found.all)
        rows.push_back({{"check", each.check},
                        {"state", names.at(static_cast<std::size_t>(each.health))},
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
        const std::string word = fmt::format("{:<4}", names.at(health));

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
    doctor::Examined at{.machine = machine, .status = {}};
    Findings found;
    int code = 0;

    try {
        at.status = connection.module().status();
    } catch (const Error &error) {
        code = report_absence(error, found);
    }
    check_module(at, found);
    check_machine(at, found);
    check_nvml(at, found);
    if (at.status)
        check_driver(at, found);
    (output.json ? print_json : print_text)(output, found);
    return code == 0 && found.count(Health::fail) > 0 ? static_cast<int>(Failure::failed) : code;
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
