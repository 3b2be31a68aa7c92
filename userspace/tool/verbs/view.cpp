// SPDX-License-Identifier: GPL-2.0-or-later
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "tool/arguments.h"
#include "tool/print/columns.h"
#include "tool/session.h"
#include "tool/settings.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

struct Options {
    std::optional<std::string> target; ///< or MODE where it is the only one
    std::optional<std::string> mode;
    ListOptions list{.columns = {}, .sort = "name"};
};

bool is_mode(const std::string &word) {
    return word == "on" || word == "off";
}

int list(const Machine &machine, Output &output, const ListOptions &options,
         const std::vector<Account> &accounts) {
    const auto shown =
        chosen_columns(options, Of::accounts, {"name", "view", "limit", "usage", "bound-by"});
    const std::vector<Row> rows =
        account_rows(machine, accounts, column(options.sort, Of::accounts, "--sort"));

    if (output.json)
        print_json(output, machine.owners(), Json::object(), "accounts", rows);
    else if (rows.empty())
        fmt::print(output.out, "nobody has a view: everybody is told the machine's truth\n");
    else
        print_rows(output, rows, shown, Of::accounts, !options.no_header);
    return 0;
}

int list_all(Module &module, const Machine &machine, Output &output, const ListOptions &options) {
    std::vector<Account> accounts = module.accounts();

    std::erase_if(accounts, [](const Account &account) { return !account.view; });
    return list(machine, output, options, accounts);
}

int view(Module &module, const Machine &machine, Output &output, const Options &options) {
    if (!options.target)
        return list_all(module, machine, output, options.list);

    const bool everybody = !options.mode && is_mode(*options.target);
    const std::optional<std::string> mode = everybody ? options.target : options.mode;
    if (mode && !is_mode(*mode))
        throw Error(Failure::usage, fmt::format("MODE: '{}' is neither on nor off", *mode),
                    "for example: umacct view ollama.service on");

    const Target target = machine.resolve(everybody ? "/" : *options.target);
    if (!mode)
        return list(machine, output, options.list,
                    {read_account(module, machine.cgroups(), target)});

    AccountChange change;
    change.view = *mode == "on";
    return change_account(module, machine, output, target, change);
}

} // namespace

Action add_view(CLI::App &verb) {
    auto options = std::make_shared<Options>();

    add_list_options(verb, options->list, Of::accounts);
    verb.add_option("TARGET", options->target, "whose; without it, everybody's");
    verb.add_option("MODE", options->mode, "on or off; nothing to list");
    add_examples(verb, "umacct view                    who has one\n"
                       "umacct view on                 everybody is told what could be had\n"
                       "umacct view ollama.service on  of one alone\n"
                       "umacct view off");
    return [options](Session &session) {
        return view(session.module(), session.machine, session.output, *options);
    };
}

} // namespace umacct::tool
