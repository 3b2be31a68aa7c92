// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/history/times.h"

#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "lib/error.h"
#include "lib/units.h"

namespace umacct::tool {

namespace {

/// Whether all of the text is of that form.
bool reads(const std::string &text, const char *form, std::tm &time) {
    const char *end = strptime(text.c_str(), form, &time);

    return end != nullptr && *end == '\0';
}

std::int64_t to_ms(std::tm time) {
    time.tm_isdst = -1;
    return static_cast<std::int64_t>(std::mktime(&time)) * 1000;
}

} // namespace

std::int64_t parse_moment(const std::string &text, std::int64_t before_ms) {
    for (const char *form : {"%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M",
                             "%Y-%m-%dT%H:%M", "%Y-%m-%d"}) {
        std::tm time{};

        if (reads(text, form, time))
            return to_ms(time);
    }
    for (const char *form : {"%H:%M:%S", "%H:%M"}) {
        const auto before = static_cast<std::time_t>(before_ms / 1000);
        std::tm time = fmt::localtime(before);

        time.tm_sec = 0;
        if (!reads(text, form, time))
            continue;
        if (to_ms(time) > before_ms)
            --time.tm_mday; // mktime() knows what the day before the first is
        return to_ms(time);
    }
    try {
        return before_ms - static_cast<std::int64_t>(parse_time(text) / 1'000'000);
    } catch (const Error &) {
        throw Error(
            Failure::usage, fmt::format("'{}' is no time", text),
            "write 03:12, 03:12:58, '2026-11-25 03:12', or how long ago it was: 90s, 10min, "
            "2h");
    }
}

std::string utc_text(std::int64_t time_ms) {
    return fmt::format("{:%FT%T}.{:03}Z", fmt::gmtime(static_cast<std::time_t>(time_ms / 1000)),
                       time_ms % 1000);
}

} // namespace umacct::tool
