// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/memory/keeper.h"

#include <algorithm>

#include "lib/arithmetic.h"

namespace umacct {

namespace {

using namespace std::chrono_literals;

/// So little at a time that who looks between two steps sees in time that it is enough.
constexpr std::uint64_t most_at_once = 32ULL << 20;

/// It fills a little more than is kept, so that it needn't begin anew for every page.
constexpr std::uint64_t slack_share = 64;

constexpr auto quick_look = 10ms;
constexpr auto calm_look = 100ms;
constexpr auto distant_look = 1000ms;
/// The largest share of a machine's memory that programs may have.
constexpr std::uint64_t bytes_per_ms = 20ULL << 20;

constexpr auto first_patience = 1000ms;
constexpr std::chrono::milliseconds most_patience_for_pages = 5s;
constexpr std::chrono::milliseconds most_patience_for_blocks = 5min;
constexpr std::uint64_t worse_share = 16; ///< loss of blocks at which it is tried at once

constexpr auto first_respite = 1000ms;
constexpr std::chrono::milliseconds most_respite = 1min;

constexpr auto window_length = 500ms;
constexpr int stalled_percent = 10;
constexpr std::uint64_t refault_share = 4; ///< a quarter of the reclaimed memory

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
    // blocks of it may be whole. All of it is four times what was missing, at the most. Where
    // hardly any is missing, so little has no whole block in it: it is some more.
    if (!again_ || (pages_left_ == 0 && missing.blocks * 4 <= lacked_ * 3)) {
        again_ = true;
        lacked_ = missing.blocks;
        pages_left_ = std::max(missing.blocks << need_.order, most_at_once / page_size());
    }
    if (pages_left_ > 0 && !exhausted_) {
        const Step step = reclaim(std::min(pages_left_, missing.blocks << need_.order));

        pages_left_ -= std::min(pages_left_, step.bytes / page_size());
        // Reclaimed pages lie beside pages that can still move.
        compacted_ = pages_left_ > 0;
        return step;
    }
    return {.action = Action::give_up};
}

Keeper::Keeper(std::uint64_t bytes, std::uint64_t block)
    : kept_(need_of(bytes, block)),
      refill_(need_of(bytes + bytes / slack_share, block)),
      patience_(first_patience),
      respite_(first_respite),
      interval_(calm_look) {}

Keeper::Turn Keeper::next(const Reading &reading) {
    const Shortfall missing = shortfall(kept_, reading.zones);

    if (!fills_ && missing.none()) {
        window_.reset();
        return {.state = State::kept, .step = {}, .wait = calm(reading.zones)};
    }
    fills_ = true;
    if (!window_)
        window_ = {.since = reading.time, .stalled = reading.stalled, .refaults = reading.refaults};
    if (thrashes(reading)) {
        const auto wait = respite_;

        respite_ = std::min(respite_ * 2, most_respite);
        window_.reset();
        return {.state = State::yields, .step = {}, .wait = wait};
    }

    const Refill::Step step = refill_.next(reading.zones);
    switch (step.action) {
    case Refill::Action::nothing:
        fills_ = false;
        retry_.reset();
        patience_ = first_patience;
        last_ = reading.zones.usable();
        return {.state = State::kept, .step = {}, .wait = quick_look};
    case Refill::Action::reclaim:
    case Refill::Action::compact:
        return {.state = State::fills, .step = step, .wait = 0ms};
    case Refill::Action::give_up:
        break;
    }
    const std::uint64_t blocks = reading.zones.usable_blocks(kept_.order);
    if (!retry_) {
        retry_ = reading.time + patience_;
        lacked_ = blocks;
    }
    const bool late = *retry_ <= reading.time;
    // Blocks that could not be made for these may be for those that were taken since.
    if (late || blocks + kept_.blocks / worse_share < lacked_) {
        retry_.reset();
        if (late)
            patience_ = std::min(patience_ * 2, missing.pages > 0 ? most_patience_for_pages
                                                                  : most_patience_for_blocks);
        refill_.restart();
        fills_ = !missing.none();
    }
    return {.state = missing.none() ? State::kept : State::lacks,
            .step = {},
            .wait = calm(reading.zones)};
}

void Keeper::reclaimed(bool all, std::uint64_t pages, std::chrono::microseconds took) {
    refill_.reclaimed(all);
    if (window_) {
        window_->own += took;
        window_->reclaimed += pages;
    }
}

/// Others wait, and what they wait for is what was given back.
bool Keeper::thrashes(const Reading &reading) {
    const auto length = reading.time - window_->since;

    if (length < window_length || window_->reclaimed == 0)
        return false;
    const auto stalled = reading.stalled - window_->stalled - window_->own;
    const std::uint64_t refaults = reading.refaults - window_->refaults;
    const bool result =
        stalled * 100 >= length * stalled_percent && refaults * refault_share >= window_->reclaimed;

    window_ = {.since = reading.time, .stalled = reading.stalled, .refaults = reading.refaults};
    if (!result)
        respite_ = first_respite;
    return result;
}

/// Sooner while memory is being taken; later where much more is free than is kept.
std::chrono::milliseconds Keeper::calm(const Zones &zones) {
    const std::uint64_t usable = zones.usable();
    const bool taken = last_ > usable && last_ - usable > kept_.pages / slack_share;
    const std::uint64_t spare = without(usable, kept_.pages) * page_size();
    const auto reach = std::clamp<std::chrono::milliseconds>(
        std::chrono::milliseconds(spare / bytes_per_ms), calm_look, distant_look);

    last_ = usable;
    interval_ = taken ? quick_look : std::min(interval_ * 2, reach);
    return interval_;
}

} // namespace umacct
