// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/settings.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/ostream.h>

#include "lib/error.h"
#include "lib/policy/last_good.h"
#include "lib/policy/policy.h"
#include "lib/settings.h"
#include "lib/text.h"
#include "lib/units.h"
#include "tool/arguments.h"
#include "tool/audit/hidden.h"
#include "tool/exit_code.h"
#include "tool/print/text.h"
#include "tool/session.h"

namespace umacct::tool {

void ModeOptions::understand(const std::vector<std::string_view> &modes, const char *hint) {
    const auto is_mode = [&](const std::string &word) {
        return std::ranges::find(modes, word) != modes.end();
    };

    if (target && is_mode(*target) && !(mode && is_mode(*mode)))
        std::swap(target, mode);
    if (mode && !is_mode(*mode))
        throw Error(Failure::usage,
                    fmt::format("MODE: '{}' is none of {}", *mode, fmt::join(modes, ", ")), hint);
}

void add_mode_options(CLI::App &verb, ModeOptions &options, const char *whose, const char *modes) {
    add_list_options(verb, options.list, Of::accounts);
    verb.add_option("TARGET", options.target, whose);
    verb.add_option("MODE", options.mode, modes);
}

namespace {

void print_reasons(const Output &output, const Machine &machine, const OrderReader &orders,
                   const std::vector<Row> &rows, bool sees_all) {
    std::string text;

    for (const Row &row : rows) {
        for (const std::string &line :
             reasons_of(orders.of(row.account->path), *row.account, sees_all))
            text += fmt::format("{}: {}\n", display_path(machine.owners(), row.account->path),
                                printable(line));
    }
    if (!text.empty())
        fmt::print(output.out, "\n{}", text);
}

} // namespace

int list_accounts(Session &session, const std::optional<std::string> &target,
                  const ListOptions &options, const AccountList &list) {
    Module &module = session.module();
    const Machine &machine = session.machine;
    const Output &output = session.output;
    std::vector<Account> accounts;

    if (target) {
        accounts = {read_account(module, machine.cgroups(), machine.resolve(*target))};
    } else {
        note_hidden(session, module.status());
        accounts = module.accounts();
        std::erase_if(accounts, [&](const Account &account) { return !list.worth(account); });
    }
    const auto shown = chosen_columns(options, Of::accounts, list.columns);
    const Binders binders(module, machine.owners(), accounts);
    const std::vector<Row> rows =
        account_rows(machine, accounts, binders, column(options.sort, Of::accounts, "--sort"));
    const OrderReader orders(machine);
    const bool sees_all = module.status().tells_all();
    const auto add_reasons = [&](std::string &text, const Row &row) {
        const std::string path = binders.path(*row.account);

        text += ",\"effective_path\":" + json_text(path.empty() ? Json(nullptr) : Json(path));
        text += ",\"orders\":" +
                json_text(reasons_json(orders.of(row.account->path), *row.account, sees_all));
    };

    if (output.json) {
        print_json(output, machine.owners(), list.members, "accounts", rows,
                   list.reasons ? add_reasons : More());
        return 0;
    }
    if (!options.no_header && !options.csv && !list.head.empty())
        fmt::print(output.out, "{}{}", list.head, rows.empty() ? "" : "\n");
    if (rows.empty() && !options.csv)
        fmt::print(output.out, "{}",
                   module.status().tells_all() ? list.none
                                               : "none that you may see; run as root\n");
    else
        print_rows(output, rows, shown, Of::accounts, options);
    if (list.reasons && !options.csv && !options.no_header)
        print_reasons(output, machine, orders, rows, sees_all);
    return 0;
}

namespace {

/// Describes the sum of the other guarantees, and the available memory.
std::string how_much_is_kept(Module &module, const Target &target) {
    const Status status = module.status();
    std::uint64_t others = 0;

    for (const Account &account : module.accounts())
        others += account.id == target.id ? 0 : account.keep;
    return fmt::format("others are guaranteed {}, and the machine has {}, with a reserve of {}",
                       format_size(others), format_size(status.memory_total.value_or(0)),
                       format_size(status.reserve));
}

Enforcement set_account(Module &module, const Target &target, const AccountChange &change) {
    Enforcement made;
    SettingNames names;

    for_each_setting([&](const auto &setting) {
        if (change.*setting.change)
            names.emplace_back(setting.attribute, setting.policy);
    });
    request_change(target.path, names, [&] {
        try {
            made = module.set_account(target.id, change);
        } catch (const RequestError &error) {
            if (error.attribute() != UMACCT_A_ACCOUNT_KEEP || error.code() != ENOSPC)
                throw;
            throw Error(error.failure(), cannot_set("keep", target.path, error.what()),
                        how_much_is_kept(module, target));
        }
    });
    return made;
}

} // namespace

Target resolve_to_change(const Machine &machine, const std::string &target) {
    Target found = machine.resolve(target);

    if (found.path == "/" && target != "/")
        throw Error(Failure::usage, fmt::format("TARGET '{}' is the root cgroup", target),
                    "to limit all cgroups, write /; perhaps a script variable is empty");
    return found;
}

std::optional<Owner> owner_for_daemon(const Machine &machine, const std::string &path) {
    const auto owner = machine.owners().of(path);

    return owner && owner->kind == OwnerKind::container && user_of(path).value_or(0) != 0
               ? owner_of(path)
               : owner;
}

OrderReader::OrderReader(const Machine &machine)
    : machine_(machine),
      policy_([&machine] {
          try {
              return policy_in_force(machine.root()).policy;
          } catch (const PolicyError &) {
              return LastGood(machine.root()).policy().value_or(Policy());
          }
      }()),
      total_(machine.meminfo().total()) {}

RuleOrder OrderReader::rule(const std::string &path) const {
    const auto owner = owner_for_daemon(machine_, path);
    const Rule *rule = policy_.match({.path = path,
                                      .owner = owner ? &*owner : nullptr,
                                      .inside = is_made_inside(path, machine_.owners())});

    return policy_.order(path, rule, total_);
}

Orders OrderReader::of(const std::string &path) const {
    return read_orders(machine_, path, rule(path));
}

namespace {

/// Calls use() with each setting that has a reason, its value and the reason.
void for_each_reason(const Orders &orders, const Account &now, bool sees_all, auto use) {
    const Settled settled = settle(orders);

    for_each_setting([&](const auto &setting) {
        const std::string reason = why_now(orders, settled, setting, now, sees_all);

        if (!reason.empty())
            use(setting, words_of(setting, value_of(setting, now)), reason,
                settled.by(setting.attribute));
    });
}

} // namespace

std::vector<std::string> reasons_of(const Orders &orders, const Account &now, bool sees_all) {
    std::vector<std::string> lines;

    for_each_reason(
        orders, now, sees_all,
        [&](const auto &setting, const std::string &value, const std::string &reason, Author) {
            lines.push_back(fmt::format("{} {}, {}", setting.policy, value, reason));
        });
    return lines;
}

Json reasons_json(const Orders &orders, const Account &now, bool sees_all) {
    Json list = Json::array();

    for_each_reason(
        orders, now, sees_all,
        [&](const auto &setting, const std::string &value, const std::string &reason, Author by) {
            list.push_back({{"setting", setting.policy},
                            {"by", name_of(by)},
                            {"text", fmt::format("{} {}, {}", setting.policy, value, reason)}});
        });
    return list;
}

Carried carry_out(Session &session, const Target &target, const PersonChange &change,
                  std::optional<RuleOrder> rule) {
    Module &module = session.module();
    std::optional<std::string> mark;

    if (!rule) {
        mark = policy_mark(session.machine.root());
        rule = OrderReader(session.machine).rule(target.path);
    }
    return umacct::carry_out(
        session.machine, module,
        {.path = target.path,
         .id = target.id,
         .rule = std::move(*rule),
         .mark = std::move(mark),
         .person = change,
         .extent = Extent::named,
         .always = true},
        [&](const AccountChange &wanted) { return set_account(module, target, wanted); });
}

std::string change_text(const std::string &what, const std::string &before,
                        const std::string &after) {
    return before == after ? fmt::format("{} {}, as it was", what, after)
                           : fmt::format("{} {} -> {}", what, before, after);
}

void print_change(const Output &output, const std::string &what, const std::string &before,
                  const std::string &after) {
    fmt::print(output.out, "{}\n", change_text(what, before, after));
}

void print_changes(Session &session, const Target &target, const AccountChange &before,
                   const AccountChange &after) {
    const std::string name = name_and_path(session.machine.owners(), target.path) + ": ";

    for_each_setting([&](const auto &setting) {
        if (before.*setting.change)
            print_change(session.output, name + setting.title,
                         words_of(setting, *(before.*setting.change)),
                         words_of(setting, *(after.*setting.change)));
    });
}

void print_changes(const Output &output, const MachineChange &before, const MachineChange &after) {
    for_each_machine_setting([&](const auto &setting) {
        if (before.*setting.change)
            print_change(output, setting.title, words_of(setting, *(before.*setting.change)),
                         words_of(setting, *(after.*setting.change)));
    });
}

void note_what_stays(Session &session, const Target &target, const AccountChange &change,
                     const Account &after) {
    if (after.effective && after.usage > *after.effective)
        session.output.note(
            fmt::format("{} holds {} already, above its limit of {}: what is held stays, "
                        "new allocations are refused",
                        name_and_path(session.machine.owners(), target.path),
                        format_size(after.usage), format_size(*after.effective)));
    if (target.path == "/" && change.charge == UMACCT_CHARGE_ON)
        session.output.note("this is for the cgroups below; the kernel never charges processes in "
                            "the root cgroup itself");
}

void note_orders(Session &session, const Carried &carried, const PersonChange &change) {
    bool is_kept = false;

    for_each_setting([&](const auto &setting) {
        const auto &asked = change.asked.*setting.change;
        const std::string reason = why(carried.orders, carried.settled, setting);

        if (!asked)
            return;
        is_kept = is_kept || carried.orders.person.asked.*setting.change;
        // Another order says something else, whichever of them holds.
        if (asked != carried.settled.values.*setting.change ||
            reason.find(';') != std::string::npos)
            session.output.note(
                fmt::format("{} {}: {}", setting.title,
                            words_of(setting, *(carried.settled.values.*setting.change)), reason));
    });
    const std::uint64_t total = session.machine.meminfo().total();
    for (const auto &limit : {change.asked.hard, change.asked.soft}) {
        if (limit && *limit != UMACCT_UNLIMITED && *limit > total)
            session.output.note(fmt::format("{} is more than the machine's {}: it never binds",
                                            format_size(*limit), format_size(total)));
    }
    if (carried.unkept != 0)
        session.output.note(
            fmt::format("this ends when umacctd applies its policy again, as it cannot be kept "
                        "with the cgroup: {}",
                        std::generic_category().message(carried.unkept)));
    else if (is_kept)
        session.output.note("this ends with the cgroup, and when the machine starts again; "
                            "a rule in /etc/umacct.toml stays");
}

void note_machine(const Output &output, const MachineChanged &changed) {
    const auto &reserve = changed.of_module.set.reserve;

    if (changed.of_module.guard && reserve == changed.of_module.guard)
        output.note(fmt::format("the guard holds the reserve at {}", format_size(*reserve)));
    output.note("this ends when the machine starts again; [machine] in /etc/umacct.toml stays");
}

int report_change(Session &session, const Target &target, const Account &before,
                  const Carried &carried) {
    const Machine &machine = session.machine;
    const Output &output = session.output;
    const Account after = read_account(session.module(), machine.cgroups(), target);

    if (output.json)
        output.document(merged(
            {{"accounts", Json::array({to_json(machine.owners(), after,
                                               memory_controller(machine.cgroups(), after))})},
             {"before", to_json(machine.owners(), before)}},
            to_json(carried.made)));
    else
        print_changes(session, target, carried.before, as_it_is(carried.set, after));
    note_what_stays(session, target, carried.set, after);
    return report_enforcement(output, carried.made);
}

int change_account(Session &session, const Target &target, const PersonChange &change,
                   std::optional<RuleOrder> rule) {
    const Account before = read_account(session.module(), session.machine.cgroups(), target);
    const Carried carried = carry_out(session, target, change, std::move(rule));
    const int code = report_change(session, target, before, carried);

    note_orders(session, carried, change);
    return code;
}

bool is_unenforced(const Enforcement &made) {
    return !made.reason.empty() && made.driver_state != UMACCT_DRIVER_ABSENT;
}

int report_enforcement(const Output &output, const Enforcement &made) {
    if (made.driver_state == UMACCT_DRIVER_ABSENT)
        output.note("the driver is not loaded; the setting takes effect once it is");
    if (!is_unenforced(made))
        return 0;
    fmt::print(output.err, "umacct: set, but not enforced: {}\nhint: see 'umacct doctor'\n",
               printable(made.reason));
    return exit_not_enforced;
}

} // namespace umacct::tool
