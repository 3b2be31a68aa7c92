// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/limit_options.h"

#include "lib/units.h"
#include "tool/argument.h"

namespace umacct::tool {

void add_limit_options(CLI::App &verb, LimitOptions &options) {
    verb.add_option("--soft", options.soft, "size above which an event is sent; max for none")
        ->type_name("SIZE");
    verb.add_option("--hard", options.hard, "size that nothing may exceed; max for none")
        ->type_name("SIZE");
}

AccountChange parse_limits(const LimitOptions &options) {
    AccountChange change;

    if (options.soft)
        change.soft = read_argument("--soft", *options.soft, parse_limit);
    if (options.hard)
        change.hard = read_argument("--hard", *options.hard, parse_limit);
    if (options.throttle)
        change.throttle_ns = read_argument("--throttle", *options.throttle, parse_time);
    return change;
}

void set_limits(Context &context, const Target &target, const AccountChange &change) {
    request_change(target.path,
                   {{UMACCT_A_ACCOUNT_SOFT, "--soft"},
                    {UMACCT_A_ACCOUNT_HARD, "--hard"},
                    {UMACCT_A_ACCOUNT_THROTTLE, "--throttle"},
                    {UMACCT_A_ACCOUNT_VIEW, "--view"},
                    {UMACCT_A_ACCOUNT_CHARGE, "charge"}},
                   [&] { context.module().set_account(target.id, change); });
}

} // namespace umacct::tool
