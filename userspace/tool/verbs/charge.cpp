// SPDX-License-Identifier: GPL-2.0-or-later
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/settings.h"
#include "lib/text.h"
#include "tool/arguments.h"
#include "tool/session.h"
#include "tool/settings.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

bool is_worth_listing(const Account &account) {
    return account.charge != UMACCT_CHARGE_INHERIT || account.usage > 0;
}

int list(Session &session, const ModeOptions &options) {
    const Status status = session.module().status();
    const std::string &why_not = status.charge_reason;
    const std::string_view now =
        status.tells_all() ? name_of(status.charge_default) : "not visible to you";
    std::string head = fmt::format("default for the machine: {}\n", now);

    if (!why_not.empty())
        head += fmt::format("charging can't be switched on: {}\n", printable(why_not));
    return list_accounts(
        session, options.target, options.list,
        {.worth = is_worth_listing,
         .columns = {"name", "charge", "charging", "charged", "uncharged"},
         .head = head,
         .members = {{"charge_default", status.tells_all() ? Json(now) : Json(nullptr)},
                     {"charge_ready", status.has(UMACCT_STATUS_CHARGE_READY)},
                     {"native_charge", status.has(UMACCT_STATUS_NATIVE_CHARGE)},
                     {"charge_reason", why_not.empty() ? Json(nullptr) : Json(why_not)}}});
}

int set_default(Session &session, umacct_charge_mode mode) {
    Module &module = session.module();
    const Output &output = session.output;

    if (mode == UMACCT_CHARGE_INHERIT)
        throw Error(Failure::usage, "MODE: the machine's default has nothing to inherit from",
                    "say 'on' or 'off', or name a TARGET");

    MachineWish wish;
    wish.module.charge_default = mode;
    const MachineChanged changed = change_machine(session, wish);
    const MachineChange before = changed.of_module.before;
    const MachineChange after = as_it_is(before, module.status());
    if (output.json)
        output.document(merged({{"charge_default", name_of(*after.charge_default)},
                                {"before", name_of(*before.charge_default)}},
                               to_json(changed.of_module.made)));
    else
        print_changes(output, before, after);
    note_machine(output, changed);
    return report_enforcement(output, changed.of_module.made);
}

int charge(Session &session, ModeOptions options) {
    PersonChange change;

    options.understand({"on", "off", "inherit"}, "for example: umacct charge ollama.service on");
    if (!options.mode)
        return list(session, options);
    change.asked.charge = parse_charge_mode(*options.mode);
    if (!options.target)
        return set_default(session, *change.asked.charge);

    return change_account(session, resolve_to_change(session.machine, *options.target), change);
}

} // namespace

Action add_charge(CLI::App &verb) {
    auto options = std::make_shared<ModeOptions>();

    add_mode_options(verb, *options, "cgroup; without it, the machine's default",
                     "on, off or inherit; without it, list");
    add_examples(verb, "umacct charge                          what is charged, and what isn't\n"
                       "umacct charge ollama.service           the same of one\n"
                       "umacct charge ollama.service on\n"
                       "umacct charge ollama.service inherit\n"
                       "umacct charge on                       the default for every cgroup");
    return [options](Session &session) { return charge(session, *options); };
}

} // namespace umacct::tool
