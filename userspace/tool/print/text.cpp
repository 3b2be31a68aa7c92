// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/print/text.h"

#include <algorithm>

#include <fmt/format.h>

#include "lib/units.h"

namespace umacct::tool {

std::string printable(std::string_view text) {
    std::string result(text);

    std::replace_if(
        result.begin(), result.end(),
        [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, '?');
    return result;
}

std::string display_path(const Owners &owners, std::string_view path) {
    for (std::string at(path); at != "/"; at = parent_path(at)) {
        const auto owner = owners.of(at);

        if (owner && owner->kind != OwnerKind::unit)
            return printable(owner->label() + std::string(path.substr(at.size())));
    }
    return printable(path);
}

std::string counted(std::uint64_t count, const char *one, const char *many) {
    return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string short_name(const Owners &owners, std::string_view path) {
    const auto owner = owners.of(path);

    if (!owner || owner->kind == OwnerKind::unit)
        return printable(base_name(path));
    if (!owner->container.empty())
        return fmt::format("{} {}", owner->runtime, printable(owner->container));
    return printable(owner->label());
}

MemoryController memory_controller(const Cgroups &cgroups, const Account &account) {
    if (account.memory_current)
        return {.current = account.memory_current, .max = account.memory_max};
    return {.current = cgroups.number(account.path, "memory.current"),
            .max = cgroups.number(account.path, "memory.max")};
}

std::string format_known(const std::optional<std::uint64_t> &bytes) {
    if (!bytes)
        return "-";
    return *bytes == UMACCT_UNLIMITED ? "max" : format_size(*bytes);
}

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
    if (status.untracked_count > 0)
        found.push_back(
            fmt::format("{} allocations of {} could not be recorded and are in no account",
                        status.untracked_count, format_size(status.untracked)));
    if (status.stale_count > 0)
        found.push_back(fmt::format("{} records were dropped because their free was never seen",
                                    status.stale_count));
    return found;
}

} // namespace umacct::tool
