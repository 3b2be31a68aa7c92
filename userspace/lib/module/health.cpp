// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/module/health.h"

#include <fmt/format.h>

#include "lib/text.h"
#include "lib/units.h"

namespace umacct {

namespace {

bool is_unknown(umacct_driver_state state) {
    return state == UMACCT_DRIVER_UNKNOWN || state == UMACCT_DRIVER_BROKEN;
}

void add_hook(std::vector<Problem> &found, const Hook &hook) {
    const std::string check = "hook " + hook.name;

    if (hook.state == UMACCT_HOOK_FAILED)
        found.push_back(
            {check, hook.required,
             fmt::format("hook {} ({}) failed: {}", hook.name, hook.symbol, printable(hook.reason)),
             hook.required ? "without it nothing is accounted; a newer umacct may help"
                           : "the feature that it serves is off, the rest works"});
    if (hook.missed > 0)
        found.push_back({check, true,
                         fmt::format("hook {} ({}) missed {} of {} calls: the figures are off",
                                     hook.name, hook.symbol, hook.missed, hook.calls + hook.missed),
                         "is another tool tracing this function? Reload umacct when the driver is "
                         "idle"});
}

} // namespace

std::vector<Problem> problems(const Status &status) {
    std::vector<Problem> found;

    if (is_unknown(status.driver_state))
        found.push_back({"driver", true,
                         fmt::format("nothing is accounted: driver {} is {}: {}",
                                     printable(status.driver_version), name_of(status.driver_state),
                                     printable(status.reason)),
                         "a newer umacct may know this driver; the kernel log says more"});
    else if (status.driver_state == UMACCT_DRIVER_HOOKED && !status.reason.empty() &&
             !status.has(UMACCT_STATUS_UNENFORCED))
        found.push_back({"driver", false, printable(status.reason),
                         "a newer umacct may know this driver; load it without like_series then"});
    if (is_unknown(status.uvm_state))
        found.push_back({"nvidia-uvm", true,
                         fmt::format("managed memory is not accounted, and limits do not hold "
                                     "for it: nvidia-uvm is {}",
                                     name_of(status.uvm_state)),
                         "a newer umacct may know it; all other memory is accounted"});
    if (!status.has(UMACCT_STATUS_CGROUP_V2))
        found.push_back({"cgroups", false,
                         "there are no cgroups in the v2 hierarchy: everything is in one account",
                         "boot with systemd.unified_cgroup_hierarchy=1"});
    if (status.has(UMACCT_STATUS_OBSERVER))
        found.push_back(
            {"observer", false,
             fmt::format("the kernel module is not loaded: BPF programs count in its place, and "
                         "only allocations since {} are known, with the metadata of pages only",
                         format_clock(status.since_ns.value_or(0))),
             "'modprobe umacct' loads it; memory that was taken before is unattributed"});
    else if (!status.has(UMACCT_STATUS_SELFTEST))
        found.push_back({"probes", true,
                         "a probe on the module's own code did not fire: kprobes do not work here",
                         "is /sys/kernel/debug/kprobes/enabled 1?"});
    for (const Hook &hook : status.hooks)
        add_hook(found, hook);
    if (status.has(UMACCT_STATUS_UNENFORCED))
        found.push_back({"enforcement", true,
                         fmt::format("limits, a reserve or charging are set and nothing enforces "
                                     "them: {}",
                                     printable(status.reason)),
                         "take back what is set, or fix what is said of the driver and its hooks"});
    if (status.untracked_count > 0)
        found.push_back(
            {"untracked", true,
             fmt::format("{} allocations of {} could not be recorded and are in no account",
                         status.untracked_count, format_size(status.untracked)),
             status.has(UMACCT_STATUS_OBSERVER)
                 ? "there was no room for their records; 'umacct setup observer on --records "
                   "NUMBER' has the observer begin with more"
                 : "the kernel had no memory for their records; they are in no account until "
                   "freed"});
    if (status.unattributed_count > 0)
        found.push_back({"unattributed", false,
                         fmt::format("{} allocations were refused, as there was no memory to find "
                                     "out whose they are",
                                     status.unattributed_count),
                         "the kernel was out of memory: 'umacct reserve SIZE' keeps some free"});
    if (status.stale_count > 0)
        found.push_back({"stale", false,
                         fmt::format("{} records were dropped because their free was never seen",
                                     status.stale_count),
                         "frees were missed: see the hooks"});
    return found;
}

std::vector<std::string> warnings(const Status &status) {
    std::vector<std::string> texts;

    for (const Problem &problem : problems(status))
        texts.push_back(problem.text);
    return texts;
}

} // namespace umacct
