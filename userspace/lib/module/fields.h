// SPDX-License-Identifier: GPL-2.0-or-later
/// Members of the module's values, in the order of JSON: a line for each, with its attribute and
/// its key. message.cpp uses it for netlink, json.cpp for JSON; a member of one of them alone has a
/// line without the other's. value_fields.h has the lines of the figures.
#pragma once

#include <type_traits>

#include "lib/module/model.h"

namespace umacct {

template <class T, class Value>
concept Is = std::is_same_v<std::remove_const_t<T>, Value>;

/// enum umacct_status_flags
struct Flags {
    std::uint32_t bits = 0;
};

void fields(auto &way, Is<Reclaim> auto &reclaim) {
    way(UMACCT_A_STATUS_RECLAIMED, "reclaimed_bytes", reclaim.reclaimed);
    way(UMACCT_A_STATUS_POOLS, "pools_bytes", reclaim.pools);
}

/// The answer to ACCOUNT_SET.
void fields(auto &way, Is<Enforcement> auto &made) {
    way(UMACCT_A_ACCOUNT_DRIVER_STATE, "driver_state", made.driver_state);
    way(UMACCT_A_ACCOUNT_REASON, "not_enforced", made.reason);
}

} // namespace umacct
