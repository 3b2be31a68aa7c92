// SPDX-License-Identifier: GPL-2.0-or-later
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/policy/last_good.h"
#include "lib/policy/policy.h"
#include "lib/policy/validate.h"
#include "lib/settings.h"
#include "lib/text.h"
#include "lib/units.h"
#include "tool/arguments.h"
#include "tool/found.h"
#include "tool/print/text.h"
#include "tool/session.h"
#include "tool/settings.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

struct ConfigOptions {
    std::string action;
    std::optional<std::string> target; ///< load's FILE
    bool dry_run = false;
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
        const auto texts = read_texts(files);

        policy = read_policy(texts);
        tell(validate(policy, MachineFacts::of(machine, machine.meminfo().total())));
        tell(LastGood(machine.root()).missing(texts));
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

/// Null where no rule is for it.
Json settings_json(const Rule *rule, const AccountChange &change) {
    return rule == nullptr && change.empty() ? Json(nullptr) : to_json(change);
}

int apply(Session &session, const std::string &word) {
    Module &module = session.module(); // whether it is there comes first
    const Machine &machine = session.machine;
    const Output &output = session.output;
    const std::string mark = policy_mark(machine.root());
    const PolicyInForce now = policy_in_force(machine.root());
    const Found found(machine, now.policy, word);

    if (now.differs)
        output.note("this is by the policy that umacctd goes by, which is not what /etc "
                    "says now; 'systemctl status umacctd' says whether that was refused");
    if (found.change.empty()) {
        if (output.json)
            output.document({{"accounts", Json::array()}});
        output.note("no order asks for anything");
        return 0;
    }

    const Account before = read_account(module, machine.cgroups(), found.target);
    const Carried carried = umacct::carry_out(machine, module,
                                              {.path = found.target.path,
                                               .id = found.target.id,
                                               .rule = found.orders.rule,
                                               .mark = mark,
                                               .person = {},
                                               .extent = Extent::ordered,
                                               .always = true});
    return report_change(session, found.target, before, carried);
}

/// The policy that systemd is to go by: a mistake in it takes no limit from a service.
Policy policy_for_systemd(const Machine &machine) {
    try {
        return read_policy(policy_files(machine.root()));
    } catch (const PolicyError &) {
        if (auto good = LastGood(machine.root()).policy())
            return std::move(*good);
        throw;
    }
}

std::optional<std::uint64_t> total_of(const Rule *rule, const Machine &machine) {
    if (rule == nullptr || !rule->total)
        return std::nullopt;
    return rule->total->of(machine.meminfo().total());
}

/// Returns the total of a rule as systemd takes it; empty for none.
std::string memory_max(const Rule &rule, const Machine &machine) {
    const auto total = total_of(&rule, machine);

    return !total ? "" : *total == UMACCT_UNLIMITED ? "infinity" : std::to_string(*total);
}

/// Writes systemd's drop-ins, before there is a module or a cgroup.
int drop_ins(const Machine &machine, const Output &output) {
    std::map<std::string, std::string> folders; ///< MemoryMax= of each
    Json list = Json::array();

    for (const Rule &rule : policy_for_systemd(machine).rules) {
        if (auto folder = rule.drop_ins())
            folders.try_emplace(std::move(*folder), memory_max(rule, machine));
    }
    for (const auto &[folder, max] : folders) {
        list.push_back(folder);
        if (!output.json)
            fmt::print(output.out, "{}{}{}\n", folder, max.empty() ? "" : " ", max);
    }
    if (output.json)
        output.document({{"drop_ins", list}});
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
                   path.empty() ? "as far as its name shows" : "at that path");
    if (!found.owner)
        return;
    if (!found.owner->image.empty())
        fmt::print(output.out, "  image {}\n", printable(found.owner->image));
    for (const std::string &label : found.owner->labels)
        fmt::print(output.out, "  label {}\n", printable(label));
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

Json orders_json(const Orders &orders) {
    const Settled settled = settle(orders);
    Account as_ordered;

    for_each_setting([&](const auto &setting) {
        as_ordered.*setting.value = *(settled.values.*setting.change);
    });
    return reasons_json(orders, as_ordered, true);
}

void print_orders(const Machine &machine, const Output &output, const Found &found) {
    for (const std::string &line : lines_of(found.orders))
        fmt::print(output.out, "  {}\n", printable(line));
    if (const auto total = total_of(found.rule, machine))
        fmt::print(output.out, "  total {}: MemoryMax= by systemd; memory.max is {}\n",
                   format_known(total),
                   format_known(machine.cgroups().number(found.target.path, "memory.max")));
    if (found.change.empty())
        fmt::print(output.out, "  {}\n", found.rule == nullptr ? "no rule matches" : "no order");
    if (found.policy.guard)
        fmt::print(output.out, "  the guard: {}\n",
                   guard_words(*found.policy.guard, found.target.path));
}

int explain(const Machine &machine, const Output &output, const std::string &word) {
    const Found found = Found::of(machine, policy_to_explain(machine, output), word);
    const auto &owner = found.owner;
    const auto total = total_of(found.rule, machine);
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
                         {"total_bytes", total ? Json(*total) : Json(nullptr)},
                         {"orders", orders_json(found.orders)},
                         {"guard", found.policy.guard
                                       ? Json(guard_words(*found.policy.guard, found.target.path))
                                       : Json(nullptr)},
                         {"passed", passed}});
    else
        print_orders(machine, output, found);
    return 0;
}

int config(Session &session, const ConfigOptions &options) {
    const std::string &action = options.action;
    const bool is_for_one = action == "explain" || action == "apply";

    if (options.dry_run && action != "load")
        throw Error(Failure::usage, "--dry-run is for load");
    if (action == "load" && !options.target)
        throw Error(Failure::usage, "FILE is required: what is to be loaded?",
                    "for example: umacct config load settings.toml");
    if (action == "load")
        return load_settings(session, *options.target, options.dry_run);
    if (!is_for_one && options.target)
        throw Error(Failure::usage, fmt::format("{} takes no TARGET", action));
    if (is_for_one && !options.target)
        throw Error(Failure::usage, "TARGET is missing: whose rule is it?",
                    fmt::format("for example: umacct config {} ollama.service", action));
    if (action == "apply")
        return apply(session, *options.target);
    if (action == "explain")
        return explain(session.machine, session.output, *options.target);
    if (action == "save")
        return save_settings(session);
    return action == "check" ? check(session.machine, session.output)
                             : drop_ins(session.machine, session.output);
}

} // namespace

Action add_config(CLI::App &verb) {
    auto options = std::make_shared<ConfigOptions>();

    verb.add_option("ACTION", options->action, "check, explain, apply, save, load or drop-ins")
        ->required()
        ->check(CLI::IsMember({"check", "explain", "apply", "save", "load", "drop-ins"}));
    verb.add_option("TARGET", options->target,
                    "cgroup path, unit, container, pod or pid; of load, what save wrote, or - for "
                    "standard input");
    verb.add_flag("-n,--dry-run", options->dry_run,
                  "of load: say what would change, and change nothing");
    add_examples(verb, "umacct config check\n"
                       "umacct config explain ollama.service\n"
                       "umacct config apply ollama.service      now, as umacctd does\n"
                       "umacct config save >settings.toml       all that is set\n"
                       "umacct config load settings.toml        as orders of yours");
    return [options](Session &session) { return config(session, *options); };
}

} // namespace umacct::tool
