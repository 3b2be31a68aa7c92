// SPDX-License-Identifier: GPL-2.0-or-later
/// "config save" and "config load": all that is set, as a file that a policy could be, and back, as
/// a person's orders. What the file doesn't name stays.
#include <cerrno>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>

#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/hints.h"
#include "lib/json.h"
#include "lib/policy/policy.h"
#include "lib/settings.h"
#include "lib/text.h"
#include "lib/units.h"
#include "tool/arguments.h"
#include "tool/permanent.h"
#include "tool/print/text.h"
#include "tool/session.h"
#include "tool/settings.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

// --- save -------------------------------------------------------------------------

/// A pattern of a policy can say it, and it means no other cgroup.
bool can_be_named(const std::string &path) {
    return printable(path) == path && path.find_first_of("*?") == std::string::npos;
}

void print_rule(std::ostream &out, const Account &account) {
    AccountChange all = settings_of(account);

    for_each_setting([&](const auto &setting) {
        if (all.*setting.change == setting.neutral)
            (all.*setting.change).reset();
    });
    fmt::print(out, "\n[[rule]]\ncgroup = {}\n{}", quoted(account.path), rule_lines(all));
}

} // namespace

int save_settings(Session &session) {
    Module &module = session.module();
    const Output &output = session.output;
    const Status status = module.status();

    if (output.json)
        throw Error(Failure::usage, "--json: a saved file is TOML", "see 'umacct limit --json'");
    if (!status.tells_all())
        throw Error(Failure::permission, "cannot read the settings: permission denied",
                    run_as_root);
    fmt::print(output.out,
               "# By 'umacct config save': what is set, for 'umacct config load', or as a policy.\n"
               "[machine]\nreserve = \"{}B\"\ncharge = \"{}\"\n",
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

// --- load -------------------------------------------------------------------------

namespace {

/// The settings of one cgroup that differ from the file's.
struct Step {
    Target target;
    AccountChange before;
    AccountChange after;
};

struct Plan {
    std::vector<Step> steps = {};
    MachineChange machine = {};            ///< the machine's settings that differ
    std::vector<std::string> missing = {}; ///< cgroups that there aren't
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
            "'umacct config save' writes one");
    return read_policy(std::string(std::istreambuf_iterator<char>(file), {}), name);
}

/// Returns the settings of each account, by path. Throws Error where the file is more than that.
std::map<std::string, AccountChange> wanted_by(const Policy &policy, std::uint64_t total) {
    static constexpr const char *hint = "a policy is for umacctd: umacct.toml(5)";
    std::map<std::string, AccountChange> wanted;

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
        AccountChange &all = wanted[*rule.cgroup];
        const AccountChange change = rule.change(total);

        for_each_setting([&](const auto &setting) {
            if (change.*setting.change)
                all.*setting.change = change.*setting.change;
        });
    }
    if (policy.view)
        wanted["/"].view = policy.view;
    return wanted;
}

Plan plan_of(Session &session, const Status &status, const Policy &policy) {
    const Cgroups &cgroups = session.machine.cgroups();
    const std::uint64_t total = session.machine.meminfo(status).total();
    Plan plan;

    plan.machine = policy.machine_order(total).asked;
    if (plan.machine.reserve.value_or(0) > total)
        throw Error(Failure::usage,
                    fmt::format("FILE: a reserve of {} is more than the machine's memory",
                                format_size(*plan.machine.reserve)));
    for_each_machine_setting([&](const auto &setting) {
        if (plan.machine.*setting.change == value_of(setting, status))
            (plan.machine.*setting.change).reset();
    });
    for (auto &[path, change] : wanted_by(policy, total)) {
        if (!cgroups.exists(path)) {
            plan.missing.push_back(path);
            continue;
        }
        const Target target{.path = path, .id = cgroups.id(path), .pid = {}};
        const Account now = session.module().account(target.id).value_or(Account());

        for_each_setting([&, &asked = change](const auto &setting) {
            if (asked.*setting.change == value_of(setting, now))
                (asked.*setting.change).reset();
        });
        if (change.charge == UMACCT_CHARGE_ON && !status.has(UMACCT_STATUS_CHARGE_READY))
            throw Error(Failure::failed,
                        cannot_set("charge", path, "charging can't be switched on"),
                        status.charge_reason);
        if (change.view == true && !status.has(UMACCT_STATUS_VIEW_READY))
            throw Error(Failure::failed, cannot_set("view", path, "views can't be switched on"),
                        "see 'umacct doctor'");
        if (!change.empty())
            plan.steps.push_back(
                {.target = target, .before = as_it_is(change, now), .after = change});
    }
    return plan;
}

/// Makes all of the changes, or undoes those that it made.
Enforcement make_it_so(Session &session, const Plan &plan) {
    std::vector<Carried> done;
    Enforcement made;

    try {
        for (const Step &step : plan.steps) {
            done.push_back(
                carry_out(session, step.target, {.asked = step.after, .taken_back = {}}));
            made = done.back().made;
        }
        if (!plan.machine.empty()) {
            MachineWish wish;

            wish.module = plan.machine;
            made = change_machine(session, wish).of_module.made;
        }
    } catch (const Error &error) {
        bool all = true;

        for (std::size_t i = done.size(); i-- > 0;) {
            try {
                undo(session.machine, session.module(), plan.steps[i].target.path,
                     plan.steps[i].target.id, done[i]);
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

void print_plan(Session &session, const Status &status, const Plan &plan) {
    if (plan.steps.empty() && plan.machine.empty())
        fmt::print(session.output.out, "nothing differs\n");
    for (const auto &[target, before, after] : plan.steps)
        print_changes(session, target, before, after);
    print_changes(session.output, as_it_is(plan.machine, status), plan.machine);
}

Json plan_json(const Status &status, const Plan &plan, bool dry_run) {
    Json steps = Json::array();

    for (const Step &step : plan.steps)
        steps.push_back({{"path", step.target.path},
                         {"before", to_json(step.before)},
                         {"after", to_json(step.after)}});
    return {
        {"dry_run", dry_run},
        {"changes", steps},
        {"reserve_bytes", plan.machine.reserve.value_or(status.reserve)},
        {"before_reserve_bytes", status.reserve},
        {"charge_default", name_of(plan.machine.charge_default.value_or(status.charge_default))},
        {"before_charge_default", name_of(status.charge_default)},
        {"missing", plan.missing}};
}

} // namespace

int load_settings(Session &session, const std::string &file, bool dry_run) {
    const Output &output = session.output;
    const Policy policy = read_saved(file);
    const Status status = session.module().status();

    if (!status.tells_all())
        throw Error(Failure::permission, "cannot read the settings: permission denied",
                    run_as_root);
    const Plan plan = plan_of(session, status, policy);
    const Enforcement made = dry_run ? Enforcement() : make_it_so(session, plan);
    if (output.json)
        output.document(plan_json(status, plan, dry_run));
    else
        print_plan(session, status, plan);
    if (!dry_run && !(plan.steps.empty() && plan.machine.empty()))
        output.note("this ends with each cgroup, and when the machine starts again");
    for (const std::string &path : plan.missing)
        output.note(path + " is not there: its settings are not set");
    if (!plan.missing.empty())
        return static_cast<int>(Failure::failed);
    return report_enforcement(output, made);
}

} // namespace umacct::tool
