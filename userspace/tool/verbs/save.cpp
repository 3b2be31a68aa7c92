// SPDX-License-Identifier: GPL-2.0-or-later
/// "save" and "restore": all that is set, as a file that a policy could be, and back. What is
/// set is made what the file says, by its differences: nothing that stays is ever lifted.
#include <cerrno>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <type_traits>

#include <CLI/CLI.hpp>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/json.h"
#include "lib/policy/policy.h"
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

/// Of one account, all there is to set.
AccountChange settings_of(const Account &account) {
    AccountChange all;

    for_each_setting(
        [&](const auto &setting) { all.*setting.change = value_of(setting, account); });
    return all;
}

/// Leaves in one what the other has something else for.
void drop_same(AccountChange &one, const AccountChange &other) {
    for_each_setting([&](const auto &setting) {
        if (one.*setting.change == other.*setting.change)
            (one.*setting.change).reset();
    });
}

// --- save -------------------------------------------------------------------------

/// A pattern of a policy can say it, and it means no other cgroup.
bool can_be_named(const std::string &path) {
    return printable(path) == path && path.find_first_of("*?") == std::string::npos;
}

std::string quoted(const std::string &text) {
    std::string out = "\"";

    for (const char c : text)
        out += (c == '"' || c == '\\' ? "\\" : "") + std::string(1, c);
    return out + '"';
}

void print_rule(std::ostream &out, const Account &account) {
    fmt::print(out, "\n[[rule]]\ncgroup = {}\n", quoted(account.path));
    for_each_setting([&](const auto &setting) {
        const auto value = value_of(setting, account);
        std::string text;

        if (value == setting.neutral)
            return;
        if constexpr (std::is_same_v<decltype(value), const bool>)
            text = value ? "true" : "false";
        else if constexpr (std::is_same_v<decltype(value), const umacct_charge_mode>)
            text = quoted(std::string(name_of(value)));
        else
            text = quoted(std::to_string(value) +
                          (setting.attribute == UMACCT_A_ACCOUNT_THROTTLE ? "ns" : ""));
        fmt::print(out, "{} = {}\n", setting.policy, text);
    });
}

int save(Session &session) {
    Module &module = session.module();
    const Output &output = session.output;
    const Status status = module.status();

    if (output.json)
        throw Error(Failure::usage, "--json: a saved file is TOML", "see 'umacct limit --json'");
    if (!status.tells_all())
        throw Error(Failure::permission, "cannot read what is set: it is not visible to you",
                    "it takes root");
    fmt::print(output.out,
               "# By 'umacct save': what is set, for 'umacct restore', or as a policy.\n"
               "[machine]\nreserve = \"{}\"\ncharge = \"{}\"\n",
               status.reserve, name_of(status.charge_default));
    for (const Account &account : module.accounts()) {
        if (!account.configured())
            continue;
        if (can_be_named(account.path))
            print_rule(output.out, account);
        else
            output.note(account.path + " is left out: a pattern cannot express its path");
    }
    return 0;
}

// --- restore ----------------------------------------------------------------------

struct SaveOptions {
    std::string file = "-";
    bool dry_run = false;
};

/// One account's way from what is set to what the file says.
struct Step {
    Target target;
    AccountChange before;
    AccountChange after;
};

struct Plan {
    std::vector<Step> steps = {};
    std::uint64_t reserve = 0;
    umacct_charge_mode charge = UMACCT_CHARGE_OFF;
    std::vector<std::string> missing = {}; ///< cgroups that there aren't

    /// What of the machine's settings differs.
    MachineChange machine_change(const Status &status) const {
        MachineChange change{.reserve = reserve, .charge_default = charge};

        for_each_machine_setting([&](const auto &setting) {
            if (change.*setting.change == value_of(setting, status))
                (change.*setting.change).reset();
        });
        return change;
    }
};

Policy read_saved(const std::string &name) {
    std::ifstream file;

    if (name == "-")
        return read_policy(std::string(std::istreambuf_iterator<char>(std::cin), {}), "-");
    file.open(name);
    if (!file)
        throw Error(
            failure_of(errno),
            fmt::format("cannot read '{}': {}", name, std::generic_category().message(errno)),
            "'umacct save' writes one");
    return read_policy(std::string(std::istreambuf_iterator<char>(file), {}), name);
}

/// By path, all that each account gets. Throws Error where the file is more than that.
std::map<std::string, AccountChange> wanted_by(const Policy &policy, std::uint64_t total) {
    static constexpr const char *hint = "a policy is for umacctd: umacct.toml(5)";
    std::map<std::string, AccountChange> wanted;
    const auto at = [&](const std::string &path) -> AccountChange & {
        return wanted.try_emplace(path, settings_of(Account())).first->second;
    };

    if (policy.guard || policy.headroom || policy.headroom_blocks || policy.exporter_top ||
        policy.page != PagePolicy() || policy.containers != ContainerPolicy())
        throw Error(Failure::usage,
                    "FILE: guard, headroom, containers and exporter are not set in the module",
                    hint);
    for (const Rule &rule : policy.rules) {
        if (!rule.cgroup || rule.unit || rule.needs_name() || !can_be_named(*rule.cgroup))
            throw Error(
                Failure::usage,
                fmt::format("{}: a rule that isn't for one cgroup, by its path", rule.place.text()),
                hint);
        AccountChange &all = at(*rule.cgroup);
        const AccountChange change = rule.change(total);

        for_each_setting([&](const auto &setting) {
            if (change.*setting.change)
                all.*setting.change = change.*setting.change;
        });
    }
    if (policy.view)
        at("/").view = policy.view;
    return wanted;
}

Plan plan_of(Session &session, const Status &status, const Policy &policy) {
    const Cgroups &cgroups = session.machine.cgroups();
    const std::uint64_t total = session.machine.meminfo(status).total();
    std::map<std::string, AccountChange> wanted = wanted_by(policy, total);
    std::map<std::string, Account> known;
    Plan plan{.reserve = policy.reserve ? policy.reserve->of(total) : 0,
              .charge = policy.charge.value_or(UMACCT_CHARGE_OFF)};

    if (plan.reserve > total)
        throw Error(Failure::usage,
                    fmt::format("FILE: a reserve of {} is more than the machine's memory",
                                format_size(plan.reserve)));
    for (Account &account : session.module().accounts()) {
        if (account.configured())
            wanted.try_emplace(account.path, settings_of(Account()));
        known.emplace(account.path, std::move(account));
    }
    for (const auto &[path, settings] : wanted) {
        if (!cgroups.exists(path)) {
            plan.missing.push_back(path);
            continue;
        }
        const auto found = known.find(path);
        AccountChange now = settings_of(found == known.end() ? Account() : found->second);
        AccountChange change = settings;

        drop_same(change, now);
        if (change.charge == UMACCT_CHARGE_ON && !status.has(UMACCT_STATUS_CHARGE_READY))
            throw Error(Failure::failed,
                        cannot_set("charge", path, "charging can't be switched on"),
                        status.charge_reason);
        if (change.view == true && !status.has(UMACCT_STATUS_VIEW_READY))
            throw Error(Failure::failed, cannot_set("view", path, "views can't be switched on"),
                        "see 'umacct doctor'");
        if (change.empty())
            continue;
        drop_same(now, settings);
        plan.steps.push_back({.target = {.path = path, .id = cgroups.id(path), .pid = {}},
                              .before = now,
                              .after = change});
    }
    return plan;
}

/// Makes all of the changes, or undoes those that it made.
Enforcement make_it_so(Module &module, const Status &status, const Plan &plan) {
    std::size_t done = 0;
    Enforcement made;

    try {
        for (; done < plan.steps.size(); ++done)
            made = set_account(module, plan.steps[done].target, plan.steps[done].after);
        if (const MachineChange change = plan.machine_change(status); !change.empty())
            made = set_machine(module, change);
    } catch (const Error &error) {
        bool all = true;

        while (done-- > 0) {
            try {
                set_account(module, plan.steps[done].target, plan.steps[done].before);
            } catch (const Error &) {
                // A cgroup is gone, or the module is; the first error says what went wrong.
                all = false;
            }
        }
        throw Error(error.failure(), error.what(),
                    all ? "the changes made before it were undone"
                        : "not all changes made before it could be undone");
    }
    return made;
}

void print_plan(const Machine &machine, const Output &output, const Status &status,
                const Plan &plan) {
    for (const auto &[target, before, after] : plan.steps) {
        const std::string name = name_and_path(machine.owners(), target.path) + ": ";

        for_each_setting([&, &was = before, &is = after](const auto &setting) {
            if (is.*setting.change)
                print_change(output, name + setting.title,
                             words_of(setting, *(was.*setting.change)),
                             words_of(setting, *(is.*setting.change)));
        });
    }
    const MachineChange machine_change = plan.machine_change(status);
    print_changes(output, as_it_is(machine_change, status), machine_change);
}

Json plan_json(const Status &status, const Plan &plan, bool dry_run) {
    Json steps = Json::array();

    for (const Step &step : plan.steps)
        steps.push_back({{"path", step.target.path},
                         {"before", to_json(step.before)},
                         {"after", to_json(step.after)}});
    return {{"dry_run", dry_run},
            {"changes", steps},
            {"reserve_bytes", plan.reserve},
            {"before_reserve_bytes", status.reserve},
            {"charge_default", name_of(plan.charge)},
            {"before_charge_default", name_of(status.charge_default)},
            {"missing", plan.missing}};
}

int restore(Session &session, const SaveOptions &options) {
    const Output &output = session.output;
    const Policy policy = read_saved(options.file);
    Module &module = session.module();
    const Status status = module.status();

    if (!status.tells_all())
        throw Error(Failure::permission, "cannot read what is set: it is not visible to you",
                    "it takes root");
    const Plan plan = plan_of(session, status, policy);
    const Enforcement made = options.dry_run ? Enforcement() : make_it_so(module, status, plan);
    if (output.json)
        output.document(plan_json(status, plan, options.dry_run));
    else
        print_plan(session.machine, output, status, plan);
    for (const std::string &path : plan.missing)
        output.note(path + " is not there: its settings are not restored");
    if (!plan.missing.empty())
        return static_cast<int>(Failure::failed);
    return report_enforcement(output, made);
}

} // namespace

Action add_save(CLI::App &verb) {
    add_examples(verb, "umacct save >settings.toml");
    return save;
}

Action add_restore(CLI::App &verb) {
    auto options = std::make_shared<SaveOptions>();

    verb.add_option("FILE", options->file, "what 'umacct save' wrote; - for standard input")
        ->type_name("FILE")
        ->required();
    verb.add_flag("-n,--dry-run", options->dry_run, "say what would change, and change nothing");
    add_examples(verb, "umacct restore settings.toml\n"
                       "umacct restore -n settings.toml    the difference alone");
    return [options](Session &session) { return restore(session, *options); };
}

} // namespace umacct::tool
