// SPDX-License-Identifier: GPL-2.0-or-later
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/text.h"
#include "tool/arguments.h"
#include "tool/print/columns.h"
#include "tool/session.h"
#include "tool/settings.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

umacct_charge_mode mode_of(std::string_view word) {
    return word == "on"    ? UMACCT_CHARGE_ON
           : word == "off" ? UMACCT_CHARGE_OFF
                           : UMACCT_CHARGE_INHERIT;
}

bool is_worth_listing(const Account &account) {
    return account.charge != UMACCT_CHARGE_INHERIT || account.usage > 0;
}

int list(Module &module, const Machine &machine, Output &output, const ListOptions &options,
         const std::vector<Account> &accounts) {
    const auto shown = chosen_columns(options, Of::accounts,
                                      {"name", "charge", "charging", "charged", "uncharged"});
    const Column &sort = column(options.sort, Of::accounts, "--sort");
    const Status status = module.status();
    const std::string &why_not = status.charge_reason;
    const std::vector<Row> rows =
        account_rows(machine, accounts, Binders(module, machine.owners(), accounts), sort);

    if (output.json) {
        print_json(output, machine.owners(),
                   {{"charge_default", name_of(status.charge_default)},
                    {"charge_ready", status.has(UMACCT_STATUS_CHARGE_READY)},
                    {"native_charge", status.has(UMACCT_STATUS_NATIVE_CHARGE)},
                    {"charge_reason", why_not.empty() ? Json(nullptr) : Json(why_not)}},
                   "accounts", rows);
        return 0;
    }
    if (!options.no_header) {
        fmt::print(output.out, "default for the machine: {}\n", name_of(status.charge_default));
        if (!why_not.empty())
            fmt::print(output.out, "charging can't be switched on: {}\n", printable(why_not));
        if (!rows.empty())
            fmt::print(output.out, "\n");
    }
    print_rows(output, rows, shown, Of::accounts, !options.no_header);
    return 0;
}

int set_default(Module &module, Output &output, umacct_charge_mode mode) {
    if (mode == UMACCT_CHARGE_INHERIT)
        throw Error(Failure::usage, "MODE: the machine's default has nothing to inherit from",
                    "say 'on' or 'off', or name a TARGET");

    const Status before = module.status();
    Enforcement made;
    request_change("", {{UMACCT_A_STATUS_CHARGE_DEFAULT, "MODE"}},
                   [&] { made = module.set_charge_default(mode); });
    const Status after = module.status();
    const std::string was(name_of(before.charge_default));
    const std::string is(name_of(after.charge_default));
    if (output.json)
        output.document(merged({{"charge_default", is}, {"before", was}}, to_json(made)));
    else
        print_change(output, "charging, the machine's default:", was, is);
    return report_enforcement(output, made);
}

int charge(Module &module, const Machine &machine, Output &output, ModeOptions options) {
    AccountChange change;

    options.understand({"on", "off", "inherit"}, "for example: umacct charge ollama.service on");
    if (!options.mode)
        return list(module, machine, output, options.list,
                    listed_accounts(module, machine, options.target, is_worth_listing));
    change.charge = mode_of(*options.mode);
    if (!options.target)
        return set_default(module, output, *change.charge);

    const Target target = machine.resolve(*options.target);
    const int code = change_account(module, machine, output, target, change);
    if (target.path == "/" && change.charge == UMACCT_CHARGE_ON)
        output.note("this is for the cgroups below; the kernel never charges processes in the "
                    "root cgroup itself");
    return code;
}

} // namespace

Action add_charge(CLI::App &verb) {
    auto options = std::make_shared<ModeOptions>();

    add_mode_options(verb, *options, "whose; without it, the machine's default",
                     "on, off or inherit; nothing to list");
    add_examples(verb, "umacct charge                          what is charged, and what isn't\n"
                       "umacct charge ollama.service           the same of one\n"
                       "umacct charge ollama.service on\n"
                       "umacct charge ollama.service inherit\n"
                       "umacct charge on                       the default for every cgroup");
    return [options](Session &session) {
        return charge(session.module(), session.machine, session.output, *options);
    };
}

} // namespace umacct::tool
