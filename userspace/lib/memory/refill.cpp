// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/memory/refill.h"

#include <algorithm>

namespace umacct {

namespace {

/// So little at a time that who looks between two steps sees in time that it is enough.
constexpr std::uint64_t most_at_once = 32ULL << 20;

} // namespace

Refill::Step Refill::next(const Zones &zones) {
    const Shortfall missing = shortfall(need_, zones);
    const auto reclaim = [](std::uint64_t pages) {
        return Step{.action = Action::reclaim,
                    .bytes = std::min(pages * page_size(), most_at_once)};
    };

    if (missing.none()) {
        restart();
        return {};
    }
    if (missing.pages > 0 && !exhausted_)
        return reclaim(missing.pages);
    if (missing.blocks == 0)
        return {.action = Action::give_up};
    // Compaction takes its time: where little is left, page cache is given back first, of
    // which whole blocks come free.
    const bool little = missing.blocks * 2 > need_.blocks;
    if (!compacted_ && (!little || again_ || exhausted_)) {
        compacted_ = true;
        return {.action = Action::compact};
    }
    // Once more as long as it helps by a quarter: what is given back lies where it lay, and few
    // blocks of it may be whole. All of it is four times what was missing, at the most.
    if (!again_ || (pages_left_ == 0 && missing.blocks * 4 <= lacked_ * 3)) {
        again_ = true;
        lacked_ = missing.blocks;
        pages_left_ = missing.blocks << need_.order;
    }
    if (pages_left_ > 0 && !exhausted_) {
        const Step step = reclaim(std::min(pages_left_, missing.blocks << need_.order));

        pages_left_ -= std::min(pages_left_, step.bytes / page_size());
        // What was given back lies beside what may still move.
        compacted_ = pages_left_ > 0;
        return step;
    }
    return {.action = Action::give_up};
}

} // namespace umacct
