// SPDX-License-Identifier: GPL-2.0-or-later
/// Keeps so much free, turn by turn: when to look, what to do, and when to let be, as what is
/// given back is wanted back at once. It decides from readings; who asks it acts.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "lib/memory/refill.h"

namespace umacct {

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
