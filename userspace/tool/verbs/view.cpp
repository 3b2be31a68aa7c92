// SPDX-License-Identifier: GPL-2.0-or-later
#include <memory>

#include <CLI/CLI.hpp>

#include "tool/arguments.h"
#include "tool/session.h"
#include "tool/settings.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

int view(Session &session, ModeOptions options) {
    AccountChange change;

    options.understand({"on", "off"}, "for example: umacct view ollama.service on");
    if (!options.mode)
        return list_accounts(session, options.target, options.list,
                             {.worth = [](const Account &account) { return account.view; },
                              .columns = {"name", "view", "limit", "usage", "bound-by"},
                              .none = "no views are set\n"});
    change.view = *options.mode == "on";
    return change_account(session, session.machine.resolve(options.target.value_or("/")), change);
}

} // namespace

Action add_view(CLI::App &verb) {
    auto options = std::make_shared<ModeOptions>();

    add_mode_options(verb, *options, "cgroup; without it, the default for all cgroups",
                     "on or off; without it, list");
    add_examples(verb, "umacct view                    who has one\n"
                       "umacct view on                 everybody is told what is available\n"
                       "umacct view ollama.service on  of one alone\n"
                       "umacct view off");
    return [options](Session &session) { return view(session, *options); };
}

} // namespace umacct::tool
