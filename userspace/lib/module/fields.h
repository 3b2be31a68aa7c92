// SPDX-License-Identifier: GPL-2.0-or-later
/// What the module's values consist of, in the order of JSON: a line for each member, with its
/// attribute and its key. message.cpp goes through it for netlink, json.cpp for JSON; what one
/// of them alone has is a line without the other's. Of figures, value_fields.h has the lines.
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

/// As ACCOUNT_SET answers it.
void fields(auto &way, Is<Enforcement> auto &made) {
    way(UMACCT_A_ACCOUNT_DRIVER_STATE, "driver_state", made.driver_state);
    way(UMACCT_A_ACCOUNT_REASON, "not_enforced", made.reason);
}

} // namespace umacct
