// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/doctor/check.h"

#include <array>

#include <fmt/format.h>

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

    if (at.status->driver_state == UMACCT_DRIVER_ABSENT)
        found.add(Health::fail, "driver", "the NVIDIA driver is not loaded",
                  "modprobe nvidia; umacct notices it by itself");
    else
        found.add(*at.status, "driver",
                  fmt::format("{}{}, accounted", at.status->driver_version, flavour));
}

void check_uvm(const Examined &at, Findings &found) {
    found.add(*at.status, "nvidia-uvm", std::string(name_of(at.status->uvm_state)));
}

void check_hooks(const Examined &at, Findings &found) {
    for (const Hook &hook : at.status->hooks)
        found.add(*at.status, "hook " + hook.name,
                  fmt::format(
                      "{}: {}{}", hook.symbol, name_of(hook.state),
                      hook.state == UMACCT_HOOK_ARMED ? fmt::format(", {} calls", hook.calls) : ""),
                  {{"calls", hook.calls}, {"missed", hook.missed}});
}

void check_enforcement(const Examined &at, Findings &found) {
    found.add(*at.status, "enforcement", "what is set is enforced");
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
    const std::optional<std::uint64_t> &pools = at.status->pools;

    if (pools && !at.status->has(UMACCT_STATUS_PAGE_POOLS))
        found.add(Health::ok, "driver pools", "this driver gives freed pages back");
    else if (pools)
        found.add(Health::ok, "driver pools",
                  fmt::format("{} freed and kept by the driver, which nobody is charged for",
                              format_size(*pools)),
                  "", {{"pools_bytes", *pools}});
    else
        found.add(Health::warn, "driver pools",
                  "what this driver keeps in its pools can't be asked: it is in no figure",
                  "load nvidia with NVreg_EnableSystemMemoryPools=0; drop_caches empties them "
                  "until then");
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
    found.add(*at.status, "untracked", "every allocation was recorded",
              {{"untracked_count", at.status->untracked_count},
               {"untracked_bytes", at.status->untracked}});
    found.add(*at.status, "unattributed", "every allocation had an owner",
              {{"unattributed_count", at.status->unattributed_count}});
    found.add(*at.status, "stale", "no free was missed", {{"stale_count", at.status->stale_count}});
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
    static constexpr std::array<Check, 9> table{check_driver,      check_uvm,     check_hooks,
                                                check_enforcement, check_kmem,    check_pools,
                                                check_blind_spot,  check_records, check_events};

    return table;
}

} // namespace umacct::tool::doctor
