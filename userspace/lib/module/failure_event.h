// SPDX-License-Identifier: GPL-2.0-or-later
/// The description of a "failed" event: the driver had no memory for a request. The module names
/// the requester, the size, and the memory available; it keeps no order of its accounts, so the
/// largest holder is looked up here, a moment later.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/module/model.h"

namespace umacct {

struct FirstHolder {
    std::string path;
    std::uint64_t bytes = 0; ///< driver memory of that cgroup alone
};

/// Finds the largest holder of driver memory, perhaps the account that asked for more.
std::optional<FirstHolder> first_holder(const std::vector<Account> &accounts);

/// "the driver had no memory for 64.00 MiB: 12.00 MiB available; /b holds 90.00 GiB". holder: its
/// name; empty if there is no holder.
std::string failed_text(std::uint64_t size, std::uint64_t available, const std::string &holder,
                        std::uint64_t held);

} // namespace umacct
