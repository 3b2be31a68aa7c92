// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/history/sample.h"

#include "lib/arithmetic.h"
#include "lib/error.h"
#include "lib/machine.h"

namespace umacct::history {

namespace {

/// Nearly all numbers are of whole pages.
constexpr std::int64_t page = 4096;
/// A difference of 0, which is never written: the number itself follows.
constexpr std::uint64_t escape = 1;

void put(std::string &to, std::uint64_t number) {
    for (; number >= 0x80; number >>= 7U)
        to.push_back(static_cast<char>(number | 0x80U));
    to.push_back(static_cast<char>(number));
}

std::uint64_t take(std::string_view &from) {
    std::uint64_t number = 0;

    for (unsigned int shift = 0; shift < 64 && !from.empty(); shift += 7) {
        const auto byte = static_cast<unsigned char>(from.front());

        from.remove_prefix(1);
        number |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
        if ((byte & 0x80U) == 0)
            return number;
    }
    throw Error(Failure::failed, "cannot read a record of the history: it is damaged");
}

/// Small for a small difference, whatever its sign.
std::uint64_t folded(std::int64_t difference) {
    return (static_cast<std::uint64_t>(difference) << 1U) ^
           static_cast<std::uint64_t>(difference >> 63U);
}

std::int64_t unfolded(std::uint64_t number) {
    return static_cast<std::int64_t>((number >> 1U) ^ (~(number & 1U) + 1));
}

/// Writes a difference in pages if it is a multiple of the page size; the lowest bit is the unit.
void put_difference(std::string &to, std::int64_t difference) {
    constexpr std::int64_t most = INT64_MAX / 4;

    if (difference % page == 0)
        put(to, folded(difference / page) << 1U);
    else if (difference > -most && difference < most)
        put(to, (folded(difference) << 1U) | 1U);
    else {
        put(to, escape);
        put(to, static_cast<std::uint64_t>(difference));
    }
}

std::int64_t take_difference(std::string_view &from) {
    const std::uint64_t number = take(from);

    if (number == escape)
        return static_cast<std::int64_t>(take(from));
    return (number & 1U) == 0 ? unfolded(number >> 1U) * page : unfolded(number >> 1U);
}

/// Writes which of the numbers differ, and by how much.
template <class Key>
void put_numbers(std::string &to, const Numbers<Key> &before, const Numbers<Key> &now) {
    std::uint64_t which = 0;

    for (std::size_t i = 0; i < Numbers<Key>::size(); ++i)
        which |= (before[Key(i)] == now[Key(i)] ? 0ULL : 1ULL) << i;
    put(to, which);
    for (std::size_t i = 0; i < Numbers<Key>::size(); ++i) {
        if ((which >> i & 1U) != 0)
            put_difference(to, static_cast<std::int64_t>(now[Key(i)] - before[Key(i)]));
    }
}

template <class Key>
void take_numbers(std::string_view &from, Numbers<Key> &numbers) {
    const std::uint64_t which = take(from);

    for (std::size_t i = 0; i < 64; ++i) {
        if ((which >> i & 1U) == 0)
            continue;
        const auto difference = static_cast<std::uint64_t>(take_difference(from));
        // Numbers of a later umacct have no name here: skipped.
        if (i < Numbers<Key>::size())
            numbers[Key(i)] += difference;
    }
}

/// The byte before an account's number.
enum class Mark : std::uint64_t { end, changed, gone };

} // namespace

const char *key_of(Figure figure) {
    static constexpr std::array keys{
        "memory_total_bytes", "memory_free_bytes", "memory_available_bytes",
        "obtainable_bytes",   "buffers_bytes",     "cached_bytes",
        "kreclaimable_bytes", "shared_bytes",      "swap_total_bytes",
        "swap_free_bytes",    "usage_bytes",       "charged_bytes",
        "driver_usage_bytes", "managed_bytes",     "metadata_bytes",
        "untracked_bytes",    "pools_bytes",       "reserve_bytes",
        "pressure_some_us",   "pressure_full_us",  "dropped_samples",
        "driver_complaints"};

    static_assert(keys.size() == Figures::size());
    return keys[static_cast<std::size_t>(figure)];
}

const char *key_of(Holding holding) {
    static constexpr std::array keys{"usage_bytes", "charged_bytes", "memory_current_bytes",
                                     "cache_bytes", "hard_bytes",    "soft_bytes",
                                     "refusals",    "failures",      "swap_bytes"};

    static_assert(keys.size() == Holdings::size());
    return keys[static_cast<std::size_t>(holding)];
}

std::uint64_t held(const Holdings &account) {
    return account[Holding::driver] + without(account[Holding::current], account[Holding::charged]);
}

std::uint64_t total(const Holdings &account) {
    return total_of(account[Holding::driver], account[Holding::charged], account[Holding::current],
                    account[Holding::cache]);
}

std::uint64_t total_and_swap(const Holdings &account) {
    return total(account) + account[Holding::swap];
}

std::uint64_t page_cache(const Figures &machine) {
    return without(machine[Figure::buffers] + machine[Figure::cached], machine[Figure::shared]);
}

std::uint64_t obtainable(const Figures &machine) {
    return machine[Figure::obtainable] != 0 ? machine[Figure::obtainable]
                                            : machine[Figure::available];
}

std::string difference(const State &before, const State &now) {
    static const Holdings nothing;
    std::string text;
    std::uint32_t last = 0;
    const auto put_key = [&](Mark mark, std::uint32_t key) {
        put(text, static_cast<std::uint64_t>(mark));
        put(text, key - last);
        last = key;
    };

    put(text, folded(now.clock_ms - before.clock_ms));
    put_numbers(text, before.machine, now.machine);
    auto old = before.accounts.begin();
    for (auto it = now.accounts.begin();
         it != now.accounts.end() || old != before.accounts.end();) {
        if (it == now.accounts.end() || (old != before.accounts.end() && old->first < it->first)) {
            put_key(Mark::gone, old->first);
            ++old;
            continue;
        }
        const bool known = old != before.accounts.end() && old->first == it->first;
        if (!known || old->second != it->second) {
            put_key(Mark::changed, it->first);
            put_numbers(text, known ? old->second : nothing, it->second);
        }
        if (known)
            ++old;
        ++it;
    }
    put(text, static_cast<std::uint64_t>(Mark::end));
    return text;
}

void add_difference(State &state, std::string_view difference) {
    std::uint32_t key = 0;

    state.clock_ms += unfolded(take(difference));
    take_numbers(difference, state.machine);
    for (Mark mark{}; (mark = Mark(take(difference))) != Mark::end;) {
        key += static_cast<std::uint32_t>(take(difference));
        if (mark == Mark::gone)
            state.accounts.erase(key);
        else
            take_numbers(difference, state.accounts[key]);
    }
}

} // namespace umacct::history
