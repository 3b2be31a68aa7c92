// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/units.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <ctime>
#include <locale>
#include <optional>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "lib/error.h"

namespace umacct {

namespace {

constexpr int max_decimals = 9;
constexpr std::uint64_t kib = 1ULL << 10;
constexpr std::uint64_t mib = 1ULL << 20;
constexpr std::uint64_t gib = 1ULL << 30;
constexpr std::uint64_t tib = 1ULL << 40;

/// Factor of a unit written in lower case; empty when there is no such unit.
using UnitFactor = std::optional<std::uint64_t> (*)(std::string_view unit);

std::optional<std::uint64_t> size_factor(std::string_view unit) {
    static constexpr std::string_view prefixes = "kmgt";
    static constexpr std::array factors{kib, mib, gib, tib};
    std::uint64_t factor = 1;

    if (const auto at = unit.empty() ? std::string_view::npos : prefixes.find(unit.front());
        at != std::string_view::npos) {
        factor = factors.at(at);
        unit.remove_prefix(1);
        if (unit.starts_with('i'))
            unit.remove_prefix(1);
    }
    if (!unit.empty() && unit != "b")
        return std::nullopt;
    return factor;
}

struct Unit {
    std::string_view name;
    std::uint64_t size;
};

constexpr std::uint64_t second = 1'000'000'000;

/// Units in descending order.
constexpr std::array times{Unit{"s", second}, Unit{"ms", 1'000'000}, Unit{"us", 1'000},
                           Unit{"ns", 1}};

std::optional<std::uint64_t> time_factor(std::string_view unit) {
    const auto *found = std::ranges::find(times, unit, &Unit::name);

    if (unit == "d")
        return second * 3600 * 24;
    if (unit == "min" || unit == "m" || unit == "h")
        return second * (unit == "h" ? 3600U : 60U);
    return found == times.end() ? std::nullopt : std::optional(found->size);
}

/// Takes the leading decimal digits off text.
std::string_view take_digits(std::string_view &text) {
    const std::string_view digits = text.substr(0, text.find_first_not_of("0123456789"));

    text.remove_prefix(digits.size());
    return digits;
}

/// whole.fraction * factor, empty when it doesn't fit below UMACCT_UNLIMITED.
std::optional<std::uint64_t> scale(std::string_view whole, std::string_view fraction,
                                   std::uint64_t factor) {
    std::uint64_t value = 0;
    std::uint64_t numerator = 0;
    std::uint64_t denominator = 1;

    if (std::from_chars(whole.data(), whole.data() + whole.size(), value).ec != std::errc())
        return std::nullopt;
    // Integers: a double would round values that a user can write exactly.
    std::from_chars(fraction.data(), fraction.data() + fraction.size(), numerator);
    for (std::size_t i = 0; i < fraction.size(); ++i)
        denominator *= 10;
    // Two steps, as numerator * factor may be wider than 64 bits.
    const std::uint64_t part =
        factor / denominator * numerator + factor % denominator * numerator / denominator;
    if (__builtin_mul_overflow(value, factor, &value) ||
        __builtin_add_overflow(value, part, &value) || value == UMACCT_UNLIMITED)
        return std::nullopt;
    return value;
}

/// Bytes in hundredths of the largest unit, up to TiB, of which there is at least one.
struct Scaled {
    std::uint64_t hundredths = 0;
    std::string_view unit; ///< empty below 1 KiB
};

Scaled scaled(std::uint64_t bytes) {
    static constexpr std::array units{Unit{"TiB", tib}, Unit{"GiB", gib}, Unit{"MiB", mib},
                                      Unit{"KiB", kib}};

    for (const Unit &unit : units) {
        // Rounded before the unit is chosen: 1023.999 MiB reads 1.00 GiB.
        const std::uint64_t hundredths =
            bytes / unit.size * 100 + (bytes % unit.size * 100 + unit.size / 2) / unit.size;

        if (hundredths >= 100)
            return {hundredths, unit.name};
    }
    return {};
}

/// A number with a unit; empty when it can't be read. Throws Error when it is too large.
std::optional<std::uint64_t> parse_quantity(std::string_view text, UnitFactor unit_factor) {
    std::string_view rest = text;
    const std::string_view whole = take_digits(rest);
    std::string_view fraction;

    if (rest.starts_with('.')) {
        rest.remove_prefix(1);
        fraction = take_digits(rest);
        if (fraction.empty() || fraction.size() > max_decimals)
            return std::nullopt;
    }
    if (rest.size() > 1 && rest.front() == ' ')
        rest.remove_prefix(1);

    std::string unit(rest);
    std::transform(unit.begin(), unit.end(), unit.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const std::optional<std::uint64_t> factor = unit_factor(unit);
    if (whole.empty() || !factor)
        return std::nullopt;

    const std::optional<std::uint64_t> value = scale(whole, fraction, *factor);
    if (!value)
        throw Error(Failure::usage, fmt::format("'{}' is too large", text),
                    "must be less than 2^64");
    return value;
}

/// The same; throws Error when it can't be read, either.
std::uint64_t parse(std::string_view text, UnitFactor unit_factor, const char *what,
                    const char *hint) {
    if (const auto value = parse_quantity(text, unit_factor))
        return *value;
    throw Error(Failure::usage, fmt::format("'{}' is not a {}", text, what), hint);
}

} // namespace

std::uint64_t parse_size(std::string_view text) {
    return parse(text, size_factor, "size",
                 "write a size as 40G, 512M, 1.5GiB or a number of bytes");
}

namespace {

bool is_no_limit(std::string_view text) {
    return text == "max" || text == "none" || text == "off";
}

/// Reads the size of a setting. A small number is a size whose unit was forgotten.
std::uint64_t parse_amount_of(std::string_view text, const char *hint) {
    constexpr std::uint64_t least = 1ULL << 20;
    const std::uint64_t bytes = parse(text, size_factor, "size", hint);

    if (bytes != 0 && bytes < least &&
        text.find_first_not_of("0123456789.") == std::string_view::npos)
        throw Error(Failure::usage, fmt::format("'{}' has no unit", text),
                    fmt::format("write {0}G, {0}M, or {0}B for bytes", text));
    return bytes;
}

} // namespace

std::uint64_t parse_limit(std::string_view text) {
    if (is_no_limit(text))
        return UMACCT_UNLIMITED;
    return parse_amount_of(text, "write a size as 40G, 512M, 1.5GiB or a number of bytes, or max "
                                 "for no limit");
}

double parse_share(std::string_view text) {
    std::istringstream number(std::string(text.substr(0, text.find('%'))));
    double percent = 0;

    number.imbue(std::locale::classic());
    if (text.find('%') != text.size() - 1 || !(number >> percent) ||
        number.peek() != std::istringstream::traits_type::eof() || !(percent > 0 && percent <= 100))
        throw Error(Failure::usage, fmt::format("'{}' is not a share: 1% to 100%", text));
    return percent;
}

std::uint64_t Amount::of(std::uint64_t total) const {
    return percent ? static_cast<std::uint64_t>(static_cast<double>(total) * *percent / 100)
                   : bytes;
}

namespace {

Amount parse_amount_or(const std::string &text, const char *hint) {
    if (text.ends_with('%'))
        return {.bytes = 0, .percent = parse_share(text)};
    return {.bytes = parse_amount_of(text, hint), .percent = {}};
}

} // namespace

Amount parse_amount(const std::string &text) {
    if (is_no_limit(text))
        return {.bytes = UMACCT_UNLIMITED, .percent = {}};
    return parse_amount_or(text, "write a size as 40G, 512M, 1.5GiB or a number of bytes, a share "
                                 "of the machine's memory as 50%, or max for no limit");
}

Amount parse_reserve(const std::string &text) {
    if (text == "max")
        throw Error(Failure::usage, "'max' would leave no memory at all");
    if (text == "off" || text == "none")
        return {};
    return parse_amount_or(text, "write a size as 40G, 512M, 1.5GiB or a number of bytes, a share "
                                 "of the machine's memory as 10%, or off");
}

std::uint64_t parse_size_of(std::string_view text, std::uint64_t whole) {
    return parse_amount_or(std::string(text), "write a size as 40G, 512M, 1.5GiB or a number of "
                                              "bytes, or a share of the machine's memory as 10%")
        .of(whole);
}

std::uint64_t parse_time(std::string_view text) {
    if (is_no_limit(text) || text == "0")
        return 0;
    return parse(text, time_factor, "time", "write a time as 500us, 20ms or 1s, or off");
}

std::string format_size(std::uint64_t bytes) {
    const Scaled size = scaled(bytes);

    if (size.unit.empty())
        return fmt::format("{} B", bytes);
    return fmt::format("{}.{:02} {}", size.hundredths / 100, size.hundredths % 100, size.unit);
}

std::string format_short(std::uint64_t bytes) {
    const Scaled size = scaled(bytes);
    const std::uint64_t tenths = (size.hundredths + 5) / 10;

    if (size.unit.empty() || size.hundredths < 10000)
        return format_size(bytes);
    if (tenths < 10000)
        return fmt::format("{}.{} {}", tenths / 10, tenths % 10, size.unit);
    return fmt::format("{} {}", (size.hundredths + 50) / 100, size.unit);
}

std::string format_rate(std::int64_t bytes_per_second) {
    const auto bits = static_cast<std::uint64_t>(bytes_per_second);

    if (bytes_per_second == 0)
        return "0 B/s";
    return bytes_per_second > 0 ? fmt::format("+{}/s", format_short(bits))
                                : fmt::format("-{}/s", format_short(0 - bits));
}

std::string format_limit(const Limit &limit) {
    return limit ? format_size(*limit) : "max";
}

std::string format_percent(double percent) {
    return fmt::format("{:.2f}%", percent);
}

std::string format_time(std::uint64_t ns) {
    if (ns == 0)
        return "off";
    // Times below a microsecond are printed in these, too.
    const auto *unit = std::ranges::find_if(
        times, [ns](const Unit &each) { return ns >= each.size || each.name == "us"; });
    return fmt::format("{:g} {}", static_cast<double>(ns) / static_cast<double>(unit->size),
                       unit->name);
}

std::string format_elapsed(std::uint64_t ns) {
    return ns == 0 ? "0 s" : format_time(ns);
}

std::string format_clock(std::uint64_t ns) {
    const auto at = static_cast<std::time_t>(ns / 1'000'000'000);
    const std::time_t now = std::time(nullptr);
    std::array<char, 32> text{};
    std::tm then{};
    std::tm today{};

    localtime_r(&at, &then);
    localtime_r(&now, &today);
    const bool same = then.tm_year == today.tm_year && then.tm_yday == today.tm_yday;
    std::strftime(text.data(), text.size(), same ? "%H:%M" : "%Y-%m-%d %H:%M", &then);
    return text.data();
}

} // namespace umacct
