// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/settings.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/ostream.h>

#include "lib/error.h"
#include "lib/settings.h"
#include "lib/text.h"
#include "lib/units.h"
#include "tool/arguments.h"
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

int list_accounts(Session &session, const std::optional<std::string> &target,
                  const ListOptions &options, const AccountList &list) {
    Module &module = session.module();
    const Machine &machine = session.machine;
    const Output &output = session.output;
    std::vector<Account> accounts;

    if (target) {
        accounts = {read_account(module, machine.cgroups(), machine.resolve(*target))};
    } else {
        accounts = module.accounts();
        std::erase_if(accounts, [&](const Account &account) { return !list.worth(account); });
    }
    const auto shown = chosen_columns(options, Of::accounts, list.columns);
    const Binders binders(module, machine.owners(), accounts);
    const std::vector<Row> rows =
        account_rows(machine, accounts, binders, column(options.sort, Of::accounts, "--sort"));
    const auto add_binder = [&](std::string &text, const Row &row) {
        const std::string path = binders.path(*row.account);

        text += ",\"effective_path\":" + json_text(path.empty() ? Json(nullptr) : Json(path));
    };

    if (output.json) {
        print_json(output, machine.owners(), list.members, "accounts", rows,
                   list.binders ? add_binder : More());
        return 0;
    }
    if (!options.no_header && !options.csv && !list.head.empty())
        fmt::print(output.out, "{}{}", list.head, rows.empty() ? "" : "\n");
    if (rows.empty() && !options.csv)
        fmt::print(output.out, "{}", list.none);
    else
        print_rows(output, rows, shown, Of::accounts, options);
    return 0;
}

namespace {

/// What the guarantees of others come to, beside what there is.
std::string how_much_is_kept(Module &module, const Target &target) {
    const Status status = module.status();
    std::uint64_t others = 0;

    for (const Account &account : module.accounts())
        others += account.id == target.id ? 0 : account.keep;
    return fmt::format("others are guaranteed {}, and the machine has {}, with a reserve of {}",
                       format_size(others), format_size(status.memory_total.value_or(0)),
                       format_size(status.reserve));
}

} // namespace

Target resolve_to_change(const Machine &machine, const std::string &target) {
    Target found = machine.resolve(target);

    if (found.path == "/" && target != "/")
        throw Error(Failure::usage, fmt::format("TARGET '{}' is the root cgroup", target),
                    "to limit all cgroups, write /; perhaps a script variable is empty");
    return found;
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

Enforcement set_machine(Module &module, const MachineChange &change) {
    Enforcement made;
    SettingNames names;

    for_each_machine_setting([&](const auto &setting) {
        if (change.*setting.change)
            names.emplace_back(setting.attribute, setting.policy);
    });
    request_change(machine_itself, names, [&] { made = module.set_machine(change); });
    return made;
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

int change_account(Session &session, const Target &target, const AccountChange &change) {
    Module &module = session.module();
    const Machine &machine = session.machine;
    const Output &output = session.output;
    const Account before = read_account(module, machine.cgroups(), target);
    const Enforcement made = set_account(module, target, change);
    const Account after = read_account(module, machine.cgroups(), target);

    if (output.json)
        output.document(merged(
            {{"accounts", Json::array({to_json(machine.owners(), after,
                                               memory_controller(machine.cgroups(), after))})},
             {"before", to_json(machine.owners(), before)}},
            to_json(made)));
    else
        print_changes(session, target, as_it_is(change, before), as_it_is(change, after));
    note_what_stays(session, target, change, after);
    return report_enforcement(output, made);
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
