// SPDX-License-Identifier: GPL-2.0-or-later
/// Analysis of how a machine's boots ended, from the data of its history alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/history/reader.h"

namespace umacct::history {

/// How an account's holdings went, from one moment to another.
struct Growth {
    std::uint32_t key = 0;
    Named named;
    Holdings before;
    Holdings after;

    std::int64_t driver() const;
    std::int64_t total() const;
    std::int64_t cache() const;
};

enum class Kind {
    not_short, ///< memory was not short at the end
    driver,    ///< one account, through the driver
    programs,  ///< one account's programs
    cache,     ///< page cache, beside driver memory that can't be reclaimed
    many,      ///< no account has half of it
    unknown    ///< no account that still exists
};

/// The setting that would have kept the memory from running short.
struct Prevention {
    enum class Way { none, reserve, kernel_limit, headroom };

    Way way = Way::none;
    std::uint64_t bytes = 0;
    std::int64_t time_ms = 0;     ///< the moment it would have begun to act
    std::optional<Growth> whom{}; ///< the account it would have refused
    std::int64_t refused = 0;     ///< bytes that account took afterwards
    std::string why_not{};        ///< the missing data, where there is no way
};

/// The end of what was recorded of one start of the machine.
struct End {
    Boot boot;
    bool clean = false;   ///< umacctd was stopped
    bool running = false; ///< it is this start of the machine
    Kind kind = Kind::unknown;
    std::int64_t fell_from_ms = 0; ///< the available memory fell since then
    std::int64_t low_since_ms = 0; ///< and was as low as at the end since then
    Figures before{};
    Figures after{};
    std::vector<Growth> growers{}; ///< largest growth first
    std::optional<Growth> culprit{};
    double stalled_percent = 0;    ///< share of the last seconds with all tasks waiting
    std::vector<Happening> acts{}; ///< umacct's own actions meanwhile
    Prevention prevention{};
};

/// current: the machine's boot id.
End analyse_end(Reader &reader, const Boot &boot, const std::string &current);

/// The same in words: a paragraph.
std::string paragraph(const End &end);

/// An account that grows and doesn't fall.
struct Leak {
    Named named;
    std::int64_t since_ms = 0;
    std::int64_t until_ms = 0;
    std::uint64_t grown = 0;
    double bytes_per_hour = 0;
    bool driver = false; ///< most of it is the driver's
};

/// Those in that time, the fastest first. interval_ms: of the samples that it looks at; 10 s at
/// the least.
std::vector<Leak> find_leaks(Reader &reader, const Boot &boot, const Range &range,
                             std::int64_t interval_ms = 0);

/// "03:11:58"; with the day where that isn't the other time's.
std::string clock_text(std::int64_t time_ms, std::optional<std::int64_t> beside_ms = {});
/// "2 h 5 min", "40 s".
std::string span_text(std::int64_t ms);

} // namespace umacct::history
