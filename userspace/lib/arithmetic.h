// SPDX-License-Identifier: GPL-2.0-or-later
/// Arithmetic on figures that are read one after the other, so that none wraps around.
#pragma once

#include <cstdint>

namespace umacct {

/// Subtracts; 0 if the result would be negative.
constexpr std::uint64_t without(std::uint64_t from, std::uint64_t what) {
    return from > what ? from - what : 0;
}

} // namespace umacct
