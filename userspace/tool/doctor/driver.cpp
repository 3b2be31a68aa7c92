// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/doctor/check.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "lib/error.h"
#include "lib/units.h"
#include "tool/print/text.h"

namespace umacct::tool::doctor {

namespace {

void check_driver(const Examined &at, Findings &found) {
    const std::string proc = contents_of(at.machine.proc() / "driver/nvidia/version");
    const char *flavour = proc.empty() ? ""
                          : proc.find("Open Kernel Module") != std::string::npos
                              ? ", open flavour"
                              : ", proprietary flavour";

    switch (at.status->driver_state) {
    case UMACCT_DRIVER_ABSENT:
        found.add(Health::fail, "driver", "the NVIDIA driver is not loaded",
                  "modprobe nvidia; umacct notices it by itself");
        break;
    case UMACCT_DRIVER_HOOKED:
        found.add(Health::ok, "driver",
                  fmt::format("{}{}, accounted", at.status->driver_version, flavour));
        break;
    default:
        found.add(Health::fail, "driver",
                  fmt::format("{}{} is {}, nothing is accounted: {}", at.status->driver_version,
                              flavour, name_of(at.status->driver_state), at.status->reason),
                  "a newer umacct may know this driver; the kernel log says more");
    }
}

void check_uvm(const Examined &at, Findings &found) {
    const bool unknown = at.status->uvm_state == UMACCT_DRIVER_UNKNOWN ||
                         at.status->uvm_state == UMACCT_DRIVER_BROKEN;

    found.add(unknown ? Health::warn : Health::ok, "nvidia-uvm",
              fmt::format("{}{}", name_of(at.status->uvm_state),
                          unknown ? ": managed memory is not shown" : ""),
              unknown ? "a newer umacct may know it; all other memory is accounted" : "");
}

void check_hooks(const Examined &at, Findings &found) {
    for (const Hook &hook : at.status->hooks) {
        const bool failed = hook.state == UMACCT_HOOK_FAILED;
        const bool missed = hook.missed > 0;
        std::string text = fmt::format("{}: {}", hook.symbol, name_of(hook.state));
        std::string hint;

        if (hook.state == UMACCT_HOOK_ARMED)
            text += fmt::format(", {} calls, {} missed", hook.calls, hook.missed);
        if (failed) {
            text += ": " + hook.reason;
            hint = hook.required ? "without it nothing is accounted; a newer umacct may help"
                                 : "the feature that it serves is off, the rest works";
        } else if (missed) {
            hint = "the figures are off by what was missed: is another tool tracing this "
                   "function? Reload umacct when the driver is idle";
        }
        found.add((failed && hook.required) || missed ? Health::fail
                  : failed                            ? Health::warn
                                                      : Health::ok,
                  "hook " + hook.name, text, hint,
                  {{"calls", hook.calls}, {"missed", hook.missed}});
    }
}

void check_kmem(const Examined &at, Findings &found) {
    const bool off = has_word(line_of(at.machine.proc() / "cmdline"), "cgroup.memory=nokmem");

    if (at.status->has(UMACCT_STATUS_KMEM))
        found.add(Health::ok, "kernel memory", "the kernel accounts its memory by cgroup");
    else
        found.add(Health::warn, "kernel memory",
                  "the kernel does not account its memory by cgroup: charging can't work",
                  off ? "boot without cgroup.memory=nokmem"
                      : "it begins when the first cgroup has a memory controller");
}

void check_pools(const Examined &at, Findings &found) {
    const bool pools = at.status->has(UMACCT_STATUS_PAGE_POOLS);

    found.add(pools ? Health::warn : Health::ok, "driver pools",
              pools ? "this driver keeps freed pages in pools that belong to nobody"
                    : "this driver gives freed pages back",
              pools ? "load nvidia with NVreg_EnableSystemMemoryPools=0; drop_caches empties them "
                      "until then"
                    : "");
}

void check_blind_spot(const Examined &at, Findings &found) {
    const std::vector<std::pair<const char *, std::uint64_t>> values = {
        {"usage_bytes", at.status->usage},
        {"charged_bytes", at.status->charged},
        {"uncharged_bytes", at.status->uncharged()}};
    const std::string held =
        fmt::format("{} charged, {} uncharged", format_size(at.status->charged),
                    format_size(at.status->uncharged()));

    if (at.status->has(UMACCT_STATUS_NATIVE_CHARGE))
        found.add(Health::ok, "blind spot", "none: this driver charges its pages itself; " + held,
                  "", values);
    else if (at.status->charge_default == UMACCT_CHARGE_ON)
        found.add(Health::ok, "blind spot", "none: charging is the default; " + held, "", values);
    else
        found.add(
            Health::warn, "blind spot",
            "memory.max and memory.current don't see this driver's memory unless charging is "
            "on; " +
                held,
            at.status->has(UMACCT_STATUS_CHARGE_READY)
                ? "'umacct charge TARGET on' or 'umacct limit TARGET --hard SIZE'"
                : "'umacct limit TARGET --hard SIZE'; 'umacct charge' says why charging can't",
            values);
}

void check_records(const Examined &at, Findings &found) {
    found.add(at.status->untracked_count > 0 ? Health::fail : Health::ok, "untracked",
              fmt::format("{} of {} could not be recorded",
                          counted(at.status->untracked_count, "allocation", "allocations"),
                          format_size(at.status->untracked)),
              at.status->untracked_count > 0
                  ? "the kernel had no memory for their records; they are in no account until freed"
                  : "",
              {{"untracked_count", at.status->untracked_count},
               {"untracked_bytes", at.status->untracked}});
    found.add(at.status->stale_count > 0 ? Health::warn : Health::ok, "stale",
              fmt::format("{} dropped because their free was never seen",
                          counted(at.status->stale_count, "record", "records")),
              at.status->stale_count > 0 ? "frees were missed: see the hooks" : "",
              {{"stale_count", at.status->stale_count}});
}

void check_events(const Examined &at, Findings &found) {
    found.add(at.status->events_lost > 0 ? Health::warn : Health::ok, "events",
              fmt::format("{} sent, {} lost", at.status->events_sent, at.status->events_lost),
              at.status->events_lost > 0
                  ? "too many came at once; the counters are right all the same"
                  : "",
              {{"events_sent", at.status->events_sent}, {"events_lost", at.status->events_lost}});
}

} // namespace

std::span<const Check> driver_checks() {
    static constexpr std::array<Check, 8> table{check_driver,  check_uvm,   check_hooks,
                                                check_kmem,    check_pools, check_blind_spot,
                                                check_records, check_events};

    return table;
}

} // namespace umacct::tool::doctor
