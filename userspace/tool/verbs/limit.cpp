// SPDX-License-Identifier: GPL-2.0-or-later
#include <cstdint>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>

#include "lib/error.h"
#include "tool/arguments.h"
#include "tool/permanent.h"
#include "tool/session.h"
#include "tool/settings.h"
#include "tool/total.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

struct LimitOptions {
    std::optional<std::string> target;
    SettingOptions settings;
    std::string total;
    bool permanent = false;
    ListOptions list{.columns = {}, .sort = "name"};
};

bool is_limited(const Account &account) {
    return account.effective || account.soft || account.throttle_ns != 0 || account.keep != 0 ||
           account.view;
}

int limit_total(Session &session, const LimitOptions &options, PersonChange change) {
    const Machine &machine = session.machine;
    const std::uint64_t bytes = parse_total_option(options.total, machine);
    const Target target = resolve_to_change(machine, *options.target);
    int code = 0;

    charge_for_total(bytes, change);
    const TotalChange total =
        set_total(machine, target, bytes, [&] { code = change_account(session, target, change); });
    report_total(session.output, total, read_account(session.module(), machine.cgroups(), target));
    return code;
}

int limit(Session &session, const LimitOptions &options) {
    const PersonChange change = parse_settings(options.settings, session.machine);

    if (change.empty() && options.total.empty())
        return list_accounts(session, options.target, options.list,
                             {.worth = is_limited,
                              .columns = {"name", "usage", "soft", "hard", "limit", "bound-by",
                                          "keep", "throttle", "view"},
                              .none = "no limits are set\n",
                              .reasons = true});
    if (!options.target)
        throw Error(Failure::usage, "TARGET is missing: whose limit is it?",
                    "for example: umacct limit ollama.service --hard 40G");
    if (options.permanent) {
        std::optional<std::uint64_t> total;

        if (!options.total.empty())
            total = parse_total_option(options.total, session.machine);
        return change_for_good(session, *options.target, change, total);
    }
    if (!options.total.empty())
        return limit_total(session, options, change);
    return change_account(session, resolve_to_change(session.machine, *options.target), change);
}

} // namespace

Action add_limit(CLI::App &verb) {
    auto options = std::make_shared<LimitOptions>();

    add_list_options(verb, options->list, Of::accounts);
    verb.add_option("TARGET", options->target, target_help);
    add_setting_options(verb, options->settings);
    add_total_option(verb, options->total);
    verb.add_flag("--permanent", options->permanent, permanent_help);
    add_examples(
        verb,
        "umacct limit ollama.service --total 60G            all its memory, driver and programs\n"
        "umacct limit                                       all limits, and what binds\n"
        "umacct limit ollama.service --hard 40G --soft 36G\n"
        "umacct limit vllm --keep 40G                       others leave it 40 GiB\n"
        "umacct limit vllm --hard 40G --view                programs that ask see 40 GiB\n"
        "umacct limit ollama.service --hard max --soft max  no limits, whatever a rule says\n"
        "umacct limit ollama.service --hard -               as without this command\n"
        "umacct limit ollama --hard 40G --permanent         as a rule, which stays");
    return [options](Session &session) { return limit(session, *options); };
}

} // namespace umacct::tool
