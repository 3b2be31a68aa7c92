// SPDX-License-Identifier: GPL-2.0-or-later
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/ostream.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/owners/no_such_target.h"
#include "lib/policy/last_good.h"
#include "lib/policy/policy.h"
#include "lib/policy/validate.h"
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

struct ConfigOptions {
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

/// As umacctd knows it: names of users' own containers are in their homes, where it does not look.
std::optional<Owner> owner_for_daemon(const Machine &machine, const std::string &path) {
    const auto owner = machine.owners().of(path);

    return owner && owner->kind == OwnerKind::container && user_of(path).value_or(0) != 0
               ? owner_of(path)
               : owner;
}

/// Whom a rule can be for.
struct Who {
    Target target; ///< its path is empty where it isn't known yet
    std::optional<Owner> owner;
};

Who at(std::string path, std::optional<Owner> owner) {
    Who who;

    who.target.path = std::move(path);
    who.owner = std::move(owner);
    return who;
}

/// A service, a container or a pod that does not run, by what is known of it before; empty for a
/// word that can't be one.
std::optional<Who> expected(const std::string &word) {
    constexpr std::string_view of_pod = "pod:";
    const auto colon = word.find(':');
    const std::string prefix = word.substr(0, colon == std::string::npos ? 0 : colon + 1);
    const std::string name = word.substr(prefix.size());
    const auto slash = name.find('/');

    // A process can't be one that will be.
    if (prefix == "pid:" || name.find_first_not_of("0123456789") == std::string::npos ||
        (prefix != of_pod && slash != std::string::npos && slash != 0))
        return std::nullopt;
    if (prefix == of_pod) {
        Owner owner;

        owner.kind = OwnerKind::pod;
        owner.runtime = "kubernetes";
        owner.kube_namespace = slash == std::string::npos ? "" : name.substr(0, slash);
        owner.pod = slash == std::string::npos ? name : name.substr(slash + 1);
        return at("", owner);
    }
    if (prefix == "container:") {
        Owner owner;

        owner.kind = OwnerKind::container;
        owner.runtime = "container";
        owner.id = owner.name = name;
        return at("", owner);
    }
    if (slash == 0)
        return at(name, owner_of(name));
    std::string path = "/system.slice/" + name;
    if (!owner_of(path))
        path += ".service";
    return at(path, owner_of(path));
}

/// What the policy is for one cgroup.
struct Found {
    /// Of a cgroup that there is. Throws Error.
    Found(const Machine &machine, const Policy &by, const std::string &word)
        : Found(machine, by, who(machine, word), true) {}

    Found(const Machine &machine, Policy by, Who who, bool is_there)
        : policy(std::move(by)),
          target(std::move(who.target)),
          owner(std::move(who.owner)),
          runs(is_there),
          inside(!target.path.empty() && is_made_inside(target.path, machine.owners())),
          rule(policy.match(subject())),
          contract(runs ? contract_of(machine.cgroups(), target.path) : Contract()),
          change(policy.change(target.path, rule, machine.meminfo().total(), contract)) {}

    /// The same of what need not run yet.
    static Found of(const Machine &machine, const Policy &by, const std::string &word) {
        try {
            return {machine, by, word};
        } catch (const NoSuchTarget &) {
            auto one = expected(word);

            if (!one)
                throw;
            return {machine, by, std::move(*one), false};
        }
    }

    Subject subject() const {
        return {.path = target.path, .owner = owner ? &*owner : nullptr, .inside = inside};
    }

    Policy policy;
    Target target;
    std::optional<Owner> owner;
    bool runs;
    bool inside;
    const Rule *rule;  ///< null for none
    Contract contract; ///< what it was started with, as root sees it
    AccountChange change;

    Found(const Found &) = delete; // the rule is one of the policy's
    Found &operator=(const Found &) = delete;
    Found(Found &&) = delete;
    Found &operator=(Found &&) = delete;
    ~Found() = default;

private:
    static Who who(const Machine &machine, const std::string &word) {
        Target target = machine.resolve(word);
        auto owner = owner_for_daemon(machine, target.path);

        return {.target = std::move(target), .owner = std::move(owner)};
    }
};

int apply(Session &session, const std::string &word) {
    session.module(); // whether it is there comes first
    const PolicyInForce now = policy_in_force(session.machine.root());
    const Found found(session.machine, now.policy, word);

    if (now.differs)
        session.output.note("this is by the policy that umacctd goes by, which is not what /etc "
                            "says now; 'systemctl status umacctd' says whether that was refused");

    if (!found.change.empty())
        return change_account(session, found.target, found.change);
    if (session.output.json)
        session.output.document({{"accounts", Json::array()}});
    session.output.note("no rule matches");
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
    const std::string path = printable(found.target.path);
    const std::string name = path.empty() ? printable(found.owner->label())
                                          : display_path(machine.owners(), found.target.path);

    fmt::print(output.out, "{}{}\n", name, name == path || path.empty() ? "" : " (" + path + ")");
    if (!found.runs)
        fmt::print(output.out, "  does not run; this is what it would get, {}\n",
                   path.empty() ? "as far as its name tells" : "at that path");
    if (!found.owner)
        return;
    if (!found.owner->image.empty())
        fmt::print(output.out, "  image {}\n", printable(found.owner->image));
    for (const std::string &label : found.owner->labels)
        fmt::print(output.out, "  label {}\n", printable(label));
}

std::string source_of(const Found &found) {
    const std::string words = words_of(found.change);

    const char *with = found.contract.empty() ? "" : ", and as it was started";

    if (found.rule != nullptr)
        return printable(fmt::format("by {} ({}){}: {}", found.rule->name, found.rule->place.text(),
                                     with, words));
    if (!found.contract.empty() && !found.change.empty())
        return fmt::format("as it was started: {}", words);
    return found.change.empty() ? "no rule matches" : fmt::format("by [machine]: {}", words);
}

/// One that umacctd has yet to read can be explained before, but not one that it would refuse.
Policy policy_to_explain(const Machine &machine, const Output &output) {
    PolicyInForce now = policy_in_force(machine.root());

    if (!now.differs)
        return std::move(now.policy);
    try {
        Policy next = read_policy(policy_files(machine.root()));

        if (validate(next, MachineFacts::of(machine, machine.meminfo().total())).empty()) {
            output.note("umacctd goes by another policy than this one, which is in /etc now; "
                        "'systemctl reload umacctd' applies it");
            return next;
        }
    } catch (const PolicyError &) {
        // It is as good as refused.
    }
    output.note("the policy in /etc is wrong, as 'umacct config check' says; this is the one "
                "before, by which umacctd goes");
    return std::move(now.policy);
}

int explain(const Machine &machine, const Output &output, const std::string &word) {
    const Found found = Found::of(machine, policy_to_explain(machine, output), word);
    const auto &owner = found.owner;
    Json passed = Json::array();

    if (!output.json)
        print_names(machine, output, found);
    for (const Rule &each : found.policy.rules) {
        if (&each == found.rule)
            break;

        const std::string why = fit(each, found.subject()).why;
        passed.push_back({{"rule", each.name}, {"place", place_json(each.place)}, {"reason", why}});
        if (!output.json)
            fmt::print(output.out, "  not {} ({}): {}{}\n", printable(each.name),
                       printable(each.place.text()), why.starts_with("it ") ? "" : "it is not ",
                       printable(why));
    }
    if (output.json)
        output.document({{"path", found.target.path},
                         {"runs", found.runs},
                         {"image", owner && !owner->image.empty() ? Json(owner->image) : Json()},
                         {"labels", owner ? owner->labels : std::vector<std::string>()},
                         {"rule", found.rule == nullptr ? Json() : Json(found.rule->name)},
                         {"place", found.rule == nullptr ? Json() : place_json(found.rule->place)},
                         {"settings", settings_json(found.rule, found.change)},
                         {"guard", found.policy.guard
                                       ? Json(guard_words(*found.policy.guard, found.target.path))
                                       : Json(nullptr)},
                         {"passed", passed}});
    else
        fmt::print(output.out, "  {}\n", source_of(found));
    if (found.policy.guard && !output.json)
        fmt::print(output.out, "  the guard: {}\n",
                   guard_words(*found.policy.guard, found.target.path));
    return 0;
}

int config(Session &session, const ConfigOptions &options) {
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
    auto options = std::make_shared<ConfigOptions>();

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
