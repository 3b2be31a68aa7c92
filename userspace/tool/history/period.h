// SPDX-License-Identifier: GPL-2.0-or-later
/// Queries of the history, for the verbs that read it.
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

/// Selects the records of TARGET by its cgroups' names, as they may be gone.
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
    std::uint64_t most = 0; ///< held
    std::uint64_t most_total = 0;
    std::int64_t fastest = 0; ///< bytes per second, over ten seconds at the most
    bool there = false;       ///< exists at the end

    // Start of the current rate.
    std::int64_t rated_ms = 0;
    std::uint64_t rated = 0;

    std::int64_t grown() const {
        return static_cast<std::int64_t>(history::held(last) - history::held(first));
    }

    /// The same of TOTAL, with what went to swap.
    std::int64_t total_grown() const {
        return static_cast<std::int64_t>(history::total_and_swap(last) -
                                         history::total_and_swap(first));
    }

    /// How much such a count rose meanwhile.
    std::uint64_t rose(history::Holding which) const;
};

/// The history of a period.
struct Period {
    history::Range range;
    std::optional<history::Moment> first;
    std::optional<history::Moment> last;
    std::int64_t interval_ms = 0;    ///< interval of the coarsest samples
    std::vector<AccountPeriod> rows; ///< sorted by TOTAL at the end
    std::vector<history::Happening> happenings;
    std::vector<history::Leak> leaks;
    std::map<std::string, std::string> owners; ///< names of containers and pods, by path
};

/// Follows the accounts from one moment to the next.
class Follower {
public:
    /// filter must outlive it.
    explicit Follower(const Filter &filter) : filter_(filter) {}

    void take(const history::Moment &moment, const std::map<std::uint32_t, history::Named> &names);

    /// Returns the period; without range, happenings and leaks.
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

/// How much of the history the reader left out, for who reads the rest.
std::string damage_text(const history::Reader &reader);

/// Describes an event in words, without its account, which is printed beside it. name: of a path.
std::string describe(const history::Happening &happening,
                     const std::function<std::string(const std::string &path)> &name);

/// Returns the names of those that have one, by path.
std::map<std::string, std::string> owners_in(const std::map<std::uint32_t, history::Named> &names);

} // namespace umacct::tool
