// SPDX-License-Identifier: GPL-2.0-or-later
#include <memory>

#include <CLI/CLI.hpp>

#include "lib/error.h"
#include "tool/arguments.h"
#include "tool/session.h"
#include "tool/settings.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

struct LimitOptions {
    std::optional<std::string> target;
    SettingOptions settings;
    ListOptions list{.columns = {}, .sort = "name"};
};

bool is_limited(const Account &account) {
    return account.effective || account.soft || account.throttle_ns != 0 || account.keep != 0 ||
           account.view;
}

int limit(Session &session, const LimitOptions &options) {
    const AccountChange change = parse_settings(options.settings, session.machine);

    if (change.empty())
        return list_accounts(session, options.target, options.list,
                             {.worth = is_limited,
                              .columns = {"name", "usage", "soft", "hard", "limit", "bound-by",
                                          "keep", "throttle", "view"},
                              .none = "no limits are set\n",
                              .binders = true});
    if (!options.target)
        throw Error(Failure::usage, "TARGET is missing: whose limit is it?",
                    "for example: umacct limit ollama.service --hard 40G");
    return change_account(session, resolve_to_change(session.machine, *options.target), change);
}

} // namespace

Action add_limit(CLI::App &verb) {
    auto options = std::make_shared<LimitOptions>();

    add_list_options(verb, options->list, Of::accounts);
    verb.add_option("TARGET", options->target, target_help);
    add_setting_options(verb, options->settings);
    add_examples(verb,
                 "umacct limit                                       all limits, and what binds\n"
                 "umacct limit ollama.service --hard 40G --soft 36G\n"
                 "umacct limit vllm --keep 40G                       others leave it 40 GiB\n"
                 "umacct limit vllm --hard 40G --view                programs that ask see 40 GiB\n"
                 "umacct limit ollama.service --hard max --soft max  no limits any more");
    return [options](Session &session) { return limit(session, *options); };
}

} // namespace umacct::tool
