// SPDX-License-Identifier: GPL-2.0-or-later
#include <memory>

#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/json.h"
#include "lib/machine.h"
#include "lib/text.h"
#include "lib/units.h"
#include "tool/account.h"
#include "tool/clients.h"
#include "tool/print/text.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

/// "4.00 GiB  of /a/b" where another account's limit binds.
std::string effective_note(Context &context, const Account &account) {
    if (!account.effective_id || *account.effective_id == account.id)
        return "";
    return "set by " +
           display_path(context.owners(), path_of_account(context, *account.effective_id));
}

/// With both the name and the id, which the lists don't have room for.
std::string owner_note(const Owner &owner) {
    if (owner.kind == OwnerKind::unit || owner.full_name().empty())
        return owner.label();
    return fmt::format("{}, id {}", owner.label(), owner.id);
}

void print_account(Context &context, const Account &account, const MemoryController &memory) {
    Table figures({{}, {"", Align::right}, {}});
    const auto owner = context.owners().nearest(account.path);

    fmt::print(context.out(), "{}{}\n", printable(account.path),
               owner ? "  (" + printable(owner_note(*owner)) + ")" : "");
    figures.add(
        {"usage", format_size(account.usage), fmt::format("its own {}", format_size(account.own))});
    figures.add({"  charged", format_size(account.charged)});
    figures.add({"  uncharged", format_size(account.uncharged())});
    figures.add({"peak", format_size(account.peak)});
    figures.add({"managed", format_size(account.managed)});
    figures.add({"memory.current", format_known(memory.current)});
    figures.add({"memory.max", format_known(memory.max)});
    figures.add({"soft limit", format_limit(account.soft),
                 "crossed " + counted(account.soft_count, "time", "times")});
    figures.add({"hard limit", format_limit(account.hard),
                 "refused " + counted(account.hard_count, "time", "times")});
    figures.add(
        {"effective limit", format_limit(account.effective), effective_note(context, account)});
    figures.add({"throttle", format_time(account.throttle_ns),
                 account.throttled_ns == 0
                     ? ""
                     : fmt::format("delayed {} so far", format_time(account.throttled_ns))});
    figures.add({"view", account.view ? "on" : "off"});
    figures.add({"charging", std::string(name_of(account.charge_effective)),
                 fmt::format("set to {}", name_of(account.charge))});
    figures.add({"allocations", std::to_string(account.allocs),
                 fmt::format("{} failed in the driver, {} refused ({} for the reserve)",
                             account.failures, account.refusals, account.reserve_count)});
    figures.add({"frees", std::to_string(account.frees)});
    figures.add({"processes", std::to_string(account.clients)});
    figures.print(context.out(), 2);
}

void show(Context &context, const std::string &text) {
    const Target target = context.resolve(text);
    const Account account = read_account(context, target);
    const MemoryController memory = memory_controller(context.cgroups(), account);
    std::vector<Client> clients = clients_of(context, account);

    if (target.pid)
        std::erase_if(clients, [&](const Client &client) { return client.pid != *target.pid; });
    sort_by_usage(clients);
    if (context.json) {
        print_json(context.out(),
                   merged(json_document(), {{"account", to_json(context.owners(), account, memory)},
                                            {"clients", to_json(context.owners(), clients)}}));
        return;
    }
    print_account(context, account, memory);
    if (!clients.empty()) {
        fmt::print(context.out(), "\n");
        client_table(context.owners(), clients).print(context.out(), 2);
    }
}

} // namespace

void add_show(CLI::App &app, Context &context) {
    auto target = std::make_shared<std::string>();
    CLI::App *verb = app.add_subcommand("show", "everything about one cgroup, or one process");

    verb->add_option("TARGET", *target, "cgroup path, unit, container, pod or pid")->required();
    verb->footer("For a pid the account is that of the process's cgroup now, and of the processes\n"
                 "only that one is listed.\n"
                 "\n"
                 "Examples:\n"
                 "  umacct show /system.slice/ollama.service\n"
                 "  umacct show 4f5a9c\n"
                 "  umacct show default/llm-0/vllm\n"
                 "  umacct show $$");
    verb->callback([target, &context] { show(context, *target); });
}

} // namespace umacct::tool
