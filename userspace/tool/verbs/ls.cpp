// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>
#include <memory>
#include <unordered_map>

#include <CLI/CLI.hpp>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "tool/arguments.h"
#include "tool/print/tree.h"
#include "tool/session.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

struct LsOptions {
    std::optional<std::string> target;
    ListOptions list{.columns = {}, .sort = "usage"};
    bool flat = false;
    bool all = false;
    std::optional<std::uint32_t> depth;
};

int list(Session &session, const LsOptions &options) {
    const Machine &machine = session.machine;
    const Output &output = session.output;
    const std::vector<const Column *> shown =
        chosen_columns(options.list, Of::accounts,
                       {"name", "usage", "peak", "limit", "percent", "charged", "uncharged",
                        "memory.current", "memory.max"});
    const Column &sort = column(options.list.sort, Of::accounts, "--sort");
    const bool pressure = need_pressure(shown) || need_pressure({&sort});
    Module &module = session.module();
    const Status status = module.status();
    const std::optional<std::uint64_t> subtree =
        options.target ? std::optional(machine.resolve(*options.target).id) : std::nullopt;
    const std::vector<Account> accounts = module.accounts(subtree);
    std::unordered_map<std::uint64_t, std::uint32_t> exiting;
    for (const Client &client : module.exiting_clients(subtree))
        ++exiting[client.account_id];
    const Binders binders(module, machine.owners(), accounts);
    const auto order = [&](const Row &a, const Row &b) { return comes_before(sort, a, b); };
    std::vector<Row> rows = tree_rows(
        accounts, [&](const Account &account) { return options.all || is_busy(account); },
        [&](Row &row) {
            row.memory = (pressure ? memory_and_pressure : memory_controller)(machine.cgroups(),
                                                                              *row.account);
            row.bound_by = binders.shown(*row.account);
            if (const auto found = exiting.find(row.account->id); found != exiting.end())
                row.exiting = found->second;
        },
        order,
        // The first is what all others are below.
        [&](const Account &account) {
            return !options.depth || account.level - accounts.front().level < *options.depth;
        });

    if (options.flat) {
        std::stable_sort(rows.begin(), rows.end(), order);
        for (Row &row : rows)
            row.depth = 0;
    }
    output.warn_if_degraded(status);
    if (output.json) {
        print_json(output, machine.owners(), Json::object(), "accounts", rows,
                   [](std::string &text, const Row &row) {
                       text += ",\"exiting\":";
                       text += row.exiting == 0 ? "0" : std::to_string(row.exiting);
                   });
        return 0;
    }
    name_rows(machine.owners(), rows);
    for (Row &row : rows) {
        if (row.exiting != 0)
            row.name += fmt::format(" ({})", exiting_note(row.exiting));
    }
    if (rows.empty() && !options.list.csv)
        fmt::print(output.out, "no account holds memory or has settings; --all lists the rest\n");
    else
        print_rows(output, rows, shown, Of::accounts, options.list);
    return 0;
}

} // namespace

Action add_ls(CLI::App &verb) {
    auto options = std::make_shared<LsOptions>();

    add_list_options(verb, options->list, Of::accounts);
    verb.add_option("TARGET", options->target, subtree_help);
    verb.add_flag("--flat", options->flat, "full paths, one order, instead of a tree");
    verb.add_flag("-a,--all", options->all, "also accounts that hold nothing and have no settings");
    verb.add_option("--depth", options->depth, "so many levels below the first; 0 for it alone")
        ->type_name("N");
    add_examples(verb, "umacct ls\n"
                       "umacct ls --depth 1\n"
                       "umacct ls --flat --sort peak\n"
                       "umacct ls -o +refusals,local ollama.service\n"
                       "umacct ls user.slice --json");
    return [options](Session &session) { return list(session, *options); };
}

} // namespace umacct::tool
