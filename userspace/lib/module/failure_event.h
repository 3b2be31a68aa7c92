// SPDX-License-Identifier: GPL-2.0-or-later
/// What is said of an event "failed": the driver had no memory for a request. The module tells
/// who asked, for how much, and what was available; it keeps no order of its accounts, so who
/// holds most of the rest is looked for here, a moment later.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/module/model.h"

namespace umacct {

struct FirstHolder {
    std::string path;
    std::uint64_t bytes = 0; ///< of driver memory, in that cgroup itself
};

/// Who holds most of what the driver took, beside the account that asked for more.
std::optional<FirstHolder> first_holder(const std::vector<Account> &accounts,
                                        std::uint64_t asked_by);

/// "the driver had no memory for 64.00 MiB: 12.00 MiB available; /b holds 90.00 GiB". holder: its
/// name; empty where nobody holds any.
std::string failed_text(std::uint64_t size, std::uint64_t available, const std::string &holder,
                        std::uint64_t held);

} // namespace umacct
