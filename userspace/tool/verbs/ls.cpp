// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>
#include <memory>

#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/json.h"
#include "lib/machine.h"
#include "lib/units.h"
#include "tool/print/account_tree.h"
#include "tool/print/table.h"
#include "tool/print/text.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

struct Options {
    std::optional<std::string> target;
    std::string sort = "usage";
    bool flat = false;
    bool all = false;
};

void print_table(Context &context, const std::vector<AccountRow> &rows, bool flat) {
    Table table({{"ACCOUNT"},
                 {"USAGE", Align::right},
                 {"PEAK", Align::right},
                 {"LIMIT", Align::right},
                 {"CHARGED", Align::right},
                 {"UNCHARGED", Align::right},
                 {"MEMORY.CURRENT", Align::right},
                 {"MEMORY.MAX", Align::right}});

    for (const AccountRow &row : rows) {
        const Account &account = *row.account;
        const MemoryController memory = memory_controller(context.cgroups(), account);

        table.add(
            {flat ? display_path(context.owners(), account.path) : tree_name(context.owners(), row),
             format_size(account.usage), format_size(account.peak), format_limit(account.effective),
             format_size(account.charged), format_size(account.uncharged()),
             format_known(memory.current), format_known(memory.max)});
    }
    table.print(context.out());
}

void print_accounts_json(Context &context, const std::vector<AccountRow> &rows) {
    Json accounts = Json::array();

    for (const AccountRow &row : rows)
        accounts.push_back(to_json(context.owners(), *row.account,
                                   memory_controller(context.cgroups(), *row.account)));
    print_json(context.out(), merged(json_document(), {{"accounts", accounts}}));
}

void list(Context &context, const Options &options) {
    const Status status = context.module().status();
    const std::vector<Account> accounts =
        !options.target ? context.module().accounts()
                        : context.module().accounts(context.resolve(*options.target).id);
    const AccountOrder order = account_order(options.sort);
    std::vector<AccountRow> rows =
        AccountTree(
            accounts, [&](const Account &account) { return options.all || is_busy(account); },
            order)
            .rows();

    if (options.flat)
        std::stable_sort(rows.begin(), rows.end(), [&](const AccountRow &a, const AccountRow &b) {
            return order(*a.account, *b.account);
        });
    context.warn_if_degraded(status);
    if (context.json)
        print_accounts_json(context, rows);
    else if (rows.empty())
        fmt::print(context.out(),
                   "no account holds memory or has settings; --all lists the rest\n");
    else
        print_table(context, rows, options.flat);
}

} // namespace

void add_ls(CLI::App &app, Context &context) {
    auto options = std::make_shared<Options>();
    CLI::App *verb = app.add_subcommand("ls", "list the accounts: memory per cgroup");

    verb->add_option("TARGET", options->target, "only this cgroup and what is below it");
    verb->add_flag("--flat", options->flat, "full paths, one order, instead of a tree");
    verb->add_flag("-a,--all", options->all,
                   "also accounts that hold nothing and have no settings");
    verb->add_option("--sort", options->sort, "largest first, or by name")
        ->check(CLI::IsMember({"usage", "own", "peak", "limit", "charged", "uncharged", "name"}))
        ->capture_default_str();
    verb->footer(
        "A row's figures are of the cgroup and all below it. LIMIT is the lowest hard limit from\n"
        "there to the root. MEMORY.CURRENT and MEMORY.MAX are the kernel's own controller's, "
        "which\n"
        "sees CHARGED but not UNCHARGED.\n"
        "\n"
        "Examples:\n"
        "  umacct ls\n"
        "  umacct ls --flat --sort peak\n"
        "  umacct ls user.slice --json");
    verb->callback([options, &context] { list(context, *options); });
}

} // namespace umacct::tool
