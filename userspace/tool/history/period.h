// SPDX-License-Identifier: GPL-2.0-or-later
/// What of the history is asked for, and what it tells: of the verbs that read it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/history/analysis.h"
#include "lib/history/reader.h"
#include "lib/machine.h"

namespace CLI {
class App;
}

namespace umacct::tool {

/// A time as the user wrote it.
struct AskedTime {
    std::optional<std::string> since;
    std::optional<std::string> until;
    std::optional<std::string> at;
    std::optional<int> boot;
};

/// --since, --until, --at and --boot.
void add_time_options(CLI::App &verb, AskedTime &asked);

/// What of the history is about TARGET: by what its cgroups were called, as they may be gone.
class Filter {
public:
    Filter(const Machine &machine, std::optional<std::string> target);

    bool takes(const history::Named &named) const;

    bool is_set() const { return target_.has_value(); }

private:
    std::optional<std::string> target_;
    std::string path_;
};

/// The start that is asked for, or the last one recorded where none is. current: the id of this
/// start, from which --boot counts. Throws Error where there is none.
const history::Boot &choose_boot(const std::vector<history::Boot> &boots, const AskedTime &asked,
                                 const std::string &current);

/// runs: it is this start of the machine. Throws Error (usage).
history::Range range_of(const AskedTime &asked, const history::Boot &boot, bool runs);

/// One account, over the time that is asked for.
struct AccountPeriod {
    history::Named named;
    history::Holdings first;
    history::Holdings last;
    std::uint64_t most = 0;
    std::int64_t fastest = 0; ///< bytes per second, over ten seconds at the most
    bool there = false;       ///< at the end

    // To find the fastest.
    std::int64_t rated_ms = 0;
    std::uint64_t rated = 0;

    std::int64_t grown() const {
        return static_cast<std::int64_t>(history::held(last) - history::held(first));
    }

    /// How much such a count rose meanwhile.
    std::uint64_t rose(history::Holding which) const;
};

/// All that is to be told of a time.
struct Period {
    history::Range range;
    std::optional<history::Moment> first;
    std::optional<history::Moment> last;
    std::int64_t interval_ms = 0;    ///< of the coarsest samples in it
    std::vector<AccountPeriod> rows; ///< by what they hold at its end
    std::vector<history::Happening> happenings;
    std::vector<history::Leak> leaks;
};

/// Follows the accounts from one moment to the next.
class Follower {
public:
    /// filter must outlive it.
    explicit Follower(const Filter &filter) : filter_(filter) {}

    void take(const history::Moment &moment, const std::map<std::uint32_t, history::Named> &names);

    /// What it saw; without range, happenings and leaks.
    Period end();

private:
    const Filter &filter_;
    std::map<std::uint32_t, AccountPeriod> rows_;
    Period period_;
};

/// interval_ms: as Reader::for_each() has it. visit: gets each moment, too.
Period read_period(history::Reader &reader, const history::Boot &boot, const history::Range &range,
                   const Filter &filter, std::int64_t interval_ms = 0,
                   const std::function<void(const history::Moment &moment)> &visit = {});

/// What happened, in words; whom it is about is said beside it.
std::string describe(const history::Happening &happening);

} // namespace umacct::tool
