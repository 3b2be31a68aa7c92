// SPDX-License-Identifier: GPL-2.0-or-later
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "daemon/policy.h"
#include "lib/error.h"
#include "lib/text.h"
#include "lib/units.h"
#include "tool/arguments.h"
#include "tool/print/text.h"
#include "tool/session.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

struct Options {
    std::string action;
    std::optional<std::string> target;
};

Json place_json(const Place &place) {
    return {{"file", place.file}, {"line", place.line}, {"column", place.column}};
}

int check(const Machine &machine, const Output &output) {
    const auto files = policy_files(machine.root());
    Json names = Json::array();
    Json problems = Json::array();
    Policy policy;

    for (const auto &file : files)
        names.push_back(file.string());
    try {
        policy = read_policy(files);
    } catch (const PolicyError &error) {
        for (const Diagnostic &problem : error.diagnostics()) {
            problems.push_back({{"place", place_json(problem.place)}, {"text", problem.text}});
            if (!output.json)
                fmt::print(output.err, "{}: {}\n", problem.place.text(), problem.text);
        }
    }
    if (output.json)
        output.document({{"files", names}, {"rules", policy.rules.size()}, {"problems", problems}});
    else if (problems.empty())
        fmt::print(output.out, "the policy is well: {} in {}\n",
                   counted(policy.rules.size(), "rule", "rules"),
                   counted(files.size(), "file", "files"));
    return problems.empty() ? 0 : static_cast<int>(Failure::usage);
}

/// "hard 40.00 GiB, view on"
std::string words_of(const AccountChange &change) {
    std::string words;
    const auto add = [&](const char *what, const std::string &value) {
        words += fmt::format("{}{} {}", words.empty() ? "" : ", ", what, value);
    };
    const auto limit = [](std::uint64_t bytes) {
        return bytes == UMACCT_UNLIMITED ? "max" : format_size(bytes);
    };

    if (change.hard)
        add("hard", limit(*change.hard));
    if (change.soft)
        add("soft", limit(*change.soft));
    if (change.throttle_ns)
        add("throttle", format_time(*change.throttle_ns));
    if (change.view)
        add("view", *change.view ? "on" : "off");
    if (change.charge)
        add("charge", std::string(name_of(*change.charge)));
    return words;
}

int explain(const Machine &machine, const Output &output, const std::string &word) {
    const Policy policy = read_policy(policy_files(machine.root()));
    const Target target = machine.resolve(word);
    const auto owner = machine.owners().of(target.path);
    const Subject subject{.path = target.path,
                          .owner = owner ? &*owner : nullptr,
                          .inside = is_made_inside(target.path, machine.owners())};
    const Rule *rule = policy.match(subject);
    const std::string settings =
        rule == nullptr ? "" : words_of(rule->change(machine.meminfo().total()));
    Json passed = Json::array();

    if (!output.json)
        fmt::print(output.out, "{}\n", printable(display_path(machine.owners(), target.path)));
    for (const Rule &each : policy.rules) {
        if (&each == rule)
            break;

        const std::string why = fit(each, subject).why;
        passed.push_back({{"rule", each.name}, {"place", place_json(each.place)}, {"reason", why}});
        if (!output.json)
            fmt::print(output.out, "  not {} ({}): {}\n", each.name, each.place.text(),
                       why.starts_with("it ") || why.starts_with("this ")
                           ? why
                           : fmt::format("it is not {}", printable(why)));
    }
    if (output.json)
        output.document({{"path", target.path},
                         {"rule", rule == nullptr ? Json() : Json(rule->name)},
                         {"place", rule == nullptr ? Json() : place_json(rule->place)},
                         {"settings", settings},
                         {"passed", passed}});
    else if (rule != nullptr)
        fmt::print(output.out, "  by {} ({}): {}\n", rule->name, rule->place.text(), settings);
    else
        fmt::print(output.out, "  no rule is for it\n");
    return 0;
}

int config(const Machine &machine, const Output &output, const Options &options) {
    if (options.action == "check" && options.target)
        throw Error(Failure::usage, "check takes no TARGET");
    if (options.action == "explain" && !options.target)
        throw Error(Failure::usage, "TARGET is missing: what is to be explained?",
                    "for example: umacct config explain ollama.service");
    return options.target ? explain(machine, output, *options.target) : check(machine, output);
}

} // namespace

Action add_config(CLI::App &verb) {
    auto options = std::make_shared<Options>();

    verb.add_option("ACTION", options->action, "check or explain")
        ->required()
        ->check(CLI::IsMember({"check", "explain"}));
    verb.add_option("TARGET", options->target, target_help);
    add_examples(verb, "umacct config check\n"
                       "umacct config explain ollama.service");
    return
        [options](Session &session) { return config(session.machine, session.output, *options); };
}

} // namespace umacct::tool
