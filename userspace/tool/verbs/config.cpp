// SPDX-License-Identifier: GPL-2.0-or-later
#include <memory>
#include <optional>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/ostream.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "daemon/policy.h"
#include "daemon/validate.h"
#include "lib/error.h"
#include "lib/settings.h"
#include "lib/text.h"
#include "lib/units.h"
#include "tool/arguments.h"
#include "tool/print/text.h"
#include "tool/session.h"
#include "tool/settings.h"
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
    const auto tell = [&](const std::vector<Diagnostic> &found) {
        for (const Diagnostic &problem : found) {
            problems.push_back({{"place", place_json(problem.place)}, {"text", problem.text}});
            if (!output.json)
                fmt::print(output.err, "{}: {}\n", printable(problem.place.text()),
                           printable(problem.text));
        }
    };

    try {
        policy = read_policy(files);
        tell(validate(policy, MachineFacts::of(machine, machine.meminfo().total())));
    } catch (const PolicyError &error) {
        tell(error.diagnostics());
    }
    if (output.json)
        output.document({{"files", names}, {"rules", policy.rules.size()}, {"problems", problems}});
    else if (problems.empty())
        fmt::print(output.out, "policy OK: {} in {}\n",
                   counted(policy.rules.size(), "rule", "rules"),
                   counted(files.size(), "file", "files"));
    for (const auto &file : files) {
        if (file.string().starts_with((machine.root() / "run/").string()))
            output.note(fmt::format("{} goes before /etc until the machine's next start; without "
                                    "that file, /etc holds again",
                                    file.string()));
    }
    return problems.empty() ? 0 : static_cast<int>(Failure::usage);
}

/// "hard 40.00 GiB, view on"
std::string words_of(const AccountChange &change) {
    std::string words;

    for_each_setting([&](const auto &setting) {
        if (const auto &value = change.*setting.change)
            words += fmt::format("{}{} {}", words.empty() ? "" : ", ", setting.policy,
                                 words_of(setting, *value));
    });
    return words;
}

/// Null where no rule is for it.
Json settings_json(const Rule *rule, const AccountChange &change) {
    return rule == nullptr && change.empty() ? Json(nullptr) : to_json(change);
}

/// What the policy is for one cgroup.
struct Found {
    Found(const Machine &machine, const std::string &word)
        : policy(read_policy(policy_files(machine.root()))),
          target(machine.resolve(word)),
          owner(machine.owners().of(target.path)),
          subject{.path = target.path,
                  .owner = owner ? &*owner : nullptr,
                  .inside = is_made_inside(target.path, machine.owners())},
          rule(policy.match(subject)),
          change(policy.change(target.path, rule, machine.meminfo().total())) {}

    Policy policy;
    Target target;
    std::optional<Owner> owner;
    Subject subject;
    const Rule *rule; ///< null for none
    AccountChange change;
};

int apply(Session &session, const std::string &word) {
    session.module(); // whether it is there comes first
    const Found found(session.machine, word);

    if (!found.change.empty())
        return change_account(session, found.target, found.change);
    if (session.output.json)
        session.output.document({{"accounts", Json::array()}});
    session.output.note("no rule is for it");
    return 0;
}

/// For systemd's generator: no module is there yet, and no cgroup.
int drop_ins(const Machine &machine, const Output &output) {
    std::set<std::string> folders;

    for (const Rule &rule : read_policy(policy_files(machine.root())).rules) {
        if (auto folder = rule.drop_ins())
            folders.insert(std::move(*folder));
    }
    if (output.json)
        output.document({{"drop_ins", folders}});
    else
        fmt::print(output.out, "{}{}", fmt::join(folders, "\n"), folders.empty() ? "" : "\n");
    return 0;
}

/// "it never touches it", or what it may do to it.
std::string guard_words(const GuardPolicy &guard, std::string_view path) {
    std::string steps;

    if (guard.protects(path))
        return "it never touches this cgroup";
    for (const GuardStep step : guard.steps)
        steps += (steps.empty() ? "" : ", ") + std::string(name_of(step));
    return guard.dry_run ? "it only says what it would do: " + steps
                         : "where it is to blame: " + steps;
}

/// Also what a rule could go by.
void print_names(const Machine &machine, const Output &output, const Found &found) {
    fmt::print(output.out, "{}\n", printable(display_path(machine.owners(), found.target.path)));
    if (!found.owner)
        return;
    if (!found.owner->image.empty())
        fmt::print(output.out, "  image {}\n", printable(found.owner->image));
    for (const std::string &label : found.owner->labels)
        fmt::print(output.out, "  label {}\n", printable(label));
}

std::string source_of(const Found &found) {
    const std::string words = words_of(found.change);

    if (found.rule != nullptr)
        return printable(
            fmt::format("by {} ({}): {}", found.rule->name, found.rule->place.text(), words));
    return found.change.empty() ? "no rule is for it" : fmt::format("by [machine]: {}", words);
}

int explain(const Machine &machine, const Output &output, const std::string &word) {
    const Found found(machine, word);
    const auto &[policy, target, owner, subject, rule, change] = found;
    Json passed = Json::array();

    if (!output.json)
        print_names(machine, output, found);
    for (const Rule &each : policy.rules) {
        if (&each == rule)
            break;

        const std::string why = fit(each, subject).why;
        passed.push_back({{"rule", each.name}, {"place", place_json(each.place)}, {"reason", why}});
        if (!output.json)
            fmt::print(output.out, "  not {} ({}): {}{}\n", printable(each.name),
                       printable(each.place.text()), why.starts_with("it ") ? "" : "it is not ",
                       printable(why));
    }
    if (output.json)
        output.document({{"path", target.path},
                         {"image", owner && !owner->image.empty() ? Json(owner->image) : Json()},
                         {"labels", owner ? owner->labels : std::vector<std::string>()},
                         {"rule", rule == nullptr ? Json() : Json(rule->name)},
                         {"place", rule == nullptr ? Json() : place_json(rule->place)},
                         {"settings", settings_json(rule, change)},
                         {"guard", policy.guard ? Json(guard_words(*policy.guard, target.path))
                                                : Json(nullptr)},
                         {"passed", passed}});
    else
        fmt::print(output.out, "  {}\n", source_of(found));
    if (policy.guard && !output.json)
        fmt::print(output.out, "  the guard: {}\n", guard_words(*policy.guard, target.path));
    return 0;
}

int config(Session &session, const Options &options) {
    const std::string &action = options.action;
    const bool is_for_one = action == "explain" || action == "apply";

    if (!is_for_one && options.target)
        throw Error(Failure::usage, fmt::format("{} takes no TARGET", action));
    if (is_for_one && !options.target)
        throw Error(Failure::usage, "TARGET is missing: whose rule is it?",
                    fmt::format("for example: umacct config {} ollama.service", action));
    if (action == "apply")
        return apply(session, *options.target);
    if (action == "explain")
        return explain(session.machine, session.output, *options.target);
    return action == "check" ? check(session.machine, session.output)
                             : drop_ins(session.machine, session.output);
}

} // namespace

Action add_config(CLI::App &verb) {
    auto options = std::make_shared<Options>();

    verb.add_option("ACTION", options->action, "check, explain, apply or drop-ins")
        ->required()
        ->check(CLI::IsMember({"check", "explain", "apply", "drop-ins"}));
    verb.add_option("TARGET", options->target, target_help);
    add_examples(verb, "umacct config check\n"
                       "umacct config explain ollama.service\n"
                       "umacct config apply ollama.service      now, as umacctd does");
    return [options](Session &session) { return config(session, *options); };
}

} // namespace umacct::tool
