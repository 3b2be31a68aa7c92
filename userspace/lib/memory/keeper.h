// SPDX-License-Identifier: GPL-2.0-or-later
/// Having so much free. These decide from readings; who asks them acts.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "lib/memory/preflight.h"

namespace umacct {

/// What to do next so that so much is free, from one reading to the next: page cache first,
/// as much of it as is missing; then compaction; then, for blocks that it could not make,
/// page cache and compaction again, as long as a quarter less is missing each time. Where few
/// blocks are left, these two change places.
class Refill {
public:
    enum class Action {
        nothing, ///< all is there
        reclaim,
        compact,
        give_up, ///< what is missing can't be had
    };

    struct Step {
        Action action = Action::nothing;
        std::uint64_t bytes = 0; ///< to reclaim
    };

    explicit Refill(const Need &need) : need_(need) {}

    Step next(const Zones &zones);

    /// What became of a step: whether the kernel gave back all it was asked for.
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
    std::uint64_t pages_left_ = 0; ///< of that
};

/// Keeps so much free, turn by turn: when to look, what to do, and when to let be, as what is
/// given back is wanted back at once.
class Keeper {
public:
    using Clock = std::chrono::steady_clock;

    enum class State {
        kept,   ///< all is free that shall be
        fills,  ///< something is missing, and being had
        yields, ///< others wait for memory, for what was given back
        lacks,  ///< something is missing that can't be had now
    };

    /// What is known at one time.
    struct Reading {
        Clock::time_point time;
        const Zones &zones;
        std::chrono::microseconds stalled{0}; ///< how long some task waited for memory, so far
        std::uint64_t refaults = 0;           ///< pages of cache that were wanted back, so far
    };

    struct Turn {
        State state = State::kept;
        Refill::Step step;                 ///< nothing, reclaim or compact
        std::chrono::milliseconds wait{0}; ///< before the next one
    };

    Keeper(std::uint64_t bytes, std::uint64_t block);

    Turn next(const Reading &reading);

    /// What became of a step of reclaim: how long it took, which is no one else's waiting.
    void reclaimed(bool all, std::uint64_t pages, std::chrono::microseconds took);

    /// What is kept free.
    const Need &kept() const { return kept_; }

private:
    /// Since when what is looked at together.
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
    std::chrono::milliseconds patience_; ///< until what can't be had is tried again
    std::chrono::milliseconds respite_;  ///< for others
    std::chrono::milliseconds interval_;
    std::uint64_t last_ = 0; ///< usable pages at the last look
};

} // namespace umacct
