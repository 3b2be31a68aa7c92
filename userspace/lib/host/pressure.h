// SPDX-License-Identifier: GPL-2.0-or-later
/// Pressure stall information: how long tasks waited for memory, as the kernel tells it of a
/// cgroup (memory.pressure) and of the machine (/proc/pressure/memory).
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>

namespace umacct {

struct Pressure {
    /// Of the time in which some task waited, or all of them did.
    struct Share {
        double avg10 = 0; ///< per cent of the last 10 s
        double avg60 = 0;
        std::uint64_t total_us = 0;
    };

    Share some;
    Share full;

    /// From such a file; empty where there is none, or it is not one.
    static std::optional<Pressure> read(std::istream &file);
};

} // namespace umacct
