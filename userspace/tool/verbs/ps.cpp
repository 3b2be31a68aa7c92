// SPDX-License-Identifier: GPL-2.0-or-later
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "tool/arguments.h"
#include "tool/audit/hidden.h"
#include "tool/print/columns.h"
#include "tool/session.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

struct PsOptions {
    std::optional<std::string> target;
    ListOptions list{.columns = {}, .sort = "total"};
};

int list(Session &session, const PsOptions &options) {
    const Machine &machine = session.machine;
    const Output &output = session.output;
    auto shown = chosen_columns(options.list, Of::processes, usual_of_processes);
    const Column &sort = column(options.list.sort, Of::processes, "--sort");
    if (output.json)
        shown.push_back(&column("total", Of::processes, "")); // it has that, whatever is chosen
    Module &module = session.module();
    const Status status = module.status();
    const std::optional<std::uint64_t> subtree =
        options.target ? std::optional(machine.resolve(*options.target).id) : std::nullopt;
    const std::vector<Client> clients = module.clients(subtree);
    const std::vector<Account> accounts = module.accounts(subtree);
    const std::vector<Row> rows = process_rows(machine, clients, accounts, sort, shown);

    output.warn_if_degraded(status);
    const bool hidden = note_hidden(session, status);
    if (output.json)
        print_json(output, machine.owners(), Json::object(), "clients", rows);
    else if (clients.empty() && !options.list.csv)
        fmt::print(output.out, "no process{} holds memory\n", hidden ? " that you may see" : "");
    else
        print_rows(output, rows, shown, Of::processes, options.list);
    return 0;
}

} // namespace

Action add_ps(CLI::App &verb) {
    auto options = std::make_shared<PsOptions>();

    add_list_options(verb, options->list, Of::processes);
    verb.add_option("TARGET", options->target,
                    "only processes of this cgroup and what is below it");
    add_examples(verb, "umacct ps\n"
                       "umacct ps ollama.service -o pid,usage,name --no-header\n"
                       "umacct ps --csv >processes.csv");
    return [options](Session &session) { return list(session, *options); };
}

} // namespace umacct::tool
