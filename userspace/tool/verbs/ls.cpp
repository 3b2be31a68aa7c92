// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>
#include <memory>
#include <unordered_map>

#include <CLI/CLI.hpp>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/arithmetic.h"
#include "tool/arguments.h"
#include "tool/audit/hidden.h"
#include "tool/print/tree.h"
#include "tool/session.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

struct LsOptions {
    std::optional<std::string> target;
    ListOptions list{.columns = {}, .sort = "total"};
    bool flat = false;
    bool all = false;
    std::optional<std::uint32_t> depth;
};

int list(Session &session, const LsOptions &options) {
    const Machine &machine = session.machine;
    const Output &output = session.output;
    const std::vector<const Column *> shown =
        chosen_columns(options.list, Of::accounts,
                       {"name", "total", "usage", "peak", "limit", "percent", "uncharged",
                        "memory.current", "memory.max"});
    const Column &sort = column(options.list.sort, Of::accounts, "--sort");
    std::vector<const Column *> asked = shown;
    asked.push_back(&sort);
    Files files = files_for(asked);
    files.total |= output.json;
    Module &module = session.module();
    const Status status = module.status();
    const std::optional<std::uint64_t> subtree =
        options.target ? std::optional(machine.resolve(*options.target).id) : std::nullopt;
    const std::vector<Account> accounts = module.accounts(subtree);
    std::unordered_map<std::uint64_t, std::uint32_t> exiting;
    for (const Client &client : module.exiting_clients(subtree))
        ++exiting[client.account_id];
    const Binders binders(module, machine.owners(), accounts);
    const Meminfo meminfo = machine.meminfo(status);
    const std::uint64_t used = without(meminfo.total(), meminfo.available());
    const auto order = [&](const Row &a, const Row &b) { return comes_before(sort, a, b); };
    std::vector<Row> rows = tree_rows(
        accounts, [&](const Account &account) { return options.all || is_busy(account); },
        [&](Row &row) {
            row.memory = memory_controller(machine.cgroups(), *row.account, files);
            if (files.total && !row.memory.total)
                row.memory.total = used; // the root's
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
    const bool hidden = note_hidden(session, status);
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
        fmt::print(output.out, "no account{} holds memory or has settings; --all lists the rest\n",
                   hidden ? " that you may see" : "");
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
    verb.add_option("--depth", options->depth, "number of levels below the first; 0 for it alone")
        ->type_name("N");
    add_examples(verb, "umacct ls\n"
                       "umacct ls --depth 1\n"
                       "umacct ls --flat --sort peak\n"
                       "umacct ls -o +refusals,local ollama.service\n"
                       "umacct ls user.slice --json");
    return [options](Session &session) { return list(session, *options); };
}

} // namespace umacct::tool
