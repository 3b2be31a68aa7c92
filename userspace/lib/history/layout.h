// SPDX-License-Identifier: GPL-2.0-or-later
/// How the history lies in its database, for who writes it and who reads it.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>

namespace umacct::history {

/// Below the root.
constexpr const char *folder = "var/lib/umacctd";
constexpr const char *file_name = "history.db";
constexpr const char *without_sqlite = "cannot write the history";

/// Of the file with its log, in bytes.
constexpr std::int64_t size_bound = 64LL << 20;

/// The same samples, ever fewer of them, and for ever longer.
struct Resolution {
    const char *table;
    std::int64_t interval_ms;
    std::int64_t rows; ///< kept; so that a clock that was set makes nothing old
};

constexpr std::array resolutions{
    Resolution{"sample_1s", 1000, 24L * 3600},
    Resolution{"sample_10s", 10'000, 7L * 24 * 360},
    Resolution{"sample_1min", 60'000, 30L * 24 * 60},
    Resolution{"sample_10min", 600'000, 366L * 24 * 6},
};

/// So many events are kept.
constexpr std::int64_t events_kept = 20'000;

/// Every so many samples one is whole; the others say what differs from the one before.
constexpr int whole_every = 60;

/// Of another layout, a file is set aside.
constexpr int layout_version = 1;

/// A sample's id: of which start of the machine, and when in it. Later ones are greater,
/// whatever was done to the clock.
constexpr std::int64_t id_of(std::int64_t boot, std::int64_t uptime_ms) {
    return (boot << 41) + uptime_ms;
}

constexpr std::int64_t uptime_of(std::int64_t id) {
    return id & ((1LL << 41) - 1);
}

} // namespace umacct::history
