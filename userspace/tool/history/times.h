// SPDX-License-Identifier: GPL-2.0-or-later
/// Moments as people write them.
#pragma once

#include <cstdint>
#include <string>

namespace umacct::tool {

/// "03:12", "03:12:58": the last such time of day until then. "2026-11-25 03:12", with seconds
/// or without, and with a T. "@1764039178.250": seconds since the epoch. "10min", "2h": that long
/// before. In ms since the epoch; days and hours are the local clock's. Throws Error (usage).
std::int64_t parse_moment(const std::string &text, std::int64_t before_ms);

/// "2026-11-25T03:12:58.123Z"
std::string utc_text(std::int64_t time_ms);

} // namespace umacct::tool
