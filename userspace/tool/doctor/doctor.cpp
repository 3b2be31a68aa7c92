// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/color.h>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/host/replace_file.h"
#include "lib/module/health.h"
#include "lib/text.h"
#include "tool/arguments.h"
#include "tool/doctor/check.h"
#include "tool/doctor/spark_steps.h"
#include "tool/print/text.h"
#include "tool/session.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace doctor {

namespace {

/// Adds a module that doesn't answer. Returns the exit code.
int report_absence(const Error &error, Findings &found) {
    const bool missing = error.failure() == Failure::missing;

    found.add(
        Health::fail, "module", missing ? "umacct.ko is not loaded" : error.what(),
        missing || error.hint().empty()
            ? "modprobe umacct; if there is none: apt install umacct-dkms, or 'make dkms-install'; "
              "until then 'umacct setup observer on' counts"
            : error.hint());
    return static_cast<int>(error.failure());
}

/// The sum over all accounts; empty if the caller may not see all.
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

    made.found.group = "module";
    try {
        at.status = connection.module().status();
        if (at.status->has(UMACCT_STATUS_OBSERVER))
            made.absence = report_absence(Error(Failure::missing, ""), made.found);
        at.failed = failed_requests(connection.module(), machine);
        at.accounts = connection.module().accounts();
    } catch (const Error &error) {
        if (!at.status)
            made.absence = report_absence(error, made.found);
    }
    check_memory(at, made.found);
    check_steps(at, made.found);
    check_kernel_log(at, made.found);
    check_failures(at, made.found);
    check_module(at, made.found);
    if (at.status)
        check_driver(at, made.found);
    check_machine(at, made.found);
    check_set_aside(at, made.found);
    check_ray(at, made.found);
    check_nvml(at, made.found);
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

struct DoctorOptions {
    bool all = false;         ///< a line for each check
    std::string spark_report; ///< the file; "-" for the output
};

void print_line(const Output &output, Health health, std::string_view name, const std::string &text,
                const std::string &hint = "") {
    static constexpr std::array colours{fmt::terminal_color::green, fmt::terminal_color::yellow,
                                        fmt::terminal_color::red};
    const std::string word = fmt::format("{:<4}", word_of(health));

    fmt::print(output.out, "{}  {}: {}\n",
               output.colour
                   ? fmt::format(fmt::fg(colours.at(static_cast<std::size_t>(health))), "{}", word)
                   : word,
               name, text);
    if (!hint.empty())
        fmt::print(output.out, "      hint: {}\n", hint);
}

/// A group's healthy checks, as its first one and how many there are besides.
void print_healthy(const Output &output, const Findings &found) {
    std::vector<std::pair<const Found *, std::size_t>> groups;

    for (const Found &each : found.all) {
        if (each.health != Health::ok || each.group == doctor::machines_state)
            continue;
        const auto group = std::ranges::find_if(
            groups, [&](const auto &known) { return known.first->group == each.group; });
        if (group == groups.end())
            groups.emplace_back(&each, 0);
        else
            group->second++;
    }
    for (const auto &[first, others] : groups)
        print_line(output, Health::ok, first->group,
                   others == 0 ? first->text
                               : fmt::format("{}; {} fine", first->text,
                                             counted(others, "more check is", "more checks are")));
}

/// The machine's state first, then what is wrong, the worst first.
void print_text(const Output &output, const Findings &found, bool all) {
    const auto print_all = [&](auto condition) {
        for (const Found &each : found.all) {
            if (condition(each))
                print_line(output, each.health, each.check, each.text, each.hint);
        }
    };

    print_all([](const Found &each) { return each.group == doctor::machines_state; });
    for (const Health health : {Health::fail, Health::warn})
        print_all([health](const Found &each) {
            return each.group != doctor::machines_state && each.health == health;
        });
    if (all)
        print_all([](const Found &each) {
            return each.group != doctor::machines_state && each.health == Health::ok;
        });
    else
        print_healthy(output, found);
    const std::size_t failed = found.count(Health::fail);
    fmt::print(output.out, "\n{}: {} failed, {}\n", failed == 0 ? "healthy" : "not healthy", failed,
               counted(found.count(Health::warn), "warning", "warnings"));
}

/// Writes the report of a machine with a GPU that shares its memory.
int report_spark(Session &session, const std::string &file) {
    using doctor::Verdict;

    session.count_meanwhile();
    const doctor::Diagnosis made = doctor::diagnose(session.connection, session.machine);
    std::string text = doctor::spark_facts(session.machine, made) + '\n';
    std::size_t right = 0;
    std::size_t wrong = 0;

    try {
        const auto steps = doctor::run_spark_steps(session.connection, session.machine);

        for (const doctor::SparkStep &step : steps) {
            right += step.verdict == Verdict::right ? 1 : 0;
            wrong += step.verdict == Verdict::doubled || step.verdict == Verdict::blind ||
                             step.verdict == Verdict::kept
                         ? 1
                         : 0;
        }
        text += doctor::text_of(steps);
    } catch (const Error &error) {
        text += fmt::format("steps           not tried: {}\n", error.what());
    }
    if (file == "-") {
        session.output.out << text;
        return 0;
    }
    if (const int code = replace_file(file, text))
        throw Error(failure_of(code), fmt::format("cannot write {}: {}", printable(file),
                                                  std::generic_category().message(code)));
    fmt::print(session.output.out,
               "{}: {} right, {} wrong. There are no names in it: attach it to an issue.\n",
               printable(file), counted(right, "step is", "steps are"), wrong);
    return 0;
}

int examine(const Session &session, Connection &connection, const DoctorOptions &options) {
    const doctor::Diagnosis made = doctor::diagnose(connection, session.machine);

    if (session.output.json)
        print_json(session.output, made.found);
    else
        print_text(session.output, made.found, options.all);
    return made.absence == 0 && made.found.count(Health::fail) > 0
               ? static_cast<int>(Failure::failed)
               : made.absence;
}

} // namespace

Action add_doctor(CLI::App &verb) {
    auto options = std::make_shared<DoctorOptions>();

    verb.add_flag("-v,--verbose", options->all, "print a line for each check, healthy ones too");
    verb.add_option("--spark-report", options->spark_report,
                    "in a minute, try whether each byte that CUDA takes is counted once, and write "
                    "what others need to know of this machine: no names; - is standard output")
        ->type_name("FILE");
    add_examples(verb, "umacct doctor\n"
                       "umacct doctor -v\n"
                       "umacct doctor --spark-report spark.txt\n"
                       "umacct doctor --json");
    return [options](Session &session) {
        return options->spark_report.empty() ? examine(session, session.connection, *options)
                                             : report_spark(session, options->spark_report);
    };
}

} // namespace umacct::tool
