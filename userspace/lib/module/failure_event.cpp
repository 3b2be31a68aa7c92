// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/module/failure_event.h"

#include <fmt/format.h>

#include "lib/units.h"

namespace umacct {

std::optional<FirstHolder> first_holder(const std::vector<Account> &accounts) {
    const Account *first = nullptr;

    for (const Account &account : accounts) {
        if (account.local == 0)
            continue;
        if (first == nullptr || account.local > first->local)
            first = &account;
    }
    if (first == nullptr)
        return std::nullopt;
    return FirstHolder{.path = first->path, .bytes = first->local};
}

std::string failed_text(std::uint64_t size, std::uint64_t available, const std::string &holder,
                        std::uint64_t held) {
    // Then it is no want of memory as such.
    const char *why =
        available > size ? " in smaller pieces, or memory.max of its cgroup refused it" : "";

    return fmt::format("the driver had no memory for {}: {} available{}{}", format_size(size),
                       format_size(available), why,
                       holder.empty() ? ""
                                      : fmt::format("; {} holds {}", holder, format_size(held)));
}

} // namespace umacct
