// SPDX-License-Identifier: GPL-2.0-or-later
#include <memory>
#include <unordered_map>

#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/json.h"
#include "lib/text.h"
#include "lib/units.h"
#include "tool/account.h"
#include "tool/limit_options.h"
#include "tool/print/table.h"
#include "tool/print/text.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

struct Options {
    std::optional<std::string> target;
    LimitOptions limits;
    bool view = false;
    bool no_view = false;
};

/// Path of the account whose limit binds; empty when none does.
std::optional<std::string>
binding_path(Context &context, const Account &account,
             const std::unordered_map<std::uint64_t, std::string> &paths) {
    if (!account.effective_id)
        return std::nullopt;

    const auto known = paths.find(*account.effective_id);
    return known != paths.end() ? known->second : path_of_account(context, *account.effective_id);
}

std::string binding_cell(Context &context, const Account &account,
                         const std::optional<std::string> &path) {
    if (!path)
        return "";
    return *path == account.path ? "itself" : display_path(context.owners(), *path);
}

void list(Context &context, const std::vector<Account> &accounts) {
    std::unordered_map<std::uint64_t, std::string> paths;
    Json rows = Json::array();
    Table table({{"ACCOUNT"},
                 {"USAGE", Align::right},
                 {"SOFT", Align::right},
                 {"HARD", Align::right},
                 {"EFFECTIVE", Align::right},
                 {"BOUND BY"},
                 {"THROTTLE", Align::right},
                 {"VIEW"}});

    for (const Account &account : accounts)
        paths[account.id] = account.path;
    for (const Account &account : accounts) {
        const std::optional<std::string> bound_by = binding_path(context, account, paths);
        Json row = to_json(context.owners(), account);

        row["effective_path"] = bound_by ? Json(*bound_by) : Json(nullptr);
        rows.push_back(row);
        table.add({display_path(context.owners(), account.path), format_size(account.usage),
                   format_limit(account.soft), format_limit(account.hard),
                   format_limit(account.effective), binding_cell(context, account, bound_by),
                   format_time(account.throttle_ns), account.view ? "on" : "off"});
    }
    if (context.json)
        print_json(context.out(), merged(json_document(), {{"accounts", rows}}));
    else if (accounts.empty())
        fmt::print(context.out(), "no limits are set\n");
    else
        table.print(context.out());
}

void list_limited(Context &context) {
    std::vector<Account> accounts = context.module().accounts();

    std::erase_if(accounts, [](const Account &account) {
        return !account.effective && !account.soft && account.throttle_ns == 0 && !account.view;
    });
    list(context, accounts);
}

void set(Context &context, const Target &target, const AccountChange &change) {
    set_limits(context, target, change);

    const Account account = read_account(context, target);
    if (context.json)
        list(context, {account});
    if (account.effective && account.usage > *account.effective)
        fmt::print(context.err(),
                   "note: {} holds {} already, above its limit of {}: what is held stays, new "
                   "allocations are refused\n",
                   printable(account.path), format_size(account.usage),
                   format_size(*account.effective));
}

void limit(Context &context, const Options &options) {
    AccountChange change = parse_limits(options.limits);

    if (options.view || options.no_view)
        change.view = options.view;
    if (!options.target) {
        if (!change.empty())
            throw Error(Failure::usage, "TARGET is missing: whose limit is it?",
                        "for example: umacct limit ollama.service --hard 40G");
        list_limited(context);
        return;
    }

    const Target target = context.resolve(*options.target);
    if (change.empty())
        list(context, {read_account(context, target)});
    else
        set(context, target, change);
}

} // namespace

void add_limit(CLI::App &app, Context &context) {
    auto options = std::make_shared<Options>();
    CLI::App *verb = app.add_subcommand("limit", "set an account's limits, or list all limits");

    verb->add_option("TARGET", options->target, "cgroup path, unit, container, pod or pid");
    add_limit_options(*verb, options->limits);
    verb->add_option("--throttle", options->limits.throttle,
                     "longest delay of one call above the soft limit, such as 50ms; off for none");
    CLI::Option *view = verb->add_flag(
        "--view", options->view, "let /proc/meminfo and sysinfo answer within the hard limit");
    verb->add_flag("--no-view", options->no_view, "let them tell the machine's truth")
        ->excludes(view);
    verb->footer(
        "A limit binds the cgroup and everything below it, also before it holds any memory, and\n"
        "goes with the cgroup. What would exceed the hard limit is refused: the program gets the\n"
        "driver's out-of-memory error, and nothing is killed. Exceeding the soft limit sends an\n"
        "event ('umacct watch') and slows down where a throttle is set. Setting takes root.\n"
        "\n"
        "Examples:\n"
        "  umacct limit                                       all limits, and what binds\n"
        "  umacct limit ollama.service --hard 40G --soft 36G\n"
        "  umacct limit vllm --hard 40G --view                programs that ask see 40 GiB\n"
        "  umacct limit ollama.service --hard max --soft max  no limits any more");
    verb->callback([options, &context] { limit(context, *options); });
}

} // namespace umacct::tool
