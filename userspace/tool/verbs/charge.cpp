// SPDX-License-Identifier: GPL-2.0-or-later
#include <memory>

#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/json.h"
#include "lib/units.h"
#include "tool/account.h"
#include "tool/argument.h"
#include "tool/limit_options.h"
#include "tool/print/table.h"
#include "tool/print/text.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

struct Options {
    std::optional<std::string> mode;
    std::optional<std::string> target;
};

umacct_charge_mode mode_of(const std::string &word) {
    for (const umacct_charge_mode mode : {UMACCT_CHARGE_INHERIT, UMACCT_CHARGE_OFF}) {
        if (word == name_of(mode))
            return mode;
    }
    return UMACCT_CHARGE_ON;
}

/// Why charging can't be switched on here; empty when it can.
std::string obstacle(const Status &status) {
    if (status.has(UMACCT_STATUS_CHARGE_READY))
        return "";
    if (status.has(UMACCT_STATUS_NATIVE_CHARGE))
        return "this driver charges its pages itself";
    if (!status.has(UMACCT_STATUS_MEMCG_V2))
        return "the memory controller is not on cgroup v2";
    if (!status.has(UMACCT_STATUS_CGROUP_V2))
        return "there are no cgroups in the v2 hierarchy";
    if (!status.has(UMACCT_STATUS_KMEM))
        return "the kernel was booted without accounting of kernel memory (cgroup.memory=nokmem)";
    if (status.driver_state == UMACCT_DRIVER_ABSENT)
        return "the driver is not loaded";
    return "the driver's function that it needs could not be hooked";
}

void list(Context &context) {
    const Status status = context.module().status();
    std::vector<Account> accounts = context.module().accounts();
    const std::string why_not = obstacle(status);
    Json rows = Json::array();
    Table table({{"ACCOUNT"},
                 {"SET TO"},
                 {"CHARGING"},
                 {"CHARGED", Align::right},
                 {"UNCHARGED", Align::right}});

    std::erase_if(accounts, [](const Account &account) {
        return account.charge == UMACCT_CHARGE_INHERIT && account.usage == 0;
    });
    for (const Account &account : accounts) {
        rows.push_back(to_json(context.owners(), account));
        table.add({display_path(context.owners(), account.path),
                   std::string(name_of(account.charge)),
                   std::string(name_of(account.charge_effective)), format_size(account.charged),
                   format_size(account.uncharged())});
    }
    if (context.json) {
        print_json(
            context.out(),
            merged(json_document(), {{"charge_default", name_of(status.charge_default)},
                                     {"charge_ready", status.has(UMACCT_STATUS_CHARGE_READY)},
                                     {"native_charge", status.has(UMACCT_STATUS_NATIVE_CHARGE)},
                                     {"obstacle", why_not.empty() ? Json(nullptr) : Json(why_not)},
                                     {"accounts", rows}}));
        return;
    }
    fmt::print(context.out(), "default for the machine: {}\n", name_of(status.charge_default));
    if (!why_not.empty())
        fmt::print(context.out(), "charging can't be switched on: {}\n", why_not);
    if (!table.empty()) {
        fmt::print(context.out(), "\n");
        table.print(context.out());
    }
}

void charge(Context &context, const Options &options) {
    if (!options.mode) {
        list(context);
        return;
    }

    const umacct_charge_mode mode = mode_of(*options.mode);
    if (options.target) {
        AccountChange change;

        change.charge = mode;
        const Target target = context.resolve(*options.target);

        set_limits(context, target, change);
        if (target.path == "/" && mode == UMACCT_CHARGE_ON)
            fmt::print(context.err(), "note: this is for the cgroups below; the kernel never "
                                      "charges processes in the root cgroup itself\n");
    } else if (mode == UMACCT_CHARGE_INHERIT) {
        throw Error(Failure::usage, "MODE: the machine's default has nothing to inherit from",
                    "say 'on' or 'off', or name a TARGET");
    } else {
        request_change("", {{UMACCT_A_STATUS_CHARGE_DEFAULT, "MODE"}},
                       [&] { context.module().set_charge_default(mode); });
    }
    if (context.json)
        list(context);
}

} // namespace

void add_charge(CLI::App &app, Context &context) {
    auto options = std::make_shared<Options>();
    CLI::App *verb =
        app.add_subcommand("charge", "let the kernel's memory controller see the memory");

    verb->add_option("MODE", options->mode, "on, off or inherit; nothing to list")
        ->check(CLI::IsMember({"on", "off", "inherit"}));
    verb->add_option("TARGET", options->target, "whose; without it, the machine's default");
    verb->footer(
        "Where charging is on, memory.current, memory.max, 'docker --memory', MemoryMax= and\n"
        "Kubernetes limits see and bind what is allocated through the driver from then on.\n"
        "What is held already stays as it is. Setting takes root.\n"
        "\n"
        "Examples:\n"
        "  umacct charge                      what is charged, and what isn't\n"
        "  umacct charge on ollama.service\n"
        "  umacct charge inherit ollama.service\n"
        "  umacct charge on                   the default for every cgroup");
    verb->callback([options, &context] { charge(context, *options); });
}

} // namespace umacct::tool
