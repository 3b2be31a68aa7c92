// SPDX-License-Identifier: GPL-2.0-or-later
/// Sizes and times as people write and read them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/module/model.h"

namespace umacct {

/// "40G", "512M", "1.5 GiB", "4096": binary units K, M, G, T with or without
/// "iB" or "B", in either case; bytes where there is none. Fractions of a byte
/// are dropped. Throws Error (usage) on anything else, and above 2^64 - 2.
std::uint64_t parse_size(std::string_view text);

/// A size, or "max", "none" or "off" for no limit, which gives UMACCT_UNLIMITED.
std::uint64_t parse_limit(std::string_view text);

/// "50%", "0.5%": more than 0 and at most 100. Throws Error (usage) on anything else.
double parse_share(std::string_view text);

/// Bytes, or a share of the machine's memory.
struct Amount {
    std::uint64_t bytes = 0;
    std::optional<double> percent;

    /// Returns the bytes on a machine with that much memory.
    std::uint64_t of(std::uint64_t total) const;

    bool operator==(const Amount &other) const = default;
};

/// A size, "max" for no limit, or a share. Throws Error (usage) on anything else.
Amount parse_amount(const std::string &text);

/// Parses a reserved amount: a size, a share, or "off" for nothing. Throws Error (usage).
Amount parse_reserve(const std::string &text);

/// Parses a size, or a share of that many bytes, such as "10%". Throws Error (usage).
std::uint64_t parse_size_of(std::string_view text, std::uint64_t whole);

/// "250ms", "2s", "500us", "1h", "0"; nanoseconds. "off" gives 0. Throws Error (usage).
std::uint64_t parse_time(std::string_view text);

/// "1.50 GiB", "512.00 MiB", "4.00 KiB", "12 B": the largest unit, up to TiB,
/// that leaves at least 1.
std::string format_size(std::uint64_t bytes);
/// The same; "max" for no limit.
std::string format_limit(const Limit &limit);

/// Formats a size for narrow columns: four digits, so 9 characters at most up to 9999 TiB: "1.50
/// GiB", "117.0 GiB", "1000 MiB".
std::string format_short(std::uint64_t bytes);
/// A change per second, likewise, with its sign: "+1.50 MiB/s", "-12 B/s", "0 B/s".
std::string format_rate(std::int64_t bytes_per_second);

/// "0.00%", "12.34%".
std::string format_percent(double percent);

/// "250 ms", "1.5 s", "off" for 0.
std::string format_time(std::uint64_t ns);

/// "12:03" of today, or "2026-11-24 12:03": a time since the epoch, on the local clock.
std::string format_clock(std::uint64_t ns);
/// The same of what has passed, of which 0 is none.
std::string format_elapsed(std::uint64_t ns);

} // namespace umacct
