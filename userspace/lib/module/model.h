// SPDX-License-Identifier: GPL-2.0-or-later
/// The module's data, as values; bytes are bytes, times are nanoseconds. values.h has the part that
/// docs/netlink/umacct.yaml describes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/module/values.h"

namespace umacct {

/// Result of returning the driver's pools to the kernel.
struct Reclaim {
    std::uint64_t reclaimed = 0;
    std::optional<std::uint64_t> pools; ///< the rest, as in Status
};

/// State of a change that was made.
struct Enforcement {
    umacct_driver_state driver_state = UMACCT_DRIVER_HOOKED;
    std::string reason; ///< why nothing enforces it now; empty where something does
};

/// The words that text and JSON use; "unknown" for values of a newer module.
std::string_view name_of(umacct_driver_state state);
std::string_view name_of(umacct_hook_state state);
std::string_view name_of(umacct_charge_mode mode);
std::string_view name_of(umacct_event_type type);

} // namespace umacct
