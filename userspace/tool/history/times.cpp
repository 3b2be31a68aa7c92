// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/history/times.h"

#include <charconv>
#include <ctime>
#include <system_error>

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

Error no_time(const std::string &text) {
    return {Failure::usage, fmt::format("'{}' is no time", text),
            "write 03:12, 03:12:58, '2026-11-25 03:12', @ and the seconds since 1970, or how long "
            "ago it was: 90s, 10min, 2h, 3d"};
}

/// "@1764039178.250"
std::int64_t since_epoch_ms(const std::string &text) {
    constexpr std::int64_t most = 1LL << 40U; // the year 36812
    const char *const end = text.data() + text.size();
    std::int64_t seconds = 0;
    std::int64_t ms = 0;
    auto [at, error] = std::from_chars(text.data() + 1, end, seconds);

    if (error != std::errc{} || seconds < 0 || seconds > most)
        throw no_time(text);
    if (at != end && *at == '.') {
        std::int64_t unit = 100;

        for (++at; at != end && *at >= '0' && *at <= '9'; ++at, unit /= 10)
            ms += unit * (*at - '0');
    }
    if (at != end)
        throw no_time(text);
    return seconds * 1000 + ms;
}

std::int64_t to_ms(std::tm time) {
    time.tm_isdst = -1;
    return static_cast<std::int64_t>(std::mktime(&time)) * 1000;
}

} // namespace

std::int64_t parse_moment(const std::string &text, std::int64_t before_ms) {
    if (text.starts_with('@'))
        return since_epoch_ms(text);
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
        throw no_time(text);
    }
}

std::string utc_text(std::int64_t time_ms) {
    return fmt::format("{:%FT%T}.{:03}Z", fmt::gmtime(static_cast<std::time_t>(time_ms / 1000)),
                       time_ms % 1000);
}

} // namespace umacct::tool
