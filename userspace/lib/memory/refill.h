// SPDX-License-Identifier: GPL-2.0-or-later
/// What to do next so that so much is free, from one reading to the next: page cache first,
/// as much of it as is missing; then compaction; then, for blocks that it could not make,
/// page cache and compaction again, as long as a quarter less is missing each time. Where few
/// blocks are left, these two change places. It decides; who asks it acts.
#pragma once

#include <cstdint>

#include "lib/memory/preflight.h"

namespace umacct {

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

} // namespace umacct
