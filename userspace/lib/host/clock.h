// SPDX-License-Identifier: GPL-2.0-or-later
/// The kernel's clocks.
#pragma once

#include <cstdint>
#include <ctime>

namespace umacct {

/// Reads that clock, in nanoseconds.
inline std::uint64_t now_ns(clockid_t clock) {
    timespec now{};

    clock_gettime(clock, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(now.tv_nsec);
}

} // namespace umacct
