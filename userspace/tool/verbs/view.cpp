// SPDX-License-Identifier: GPL-2.0-or-later
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "tool/arguments.h"
#include "tool/print/columns.h"
#include "tool/session.h"
#include "tool/settings.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

int list(Module &module, const Machine &machine, Output &output, const ListOptions &options,
         const std::vector<Account> &accounts) {
    const auto shown =
        chosen_columns(options, Of::accounts, {"name", "view", "limit", "usage", "bound-by"});
    const std::vector<Row> rows =
        account_rows(machine, accounts, Binders(module, machine.owners(), accounts),
                     column(options.sort, Of::accounts, "--sort"));

    if (output.json)
        print_json(output, machine.owners(), Json::object(), "accounts", rows);
    else if (rows.empty())
        fmt::print(output.out, "nobody has a view: everybody is told the machine's truth\n");
    else
        print_rows(output, rows, shown, Of::accounts, !options.no_header);
    return 0;
}

int view(Module &module, const Machine &machine, Output &output, ModeOptions options) {
    AccountChange change;

    options.understand({"on", "off"}, "for example: umacct view ollama.service on");
    if (!options.mode)
        return list(module, machine, output, options.list,
                    listed_accounts(module, machine, options.target,
                                    [](const Account &account) { return account.view; }));
    change.view = *options.mode == "on";
    return change_account(module, machine, output, machine.resolve(options.target.value_or("/")),
                          change);
}

} // namespace

Action add_view(CLI::App &verb) {
    auto options = std::make_shared<ModeOptions>();

    add_mode_options(verb, *options, "whose; without it, everybody's",
                     "on or off; nothing to list");
    add_examples(verb, "umacct view                    who has one\n"
                       "umacct view on                 everybody is told what could be had\n"
                       "umacct view ollama.service on  of one alone\n"
                       "umacct view off");
    return [options](Session &session) {
        return view(session.module(), session.machine, session.output, *options);
    };
}

} // namespace umacct::tool
