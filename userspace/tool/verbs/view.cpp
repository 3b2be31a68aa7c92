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
    PersonChange change;

    options.understand({"on", "off"}, "for example: umacct view ollama.service on");
    if (!options.mode)
        return list_accounts(session, options.target, options.list,
                             {.worth = [](const Account &account) { return account.view; },
                              .columns = {"name", "view", "limit", "usage", "bound-by"},
                              .none = "no views are set\n"});
    change.asked.view = *options.mode == "on";
    return change_account(session, resolve_to_change(session.machine, options.target.value_or("/")),
                          change);
}

} // namespace

Action add_view(CLI::App &verb) {
    auto options = std::make_shared<ModeOptions>();

    add_mode_options(verb, *options, "cgroup; without it, the default for all cgroups",
                     "on or off; without it, list");
    add_examples(verb, "umacct view                    cgroups with a view\n"
                       "umacct view on                 all programs see the available memory\n"
                       "umacct view ollama.service on  one cgroup's programs do\n"
                       "umacct view off");
    return [options](Session &session) { return view(session, *options); };
}

} // namespace umacct::tool
