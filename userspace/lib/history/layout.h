// SPDX-License-Identifier: GPL-2.0-or-later
/// How the history lies in its database, for who writes it and who reads it.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>

namespace umacct::history {

/// The history's folder, relative to the root directory.
constexpr const char *folder = "var/lib/umacctd";
constexpr const char *file_name = "history.db";
constexpr const char *without_sqlite = "cannot write the history";

/// Largest size of the file and its log together, in bytes.
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

/// Number of events that are kept.
constexpr std::int64_t events_kept = 20'000;

/// Interval of whole samples; the others say what differs from the one before.
constexpr int whole_every = 60;

/// A file of a later layout is set aside; one of the first, without seals, gets them from now on.
constexpr int layout_version = 2;
constexpr int layout_without_seals = 1;

/// A table, and its columns without the last one, which is the row's seal. The first is the key.
struct Table {
    const char *name = nullptr;
    const char *columns = nullptr;
    bool chained = false; ///< a row that isn't whole continues the seal of the row before it
};

constexpr const char *sample_columns = "id, whole, difference";
constexpr Table boot_table{"boot", "number, boot_id, started_ms, ended_ms"};
constexpr Table account_table{"account", "key, boot, id, path, owner"};
constexpr Table event_table{"event", "id, boot, uptime_ms, type, path, limit_path, comm, pid, "
                                     "size, usage, limit_bytes, count, text, time_ms"};

constexpr Table sample_table(std::size_t resolution) {
    return {resolutions[resolution].table, sample_columns, true};
}

/// A sample's id: of which start of the machine, and when in it. Later ones are greater,
/// whatever was done to the clock.
constexpr std::int64_t id_of(std::int64_t boot, std::int64_t uptime_ms) {
    return (boot << 41) + uptime_ms;
}

/// No boot's number gets there.
constexpr std::int64_t most_boots = (1LL << 22) - 1;

constexpr std::int64_t boot_of(std::int64_t id) {
    return id >> 41;
}

constexpr std::int64_t uptime_of(std::int64_t id) {
    return id & ((1LL << 41) - 1);
}

} // namespace umacct::history
