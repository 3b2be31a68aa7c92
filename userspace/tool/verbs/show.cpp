// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/arithmetic.h"
#include "lib/json.h"
#include "lib/machine.h"
#include "lib/text.h"
#include "lib/units.h"
#include "tool/arguments.h"
#include "tool/print/columns.h"
#include "tool/print/table.h"
#include "tool/print/text.h"
#include "tool/session.h"
#include "tool/settings.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

struct ShowOptions {
    std::string target;
    bool bytes = false;
};

/// TARGET of the guard; a cgroup of that name is "path:/guard".
constexpr std::string_view guard_word = "guard";

/// Why the settings of an account are what they are.
struct Reasons {
    Orders orders;
    bool sees_all = false; ///< the reader

    std::string of(std::uint16_t attribute, const Account &account) const {
        const Settled settled = settle(orders);
        std::string reason;

        for_each_setting([&](const auto &setting) {
            if (setting.attribute == attribute)
                reason = why_now(orders, settled, setting, account, sees_all);
        });
        return reason;
    }
};

/// "4.00 GiB  of /a/b" where another account's limit binds.
std::string effective_note(Module &module, const Machine &machine, const Account &account) {
    if (!account.effective_id || *account.effective_id == account.id)
        return "";
    return "set by " +
           display_path(machine.owners(), path_of_account(module, *account.effective_id));
}

/// Returns the owner with both name and id, which the lists have no room for.
std::string owner_note(const Owner &owner) {
    if (owner.kind == OwnerKind::unit || owner.full_name().empty())
        return owner.label();
    return fmt::format("{}, id {}", owner.label(), owner.id);
}

void print_account(Module &module, const Machine &machine, const Output &output,
                   const Account &account, const MemoryController &memory, std::uint32_t exiting,
                   const Reasons &reasons, bool bytes) {
    const auto size = [bytes](std::uint64_t value) {
        return bytes ? std::to_string(value) : format_size(value);
    };
    const auto limit = [&](const Limit &value) { return value ? size(*value) : "max"; };
    const auto known = [&](const std::optional<std::uint64_t> &value) {
        return value ? (*value == UMACCT_UNLIMITED ? "max" : size(*value)) : "-";
    };
    // The reason comes first, if the setting is by an order.
    const auto note = [&](std::uint16_t setting, const std::string &rest) {
        const std::string reason = reasons.of(setting, account);

        return printable(reason) + (reason.empty() || rest.empty() ? "" : "; ") + rest;
    };
    Table figures({{}, {"", Align::right}, {"", Align::left, false, true}});
    const auto owner = machine.owners().nearest(account.path);

    fmt::print(output.out, "{}{}\n", printable(account.path),
               owner ? "  (" + printable(owner_note(*owner)) + ")" : "");
    figures.add({"total", known(memory.total), "what would come back if all in it ended"});
    figures.add({"  page cache", known(memory.cache), "beside it: comes back when needed"});
    figures.add({"  swap", known(memory.swap), "beside it"});
    figures.add({"usage", size(account.usage),
                 fmt::format("through the driver; local {}", size(account.local))});
    figures.add({"  charged", size(account.charged)});
    figures.add({"  uncharged", size(account.uncharged())});
    figures.add({"  managed", size(account.managed), "nvidia-uvm's pages"});
    figures.add({"  metadata", size(account.metadata), "what the drivers keep beside the pages"});
    if (account.pinned > 0)
        figures.add({"pinned", size(account.pinned), "programs' own, registered with the driver"});
    figures.add({"peak", size(account.peak)});
    figures.add({"memory.current", known(memory.current)});
    figures.add({"memory.max", known(memory.max)});
    if (memory.pressure)
        figures.add({"memory.pressure", format_percent(memory.pressure->some.avg10),
                     fmt::format("of the last 10 s; all of it waited {}; {} in all",
                                 format_percent(memory.pressure->full.avg10),
                                 format_elapsed(memory.pressure->some.total_us * 1000))});
    figures.add(
        {"soft limit", limit(account.soft),
         note(UMACCT_A_ACCOUNT_SOFT, "crossed " + counted(account.soft_count, "time", "times"))});
    figures.add(
        {"hard limit", limit(account.hard),
         note(UMACCT_A_ACCOUNT_HARD, "refused " + counted(account.hard_count, "time", "times"))});
    figures.add(
        {"effective limit", limit(account.effective), effective_note(module, machine, account)});
    figures.add(
        {"  used", column("percent", Of::accounts, "").cell({.account = &account}, Form::full)});
    figures.add(
        {"guarantee", account.keep == 0 ? "none" : size(account.keep),
         note(UMACCT_A_ACCOUNT_KEEP,
              account.keep <= account.usage
                  ? ""
                  : fmt::format("{} of it kept from others", size(account.keep - account.usage)))});
    figures.add({"throttle", format_time(account.throttle_ns),
                 note(UMACCT_A_ACCOUNT_THROTTLE,
                      account.throttled_ns == 0
                          ? ""
                          : fmt::format("delayed {} so far", format_time(account.throttled_ns)))});
    figures.add({"view", account.view ? "on" : "off", note(UMACCT_A_ACCOUNT_VIEW, "")});
    figures.add({"charging", std::string(name_of(account.charge_effective)),
                 note(UMACCT_A_ACCOUNT_CHARGE, fmt::format("set to {}", name_of(account.charge)))});
    figures.add({"allocations", std::to_string(account.allocs),
                 fmt::format("{} failed in the driver, {} refused ({} for the reserve)",
                             account.failures, account.refusals, account.reserve_count)});
    figures.add({"in the allocator", format_elapsed(account.alloc_time_ns),
                 account.alloc_time_max_ns == 0
                     ? ""
                     : fmt::format("at most {} at once", format_time(account.alloc_time_max_ns))});
    figures.add({"frees", std::to_string(account.frees)});
    figures.add({"processes", std::to_string(account.clients), exiting_note(exiting)});
    figures.print(output, 2);
}

int show(Module &module, const Machine &machine, Output &output, const ShowOptions &options) {
    const Target target = machine.resolve(options.target);
    const std::vector<Account> accounts{read_account(module, machine.cgroups(), target)};
    const Account &account = accounts.front();
    MemoryController memory =
        memory_controller(machine.cgroups(), account, {.total = true, .pressure = true});
    if (!memory.total) {
        const Meminfo meminfo = machine.meminfo(module.status());

        memory.total = without(meminfo.total(), meminfo.available()); // the root's
    }
    std::vector<Client> clients = module.clients(account.id);

    if (target.pid)
        std::erase_if(clients, [&](const Client &client) { return client.pid != *target.pid; });

    const auto shown = chosen_columns({}, Of::processes, usual_of_processes);
    const std::vector<Row> rows =
        process_rows(machine, clients, accounts, column("total", Of::processes, ""), shown);
    const auto exiting =
        static_cast<std::uint32_t>(std::ranges::count_if(clients, [&](const Client &client) {
            return client.exiting && client.account_id == account.id;
        }));
    const Reasons reasons{.orders = OrderReader(machine).of(target.path),
                          .sees_all = module.status().tells_all()};
    if (output.json) {
        Json json = to_json(machine.owners(), account, memory);

        json["exiting"] = exiting;
        print_json(output, machine.owners(),
                   {{"account", json},
                    {"orders", reasons_json(reasons.orders, account, reasons.sees_all)}},
                   "clients", rows);
        return 0;
    }
    print_account(module, machine, output, account, memory, exiting, reasons, options.bytes);
    if (!rows.empty()) {
        fmt::print(output.out, "\n");
        print_rows(output, rows, shown, Of::processes, {.bytes = options.bytes}, 2);
    }
    return 0;
}

} // namespace

Action add_show(CLI::App &verb) {
    auto options = std::make_shared<ShowOptions>();

    verb.add_option("TARGET", options->target,
                    "cgroup path, unit, container, pod or pid; guard for umacctd's guard")
        ->required();
    verb.add_flag("-b,--bytes", options->bytes, "sizes in bytes, without a unit");
    add_examples(verb, "umacct show /system.slice/ollama.service\n"
                       "umacct show 4f5a9c\n"
                       "umacct show default/llm-0/vllm\n"
                       "umacct show $$       this process alone, and its cgroup\n"
                       "umacct show guard    the cgroup that the guard would act against");
    return [options](Session &session) {
        if (options->target == guard_word)
            return show_guard(session);
        return show(session.module(), session.machine, session.output, *options);
    };
}

} // namespace umacct::tool
