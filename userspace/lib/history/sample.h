// SPDX-License-Identifier: GPL-2.0-or-later
/// What is recorded at one moment, and how little of it is written: what differs from the moment
/// before.
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
    obtainable, ///< that the driver could have; 0 where the module isn't loaded
    buffers,
    cached,
    reclaimable, ///< KReclaimable
    shared,
    swap_total,
    swap_free,
    usage, ///< taken through the driver, by all accounts
    charged,
    driver, ///< that the driver took for itself
    managed,
    metadata,
    untracked,
    pools,
    reserve,
    some_us, ///< how long some task waited for memory so far
    full_us, ///< how long all of them did
    dropped, ///< samples that had no room, so far
    count
};

/// A figure of an account, in bytes where its name says nothing else. As above.
enum class Holding : std::uint8_t {
    driver, ///< taken through the driver
    charged,
    current, ///< memory.current
    cache,   ///< of current, page cache and slab that can be taken back; 0 of a small account
    hard,    ///< UMACCT_UNLIMITED for none
    soft,
    refusals, ///< allocations that umacct refused so far
    failures, ///< those that the driver failed
    count
};

/// As JSON and CSV have them, with their unit.
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

/// What an account holds, and nothing of it twice; with page cache, that it holds for others.
std::uint64_t held(const Holdings &account);
/// The same but for what the kernel can take back at any time.
std::uint64_t locked(const Holdings &account);

/// Page cache of the machine, without what programs share.
std::uint64_t page_cache(const Figures &machine);
/// That the driver could have; MemAvailable where no module told.
std::uint64_t obtainable(const Figures &machine);

/// As it is taken. It is used again and again: assign to its members, so that their memory stays.
struct Sample {
    struct Account {
        std::uint64_t id = 0; ///< the cgroup's
        std::string path;
        Holdings holdings;
    };

    std::int64_t time_ms = 0;   ///< since the epoch
    std::int64_t uptime_ms = 0; ///< since the machine started, also while it slept
    Figures machine;
    std::vector<Account> accounts; ///< the first of them are of now
    std::size_t count = 0;         ///< so many
};

/// As it is kept: accounts by the number that the database has for them.
struct State {
    std::int64_t clock_ms = 0; ///< the time less the machine's uptime
    Figures machine;
    std::map<std::uint32_t, Holdings> accounts;

    bool operator==(const State &) const = default;
};

/// What makes the first state the second; of an empty one, all of it.
std::string difference(const State &before, const State &now);

/// Makes it the second one. Throws Error where the text is none of difference()'s.
void add_difference(State &state, std::string_view difference);

} // namespace umacct::history
