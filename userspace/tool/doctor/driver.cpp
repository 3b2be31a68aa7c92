// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/doctor/check.h"

#include <algorithm>

#include <fmt/format.h>

#include "lib/units.h"
#include "tool/print/text.h"

namespace umacct::tool::doctor {

namespace {

void check_version(const Examined &at, Findings &found) {
    const std::string proc = contents_of(at.machine.proc() / "driver/nvidia/version");
    const char *flavour = proc.empty() ? ""
                          : proc.find("Open Kernel Module") != std::string::npos
                              ? ", open flavour"
                              : ", proprietary flavour";

    if (at.status->driver_state == UMACCT_DRIVER_ABSENT)
        found.add(Health::fail, "driver", "the NVIDIA driver is not loaded",
                  "modprobe nvidia; umacct notices it by itself");
    else
        found.add(at.status, "driver",
                  fmt::format("{}{}, accounted", at.status->driver_version, flavour));
}

void check_hooks(const Examined &at, Findings &found) {
    const bool counts = at.status->tells_all();

    for (const Hook &hook : at.status->hooks)
        found.add(at.status, "hook " + hook.name,
                  fmt::format("{}: {}{}", hook.symbol, umacct::name_of(hook.state),
                              counts && hook.state == UMACCT_HOOK_ARMED
                                  ? fmt::format(", {} calls", hook.calls)
                                  : ""),
                  counts ? Json{{"calls", hook.calls}, {"missed", hook.missed}} : Json::object());
}

void check_kmem(const Examined &at, Findings &found) {
    const bool on = at.status->has(UMACCT_STATUS_KMEM);
    const bool off = has_word(line_of(at.machine.proc() / "cmdline"), "cgroup.memory=nokmem");

    found.warn_unless(on, "kernel memory",
                      on ? "the kernel accounts its memory by cgroup"
                         : "the kernel does not account its memory by cgroup: charging can't work",
                      off ? "boot without cgroup.memory=nokmem"
                          : "it begins when the first cgroup has a memory controller");
}

void check_pools(const Examined &at, Findings &found) {
    const std::optional<std::uint64_t> &pools = at.status->pools;

    if (pools && !at.status->has(UMACCT_STATUS_PAGE_POOLS))
        found.add(Health::ok, "driver pools", "this driver gives freed pages back");
    else if (pools)
        found.add(Health::ok, "driver pools",
                  fmt::format("{} freed and kept by the driver, charged to no cgroup",
                              format_size(*pools)),
                  "", {{"pools_bytes", *pools}});
    else
        found.add(Health::warn, "driver pools",
                  "what this driver keeps in its pools can't be asked: it is in no figure",
                  "load nvidia with NVreg_EnableSystemMemoryPools=0; drop_caches empties them "
                  "until then");
}

/// Names limits that can't bind, as there is not that much memory.
void check_excess(const Examined &at, Findings &found) {
    const std::uint64_t total = at.meminfo().total();

    for (const Account &account : at.accounts) {
        const MemoryController memory = memory_controller(at.machine.cgroups(), account);
        const std::string name = display_path(at.machine.owners(), account.path);
        const auto check = [&](const char *what, std::uint64_t limit) {
            if (limit <= total || limit == UMACCT_UNLIMITED)
                return;
            found.add(Health::warn, what,
                      fmt::format("{} of {} is {}, and the machine has {}: it never binds", what,
                                  name, format_size(limit), format_size(total)),
                      "a lower one, where it is set; 'umacct reserve SIZE' keeps some for the "
                      "machine",
                      {{"limit_bytes", limit}});
            found.all.back().names = {account.path, name};
        };

        check("hard", account.hard.value_or(UMACCT_UNLIMITED));
        check("memory.max", memory.max.value_or(UMACCT_UNLIMITED));
    }
}

/// Cgroups whose memory.max is exceeded, if what the driver holds for them is added.
std::vector<const Account *> exceeding(const Examined &at) {
    std::vector<const Account *> all;

    for (const Account &account : at.accounts) {
        const MemoryController memory = memory_controller(at.machine.cgroups(), account);
        const std::uint64_t uncharged = account.usage - std::min(account.usage, account.charged);

        if (account.path != "/" && memory.current && memory.max && uncharged > 0 &&
            *memory.max != UMACCT_UNLIMITED && *memory.current + uncharged > *memory.max)
            all.push_back(&account);
    }
    return all;
}

void check_blind_spot(const Examined &at, Findings &found) {
    const Status &status = *at.status;
    const bool native = status.has(UMACCT_STATUS_NATIVE_CHARGE);
    const bool charges = status.charge_default == UMACCT_CHARGE_ON;
    const char *what =
        native    ? "none: this driver charges its pages itself"
        : charges ? "none: charging is the default"
                  : "memory.max and memory.current don't see this driver's memory unless charging "
                    "is on";
    const Json values{{"usage_bytes", status.usage},
                      {"charged_bytes", status.charged},
                      {"uncharged_bytes", status.uncharged()}};

    found.add(Health::ok, "blind spot",
              fmt::format("{}; {} charged, {} uncharged", what, format_size(status.charged),
                          format_size(status.uncharged())),
              "", values);
    for (const Account *account : exceeding(at)) {
        const std::string name = display_path(at.machine.owners(), account->path);

        found.add(Health::warn, "memory.max",
                  fmt::format("memory.max of {} does not hold: the driver took {} for it that the "
                              "kernel does not count",
                              name, format_size(account->usage - account->charged)),
                  fmt::format("'umacct limit {} --hard SIZE'{}", account->path,
                              status.has(UMACCT_STATUS_CHARGE_READY)
                                  ? fmt::format(", or 'umacct charge {} on'", account->path)
                                  : "; 'umacct charge' says why charging can't"),
                  {{"uncharged_bytes", account->usage - account->charged}});
        found.all.back().names = {account->path, name};
    }
}

} // namespace

void check_driver(const Examined &at, Findings &found) {
    const Status &status = *at.status;

    found.group = "driver";
    check_version(at, found);
    found.add(at.status, "nvidia-uvm", std::string(umacct::name_of(status.uvm_state)));
    found.group = "hooks";
    check_hooks(at, found);
    found.group = "figures";
    found.add(at.status, "enforcement", "what is set is enforced");
    check_kmem(at, found);
    if (!status.tells_all()) {
        found.add(Health::ok, "figures",
                  "not visible to you: pools, charging, and what was missed or lost; run as root");
        return;
    }
    check_pools(at, found);
    check_blind_spot(at, found);
    check_excess(at, found);
    found.add(at.status, "untracked", "every allocation was recorded",
              {{"untracked_count", status.untracked_count}, {"untracked_bytes", status.untracked}});
    found.add(at.status, "unattributed", "every allocation had an owner",
              {{"unattributed_count", status.unattributed_count}});
    found.add(at.status, "stale", "no free was missed", {{"stale_count", status.stale_count}});
    found.warn_unless(status.events_lost == 0, "events",
                      fmt::format("{} sent, {} lost", status.events_sent, status.events_lost),
                      "too many came at once; the counters are right all the same",
                      {{"events_sent", status.events_sent}, {"events_lost", status.events_lost}});
}

} // namespace umacct::tool::doctor
