// SPDX-License-Identifier: GPL-2.0-or-later
/// A container's request: the settings in its config.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/orders/order.h"
#include "lib/settings.h"

namespace umacct::oci_hook {

struct Asked {
    WrittenSettings settings; ///< the annotations
    /// The lowest of NVIDIA's variable, a CDI device and what kubelet allocated.
    std::optional<std::uint64_t> hard;
    std::optional<std::uint64_t> soft; ///< NVIDIA's variable
    std::optional<std::uint64_t> memory_limit;

    /// Returns whether the container asks for any of umacct's settings.
    bool is_for_umacct() const;

    bool has_shares() const { return settings.has_shares(); }

    /// Returns the order on a machine with that much memory. Of a limit that is asked for in
    /// several ways, the lowest counts: not all of them need be the same person's.
    Order order(std::uint64_t total, bool from_memory_limit) const;
};

/// Throws Error (usage) that names what can't be understood.
Asked read_asked(const std::string &config);

} // namespace umacct::oci_hook
