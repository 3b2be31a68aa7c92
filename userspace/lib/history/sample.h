// SPDX-License-Identifier: GPL-2.0-or-later
/// One sample of the machine's state, and its encoding as a difference from the sample before.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace umacct::history {

/// A figure of the machine, in bytes where its name says nothing else. Databases have their
/// numbers: a new one comes before "count", and none goes.
enum class Figure : std::uint8_t {
    total,
    free,
    available,  ///< MemAvailable
    obtainable, ///< available to the driver; 0 without the module
    buffers,
    cached,
    reclaimable, ///< KReclaimable
    shared,
    swap_total,
    swap_free,
    usage, ///< taken through the driver, by all accounts
    charged,
    driver, ///< the driver's own, of no client
    managed,
    metadata,
    untracked,
    pools,
    reserve,
    some_us,    ///< how long some task waited for memory so far
    full_us,    ///< how long all of them did
    dropped,    ///< samples that had no room, so far
    complaints, ///< lines with NV_ERR_NO_MEMORY that the driver logged, so far
    count
};

/// A figure of an account, in bytes where its name says nothing else. As above.
enum class Holding : std::uint8_t {
    driver, ///< taken through the driver
    charged,
    current, ///< memory.current
    cache,   ///< reclaimable page cache and slab, as part of current; 0 for small accounts
    hard,    ///< UMACCT_UNLIMITED for none
    soft,
    refusals, ///< allocations that umacct refused so far
    failures, ///< those that the driver failed
    swap,     ///< memory on swap, beside current
    count
};

/// Returns the key in JSON and CSV, with its unit.
const char *key_of(Figure figure);
const char *key_of(Holding holding);

/// Numbers by what they are of.
template <class Key>
class Numbers {
public:
    std::uint64_t &operator[](Key key) { return values_[static_cast<std::size_t>(key)]; }

    std::uint64_t operator[](Key key) const { return values_[static_cast<std::size_t>(key)]; }

    static constexpr std::size_t size() { return static_cast<std::size_t>(Key::count); }

    bool operator==(const Numbers &) const = default;

private:
    std::array<std::uint64_t, static_cast<std::size_t>(Key::count)> values_{};
};

using Figures = Numbers<Figure>;
using Holdings = Numbers<Holding>;

/// Returns the memory of an account, each byte counted once; page cache that it holds for others
/// included.
std::uint64_t held(const Holdings &account);
/// Computes TOTAL: see total_of().
std::uint64_t total(const Holdings &account);
/// The same with swap: memory grows, wherever the kernel puts it.
std::uint64_t total_and_swap(const Holdings &account);

/// Page cache of the machine, without what programs share.
std::uint64_t page_cache(const Figures &machine);
/// Returns the memory available to the driver, or MemAvailable where no module was loaded.
std::uint64_t obtainable(const Figures &machine);

/// A sample in memory. It is reused: assign to its members, so that they keep their memory.
struct Sample {
    struct Account {
        std::uint64_t id = 0; ///< the cgroup's
        std::string path;
        Holdings holdings;
    };

    std::int64_t time_ms = 0;   ///< time since the epoch
    std::int64_t uptime_ms = 0; ///< time since the machine started, sleep included
    Figures machine;
    std::vector<Account> accounts; ///< only the first count are current
    std::size_t count = 0;
};

/// A sample as it is stored: accounts by their number in the database.
struct State {
    std::int64_t clock_ms = 0; ///< the time less the machine's uptime
    Figures machine;
    std::map<std::uint32_t, Holdings> accounts;

    bool operator==(const State &) const = default;
};

/// Encodes the changes from the first state to the second; all of it if the first is empty.
std::string difference(const State &before, const State &now);

/// Makes it the second one. Throws Error where the text is none of difference()'s.
void add_difference(State &state, std::string_view difference);

} // namespace umacct::history
