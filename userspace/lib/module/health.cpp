// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/module/health.h"

#include <fmt/format.h>

#include "lib/text.h"
#include "lib/units.h"

namespace umacct {

std::vector<std::string> warnings(const Status &status) {
    std::vector<std::string> found;

    if (status.driver_state == UMACCT_DRIVER_UNKNOWN || status.driver_state == UMACCT_DRIVER_BROKEN)
        found.push_back(fmt::format("nothing is accounted: driver {} is {}: {}",
                                    printable(status.driver_version), name_of(status.driver_state),
                                    printable(status.reason)));
    if (status.uvm_state == UMACCT_DRIVER_UNKNOWN || status.uvm_state == UMACCT_DRIVER_BROKEN)
        found.push_back(fmt::format("managed memory is not shown: nvidia-uvm is {}",
                                    name_of(status.uvm_state)));
    if (!status.has(UMACCT_STATUS_CGROUP_V2))
        found.emplace_back(
            "there are no cgroups in the v2 hierarchy: everything is in one account");
    if (!status.has(UMACCT_STATUS_SELFTEST))
        found.emplace_back(
            "a probe on the module's own code did not fire: kprobes do not work here");
    for (const Hook &hook : status.hooks) {
        if (hook.state == UMACCT_HOOK_FAILED)
            found.push_back(fmt::format("hook {} ({}) failed: {}", hook.name, hook.symbol,
                                        printable(hook.reason)));
        if (hook.missed > 0)
            found.push_back(fmt::format("hook {} ({}) missed {} of {} calls: the figures are off",
                                        hook.name, hook.symbol, hook.missed,
                                        hook.calls + hook.missed));
    }
    if (status.has(UMACCT_STATUS_UNENFORCED))
        found.push_back(fmt::format("limits, a reserve or charging are set and nothing enforces "
                                    "them: {}",
                                    printable(status.reason)));
    if (status.untracked_count > 0)
        found.push_back(
            fmt::format("{} allocations of {} could not be recorded and are in no account",
                        status.untracked_count, format_size(status.untracked)));
    if (status.stale_count > 0)
        found.push_back(fmt::format("{} records were dropped because their free was never seen",
                                    status.stale_count));
    return found;
}

} // namespace umacct
