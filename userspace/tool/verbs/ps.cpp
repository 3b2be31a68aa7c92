// SPDX-License-Identifier: GPL-2.0-or-later
#include <memory>

#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/json.h"
#include "tool/clients.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

void list(Context &context, const std::optional<std::string> &target) {
    const Status status = context.module().status();
    std::vector<Client> clients = !target ? context.module().clients()
                                          : context.module().clients(context.resolve(*target).id);

    context.warn_if_degraded(status);
    sort_by_usage(clients);
    if (context.json)
        print_json(context.out(),
                   merged(json_document(), {{"clients", to_json(context.owners(), clients)}}));
    else if (clients.empty())
        fmt::print(context.out(), "no process holds memory\n");
    else
        client_table(context.owners(), clients).print(context.out());
}

} // namespace

void add_ps(CLI::App &app, Context &context) {
    auto target = std::make_shared<std::optional<std::string>>();
    CLI::App *verb = app.add_subcommand("ps", "list the clients: memory per process");

    verb->add_option("TARGET", *target, "only processes of this cgroup and what is below it");
    verb->footer("A process that allocated for two cgroups has a row for each. '(exited)' is a\n"
                 "process that is gone while others hold what it allocated; '-' is one outside\n"
                 "the reader's pid namespace.\n"
                 "\n"
                 "Examples:\n"
                 "  umacct ps\n"
                 "  umacct ps ollama.service");
    verb->callback([target, &context] { list(context, *target); });
}

} // namespace umacct::tool
