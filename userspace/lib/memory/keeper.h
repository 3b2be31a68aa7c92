// SPDX-License-Identifier: GPL-2.0-or-later
/// Keeping memory free. These classes decide from readings; their caller acts.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "lib/memory/preflight.h"

namespace umacct {

/// Decides the next step to a given amount of free memory, from one reading to the next: first page
/// cache, as much as is missing; then compaction; then, for blocks that it could not make, page
/// cache and compaction again, as long as a quarter less is missing each time. With few blocks
/// left, these two change places.
class Refill {
public:
    enum class Action {
        nothing, ///< all is there
        reclaim,
        compact,
        give_up, ///< the rest can't be freed
    };

    struct Step {
        Action action = Action::nothing;
        std::uint64_t bytes = 0; ///< amount to reclaim
    };

    explicit Refill(const Need &need) : need_(need) {}

    Step next(const Zones &zones);

    /// Records the result of a step: whether the kernel reclaimed all of it.
    void reclaimed(bool all) {
        exhausted_ = !all;
        compacted_ &= all;
    }

    /// Begins again: what could not be had then perhaps can now.
    void restart() { *this = Refill(need_); }

private:
    Need need_;
    bool exhausted_ = false; ///< there is no more page cache
    bool compacted_ = false;
    bool again_ = false;           ///< compacted, and page cache is given back for blocks
    std::uint64_t lacked_ = 0;     ///< blocks, when that began
    std::uint64_t pages_left_ = 0; ///< remaining pages of that round
};

/// Keeps an amount free, turn by turn: when to look, what to do, and when to pause, because memory
/// that is given back is wanted back at once.
class Keeper {
public:
    using Clock = std::chrono::steady_clock;

    enum class State {
        kept,   ///< all is free that shall be
        fills,  ///< something is missing, and being had
        yields, ///< others wait for memory, for what was given back
        lacks,  ///< something is missing that can't be had now
    };

    /// One reading of the machine.
    struct Reading {
        Clock::time_point time;
        const Zones &zones;
        std::chrono::microseconds stalled{0}; ///< how long some task waited for memory, so far
        std::uint64_t refaults = 0;           ///< pages of cache that were wanted back, so far
    };

    struct Turn {
        State state = State::kept;
        Refill::Step step;                 ///< nothing, reclaim or compact
        std::chrono::milliseconds wait{0}; ///< time until the next turn
    };

    Keeper(std::uint64_t bytes, std::uint64_t block);

    Turn next(const Reading &reading);

    /// Records the result of a reclaim and its duration, which must not count as others' waiting.
    void reclaimed(bool all, std::uint64_t pages, std::chrono::microseconds took);

    /// Whether something was missing at the last turn, and is being had.
    bool fills() const { return fills_; }

    /// Returns the amount that is kept free.
    const Need &kept() const { return kept_; }

private:
    /// Start values of the period that is judged as a whole.
    struct Window {
        Clock::time_point since;
        std::chrono::microseconds stalled{0};
        std::chrono::microseconds own{0};
        std::uint64_t refaults = 0;
        std::uint64_t reclaimed = 0;
    };

    bool thrashes(const Reading &reading);
    std::chrono::milliseconds calm(const Zones &zones);

    Need kept_;
    Refill refill_;
    bool fills_ = false;
    std::optional<Window> window_;
    std::optional<Clock::time_point> retry_;
    std::uint64_t lacked_ = 0;           ///< how many blocks there were when it gave up
    std::chrono::milliseconds patience_; ///< time until the next attempt to free the rest
    std::chrono::milliseconds respite_;  ///< pause after others had to wait
    std::chrono::milliseconds interval_;
    std::uint64_t last_ = 0; ///< usable pages at the last look
};

} // namespace umacct
