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
    std::optional<std::string> target;
    LimitOptions limits;
    ListOptions list{.columns = {}, .sort = "name"};
    bool view = false;
    bool no_view = false;
};

bool is_limited(const Account &account) {
    return account.effective || account.soft || account.throttle_ns != 0 || account.view;
}

int list(Module &module, const Machine &machine, Output &output, const ListOptions &options,
         const std::vector<Account> &accounts) {
    const auto shown =
        chosen_columns(options, Of::accounts,
                       {"name", "usage", "soft", "hard", "limit", "bound-by", "throttle", "view"});
    const Column &sort = column(options.sort, Of::accounts, "--sort");
    const Binders binders(module, machine.owners(), accounts);
    const std::vector<Row> rows = account_rows(machine, accounts, binders, sort);

    if (output.json)
        print_json(output, machine.owners(), Json::object(), "accounts", rows,
                   [&](const Row &row) -> Json {
                       const std::string path = binders.path(*row.account);

                       return {{"effective_path", path.empty() ? Json(nullptr) : Json(path)}};
                   });
    else if (rows.empty())
        fmt::print(output.out, "no limits are set\n");
    else
        print_rows(output, rows, shown, Of::accounts, !options.no_header);
    return 0;
}

int limit(Module &module, const Machine &machine, Output &output, const Options &options) {
    AccountChange change = parse_limits(options.limits);

    if (options.view || options.no_view)
        change.view = options.view;
    if (change.empty())
        return list(module, machine, output, options.list,
                    listed_accounts(module, machine, options.target, is_limited));
    if (!options.target)
        throw Error(Failure::usage, "TARGET is missing: whose limit is it?",
                    "for example: umacct limit ollama.service --hard 40G");
    return change_account(module, machine, output, machine.resolve(*options.target), change);
}

} // namespace

Action add_limit(CLI::App &verb) {
    auto options = std::make_shared<Options>();

    add_list_options(verb, options->list, Of::accounts);
    verb.add_option("TARGET", options->target, target_help);
    add_limit_options(verb, options->limits);
    CLI::Option *view = verb.add_flag("--view", options->view,
                                      "let /proc/meminfo and sysinfo tell what could be had");
    verb.add_flag("--no-view", options->no_view, "let them tell the machine's truth")
        ->excludes(view);
    add_examples(verb,
                 "umacct limit                                       all limits, and what binds\n"
                 "umacct limit ollama.service --hard 40G --soft 36G\n"
                 "umacct limit vllm --hard 40G --view                programs that ask see 40 GiB\n"
                 "umacct limit ollama.service --hard max --soft max  no limits any more");
    return [options](Session &session) {
        return limit(session.module(), session.machine, session.output, *options);
    };
}

} // namespace umacct::tool
