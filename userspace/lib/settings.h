// SPDX-License-Identifier: GPL-2.0-or-later
/// What can be set on an account, one setting like the other: for for_each_setting(), which
/// docs/netlink/umacct.yaml describes.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "lib/module/model.h"
#include "lib/units.h"

namespace umacct {

/// What an account has, as a change says it: of a limit, UMACCT_UNLIMITED where there is none.
template <class Change, class Value, class Neutral>
Neutral value_of(const Setting<Change, Value, Neutral> &setting, const Account &account) {
    if constexpr (std::is_same_v<Value, Limit>)
        return (account.*setting.value).value_or(UMACCT_UNLIMITED);
    else
        return account.*setting.value;
}

/// "40.00 GiB", "50 ms", "on", "inherit"
template <class Change, class Value, class Neutral>
std::string words_of(const Setting<Change, Value, Neutral> & /*setting*/, Neutral value) {
    if constexpr (std::is_same_v<Value, Limit>)
        return format_limit(value == UMACCT_UNLIMITED ? Limit() : Limit(value));
    else if constexpr (std::is_same_v<Value, bool>)
        return value ? "on" : "off";
    else if constexpr (std::is_enum_v<Value>)
        return std::string(name_of(value));
    else
        return format_time(value);
}

} // namespace umacct
