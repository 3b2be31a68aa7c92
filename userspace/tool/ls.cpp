// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>
#include <memory>
#include <unordered_map>

#include <fmt/ostream.h>

#include "lib/units.h"
#include "tool/json.h"
#include "tool/table.h"
#include "tool/text.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

struct Options {
    std::optional<std::string> target;
    std::string sort = "usage";
    bool flat = false;
    bool all = false;
};

/// An account as a row, with its place in the tree.
struct Row {
    const Account *account;
    int depth;
};

using Less = std::function<bool(const Account &, const Account &)>;

/// Largest first, but names in their order.
Less order_by(const std::string &key) {
    static const std::unordered_map<std::string, std::uint64_t (*)(const Account &)> numbers{
        {"usage", [](const Account &a) { return a.usage; }},
        {"own", [](const Account &a) { return a.own; }},
        {"peak", [](const Account &a) { return a.peak; }},
        {"charged", [](const Account &a) { return a.charged; }},
        {"uncharged", [](const Account &a) { return a.uncharged(); }},
        {"limit", [](const Account &a) { return a.effective.value_or(UMACCT_UNLIMITED); }},
    };
    const auto number = numbers.find(key);

    if (number == numbers.end())
        return [](const Account &a, const Account &b) { return a.path < b.path; };
    return [of = number->second](const Account &a, const Account &b) {
        return of(a) != of(b) ? of(a) > of(b) : a.path < b.path;
    };
}

/// Accounts in the order of the tree, siblings in the given order. An account
/// whose parent the caller may not see is a root.
class Tree {
public:
    Tree(const std::vector<Account> &accounts, bool all, Less less) : less_(std::move(less)) {
        std::unordered_map<std::uint64_t, const Account *> known;

        for (const Account &account : accounts) {
            const bool is_child = account.parent_id && known.contains(*account.parent_id);

            known[account.id] = &account;
            (is_child ? children_[*account.parent_id] : roots_).push_back(&account);
        }
        // Parents come before children, so that children are marked first from the end.
        std::for_each(accounts.rbegin(), accounts.rend(), [&](const Account &account) {
            if (all || account.usage > 0 || account.managed > 0 || account.configured())
                shown_[account.id] = true;
            if (shown_[account.id] && account.parent_id)
                shown_[*account.parent_id] = true;
        });
    }

    std::vector<Row> rows() {
        std::vector<Row> rows;

        append(roots_, 0, rows);
        return rows;
    }

private:
    void append(std::vector<const Account *> &siblings, int depth, std::vector<Row> &rows) {
        std::sort(siblings.begin(), siblings.end(),
                  [this](const Account *a, const Account *b) { return less_(*a, *b); });
        for (const Account *account : siblings) {
            if (!shown_[account->id])
                continue;
            rows.push_back({account, depth});
            append(children_[account->id], depth + 1, rows);
        }
    }

    Less less_;
    std::vector<const Account *> roots_;
    std::unordered_map<std::uint64_t, std::vector<const Account *>> children_;
    std::unordered_map<std::uint64_t, bool> shown_;
};

std::string name_cell(const Owners &owners, const Row &row, bool flat) {
    if (flat)
        return display_path(owners, row.account->path);
    return std::string(static_cast<std::size_t>(row.depth) * 2, ' ') +
           (row.depth == 0 ? display_path(owners, row.account->path)
                           : short_name(owners, row.account->path));
}

void print_table(Context &context, const std::vector<Row> &rows, bool flat) {
    Table table({{"ACCOUNT"},
                 {"USAGE", Align::right},
                 {"PEAK", Align::right},
                 {"LIMIT", Align::right},
                 {"CHARGED", Align::right},
                 {"UNCHARGED", Align::right},
                 {"MEMORY.CURRENT", Align::right},
                 {"MEMORY.MAX", Align::right}});

    for (const Row &row : rows) {
        const Account &account = *row.account;
        const MemoryController memory = memory_controller(context.cgroups(), account);

        table.add({name_cell(context.owners(), row, flat), format_size(account.usage),
                   format_size(account.peak), format_limit(account.effective),
                   format_size(account.charged), format_size(account.uncharged()),
                   format_known(memory.current), format_known(memory.max)});
    }
    table.print(context.out());
}

void print_accounts_json(Context &context, const std::vector<Row> &rows) {
    Json accounts = Json::array();

    for (const Row &row : rows)
        accounts.push_back(to_json(context.owners(), *row.account,
                                   memory_controller(context.cgroups(), *row.account)));
    print_json(context.out(), merged(json_document(), {{"accounts", accounts}}));
}

void list(Context &context, const Options &options) {
    const Status status = context.module().status();
    const std::vector<Account> accounts =
        !options.target ? context.module().accounts()
                        : context.module().accounts(context.resolve(*options.target).id);
    const Less less = order_by(options.sort);
    std::vector<Row> rows = Tree(accounts, options.all, less).rows();

    if (options.flat)
        std::stable_sort(rows.begin(), rows.end(),
                         [&](const Row &a, const Row &b) { return less(*a.account, *b.account); });
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
