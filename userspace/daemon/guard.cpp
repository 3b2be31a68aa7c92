// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/guard.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "lib/text.h"
#include "lib/units.h"

namespace umacct {

namespace {

using namespace std::chrono_literals;
using std::chrono::seconds;

/// Nobody takes more in a second: this decides how soon to look again.
constexpr std::uint64_t fastest = 16ULL << 30;

constexpr auto quickest = 50ms;
constexpr auto slowest = 1000ms;
/// Where pressure counts, which comes without a sign.
constexpr auto with_pressure = 100ms;
/// Who holds what, with nothing the matter.
constexpr auto look_interval = 10s;

/// How far back to look for who grew; the first that tells is it.
constexpr std::array windows{seconds(10), seconds(60), seconds(600), seconds(3600)};
/// What everybody held is known for so long.
constexpr auto values_kept = seconds(600);

/// Whoever gets there again so soon is treated as if it had not been over.
constexpr auto relapse = 60s;
/// A process that was killed gives back what it holds in this time, or something is wrong.
constexpr auto death_takes = 30s;

/// Below this, in a machine of any size, it is noise.
constexpr std::uint64_t noise = 16ULL << 20;

std::uint64_t without(std::uint64_t from, std::uint64_t what) {
    return from - std::min(from, what);
}

/// Follows how long something is so.
void since(std::optional<Guard::Time> &time, bool is, Guard::Time now) {
    if (!is)
        time.reset();
    else if (!time)
        time = now;
}

bool lasts(const std::optional<Guard::Time> &since, Guard::Time now, std::uint64_t ns) {
    return since && now - *since >= std::chrono::nanoseconds(ns);
}

bool is_below(std::string_view path, std::string_view above) {
    return above == "/" ||
           (path.starts_with(above) && path.size() > above.size() && path[above.size()] == '/');
}

} // namespace

Guard::Guard(GuardPolicy policy, std::uint64_t total, std::string self)
    : policy_(std::move(policy)),
      total_(total),
      floor_(policy_.floor ? policy_.floor->of(total) : 0),
      self_(std::move(self)) {}

std::uint64_t Guard::significant() const {
    return std::max(noise, total_ / 1024);
}

std::uint64_t Guard::much() const {
    return std::max(floor_ / 2, significant());
}

bool Guard::is_protected(std::string_view path) const {
    return path == self_ || (self_ != "/" && is_below(path, self_)) || policy_.protects(path);
}

bool Guard::read(const Reading &reading) {
    const Time now = reading.time;
    const bool is_raised = raised_from_ && reading.reserve == raised_to_;

    reading_ = reading;
    obtainable_ = without(reading.available, is_raised ? *raised_from_ : reading.reserve);
    follow_pressure(reading);

    const bool pressed = policy_.pressure && pressure_ >= *policy_.pressure;
    const bool relaxed = !policy_.pressure || pressure_ < *policy_.pressure / 2;
    since(low_since_, obtainable_ < floor_, now);
    since(short_since_, pressed || lasts(low_since_, now, policy_.for_ns), now);
    since(well_since_, relaxed && obtainable_ >= floor_ + floor_ / 8, now);
    due_ = now + interval();
    return now >= next_look_ || (short_since_ && (now >= step_at_ || reclaiming_)) ||
           (acting_ && lasts(well_since_, now, policy_.release_ns));
}

void Guard::follow_pressure(const Reading &reading) {
    const auto span = std::max<Duration>(std::chrono::nanoseconds(policy_.for_ns), 200ms);

    pressure_ = 0;
    if (!policy_.pressure || !reading.waited_us) {
        readings_.clear();
        return;
    }
    readings_.push_back(reading);
    while (readings_.size() > 2 && readings_[1].time <= reading.time - span)
        readings_.pop_front();

    const Duration passed = reading.time - readings_.front().time;
    if (passed < span)
        return;
    const std::chrono::microseconds waited(
        without(*reading.waited_us, *readings_.front().waited_us));
    pressure_ = std::min(100.0, 100 * std::chrono::duration<double>(waited) /
                                    std::chrono::duration<double>(passed));
}

std::vector<Guard::Action> Guard::decide(const std::vector<Holder> &holders) {
    const Time now = reading_->time;
    std::vector<Action> actions;

    if (acting_ && lasts(well_since_, now, policy_.release_ns))
        actions = release();
    else if (short_since_ && now >= step_at_)
        actions = step(holders);
    else if (short_since_ && reclaiming_ && touched(touched_.back().suspect.holder) != nullptr) {
        actions.push_back(action(GuardStep::reclaim, touched_.back().suspect, missing()));
        actions.back().again = true;
    }
    remember(holders);
    next_look_ = now + look_interval;
    return actions;
}

std::vector<Guard::Action> Guard::release() {
    std::vector<Action> actions;

    for (Touched &each : touched_) {
        if (!std::exchange(each.frozen, false))
            continue;
        actions.push_back(action(GuardStep::freeze, each.suspect, 0));
        // If it begins anew, it is frozen anew.
        each.next -= each.next > 0 ? 1 : 0;
    }
    if (raised_from_)
        actions.push_back(action(GuardStep::reserve, {}, *std::exchange(raised_from_, {})));
    for (Action &each : actions)
        each.undo = true;
    acting_ = false;
    reclaiming_ = false;
    // What comes now has nothing to do with how long the last step was given.
    step_at_ = {};
    if (reading_)
        released_ = reading_->time;
    return actions;
}

// --- whom ------------------------------------------------------------------------

void Guard::remember(const std::vector<Holder> &holders) {
    const Time now = reading_->time;
    std::map<std::string, Past> past;

    for (const Holder &holder : holders) {
        const auto known = past_.find(holder.path);
        const bool is_known = known != past_.end() && known->second.id == holder.id;

        if (!is_known && holder.held() < significant() / 4)
            continue;

        Past &its = past[holder.path] = is_known ? std::move(known->second) : Past{};
        const Past::At at{first_ ? Time::min() : now, holder.held(), holder.other};
        if (!is_known) {
            its.id = holder.id;
            its.born = at.time;
        }
        if (its.highs.empty() || at.held > its.highs.back().held)
            its.highs.push_back(at);
        while (its.highs.size() > 1 && its.highs[1].time <= now - windows.back())
            its.highs.pop_front();
        its.values.push_back(at);
        while (its.values.size() > 1 && its.values[1].time <= now - values_kept)
            its.values.pop_front();
    }
    past_ = std::move(past);
    first_ = false;
    obtainables_.emplace_back(now, obtainable_);
    while (obtainables_.size() > 1 && obtainables_[1].first <= now - windows.back())
        obtainables_.pop_front();
}

Guard::Past::At Guard::before(const Holder &holder, seconds window, bool beyond_highs) const {
    const auto known = past_.find(holder.path);
    const Time then = reading_->time - window;
    Past::At before;

    if (first_)
        return {then, holder.held(), holder.other};
    if (known == past_.end() || known->second.id != holder.id)
        return before;
    if (beyond_highs) {
        for (const Past::At &at : known->second.highs) {
            if (at.time <= then)
                before = at;
        }
        return before;
    }
    if (known->second.born > then)
        return before;
    // What it held then, too: the last before.
    const auto &values = known->second.values;
    const auto later = std::find_if(values.begin() + 1, values.end(),
                                    [&](const auto &at) { return at.time > then; });
    return *std::min_element(std::prev(later), values.end(),
                             [](const auto &a, const auto &b) { return a.held < b.held; });
}

Guard::Scored Guard::score(const Holder &holder, seconds window, bool beyond_highs) const {
    const Past::At was = before(holder, window, beyond_highs);
    Scored scored{.suspect = {.holder = holder, .within = window}};

    scored.suspect.grown = without(holder.held(), was.held);
    if (holder.soft) {
        // What the driver gives it below its soft limit is its own.
        scored.suspect.over_soft = without(holder.driver, *holder.soft);
        scored.score = scored.suspect.over_soft + without(holder.other, was.other);
    } else {
        scored.score = scored.suspect.grown;
    }
    return scored;
}

bool Guard::may_touch(const Scored &scored, const std::vector<Holder> &holders) const {
    const Holder &holder = scored.suspect.holder;
    const Touched *before = touched(holder);

    if (holder.path == "/" || (before != nullptr && before->killed) || is_protected(holder.path) ||
        is_below(self_, holder.path))
        return false;
    // All that is in a group only if all of it is new.
    if (!holder.whole && scored.suspect.grown < holder.held() - holder.held() / 8)
        return false;
    return std::ranges::none_of(holders, [&](const Holder &each) {
        return is_below(each.path, holder.path) && is_protected(each.path);
    });
}

std::optional<Guard::Scored> Guard::best(const std::vector<Holder> &holders, seconds window,
                                         bool beyond_highs) const {
    std::vector<Scored> all;
    const Scored *best = nullptr;

    all.reserve(holders.size());
    for (const Holder &holder : holders)
        all.push_back(score(holder, window, beyond_highs));
    for (const Scored &each : all) {
        if (each.score >= significant() && (best == nullptr || each.score > best->score) &&
            may_touch(each, holders))
            best = &each;
    }
    if (best == nullptr)
        return std::nullopt;
    // Not more of them than it takes.
    for (bool found = true; found;) {
        found = false;
        for (const Scored &each : all) {
            if (is_below(each.suspect.holder.path, best->suspect.holder.path) &&
                each.score >= best->score / 4 * 3 && may_touch(each, holders)) {
                best = &each;
                found = true;
            }
        }
    }
    return *best;
}

std::uint64_t Guard::lost(seconds window) const {
    std::vector<std::uint64_t> before;

    for (const auto &[time, obtainable] : obtainables_) {
        if (before.empty() || time <= reading_->time - window)
            before.push_back(obtainable);
    }
    if (before.empty())
        return 0;

    const auto usual = before.begin() + static_cast<std::ptrdiff_t>(before.size() / 10);
    std::nth_element(before.begin(), usual, before.end());
    return without(*usual, obtainable_);
}

std::optional<Suspect> Guard::choose(const std::vector<Holder> &holders) const {
    // Whose doing it is that so much is gone: the sooner it came the plainer it is.
    for (const seconds window : windows) {
        const std::uint64_t gone = lost(window);
        const auto one = gone >= much() ? best(holders, window, true) : std::nullopt;

        if (one && one->score >= gone / 2)
            return one->suspect;
    }
    // Nobody held more than ever; but somebody may have taken much of it anew.
    for (const seconds window : windows) {
        const auto one = window <= values_kept ? best(holders, window, false) : std::nullopt;

        if (one && one->score >= much() && lost(window) >= much())
            return one->suspect;
    }
    // Little by little, or many at once.
    for (const bool beyond_highs : {true, false}) {
        if (const auto one =
                best(holders, beyond_highs ? windows.back() : values_kept, beyond_highs))
            return one->suspect;
    }
    return std::nullopt;
}

// --- what ------------------------------------------------------------------------

const Guard::Touched *Guard::touched(const Holder &holder) const {
    const auto found = std::ranges::find_if(touched_, [&](const Touched &each) {
        return each.suspect.holder.path == holder.path && each.suspect.holder.id == holder.id;
    });

    return found == touched_.end() ? nullptr : &*found;
}

bool Guard::is_dying(const std::vector<Holder> &holders) const {
    return std::ranges::any_of(holders, [&](const Holder &holder) {
        const Touched *it = touched(holder);

        return it != nullptr && it->killed && reading_->time - it->time < death_takes &&
               holder.held() > it->suspect.holder.held() / 2;
    });
}

std::optional<Suspect> Guard::suspect(const std::vector<Holder> &holders) const {
    if (touched_.empty() || touched_.back().killed)
        return choose(holders);

    // It stays with one, unless memory goes on falling and another is to blame for that.
    const Suspect &last = touched_.back().suspect;
    const auto still = std::ranges::find_if(holders, [&](const Holder &each) {
        return each.path == last.holder.path && each.id == last.holder.id;
    });
    if (still == holders.end())
        return choose(holders);
    const std::uint64_t fell = without(obtainable_then_, obtainable_);
    if (fell >= much()) {
        std::vector<Holder> others;

        std::ranges::copy_if(holders, std::back_inserter(others),
                             [this](const Holder &each) { return touched(each) == nullptr; });
        const auto another = best(others, windows.front(), true);
        if (another && another->score >= std::max(much(), fell / 2))
            return another->suspect;
        // Of many that are new, none need have taken much.
        std::erase_if(
            others, [this](const Holder &each) { return before(each, windows[1], true).held > 0; });
        if (const auto newcomer = best(others, windows[1], true))
            return newcomer->suspect;
    }
    Suspect again = last;
    again.grown = without(again.grown + still->held(), again.holder.held());
    again.holder = *still;
    return again;
}

std::vector<Guard::Action> Guard::step(const std::vector<Holder> &holders) {
    const Time now = reading_->time;
    std::vector<Action> actions;

    if (!acting_ && !(released_ && now - *released_ < relapse))
        touched_.clear();
    // Another may be the one this time.
    if (!acting_ && !touched_.empty() && !touched_.back().killed) {
        const auto now_to_blame = choose(holders);

        if (now_to_blame && touched(now_to_blame->holder) == nullptr)
            touched_.push_back({.suspect = *now_to_blame, .time = now});
    }
    acting_ = true;
    reclaiming_ = false;
    if (is_dying(holders)) {
        step_at_ = now + quickest;
        return actions;
    }

    const auto about = suspect(holders);
    const Touched *before = about ? touched(about->holder) : nullptr;
    for (std::size_t i = before != nullptr ? before->next : 0; i < policy_.steps.size(); ++i) {
        const GuardStep step = policy_.steps[i];

        if (step == GuardStep::reserve ? raised_from_.has_value() : !about)
            continue;
        actions.push_back(step == GuardStep::reserve ? raise_reserve() : take(step, *about));
        if (about)
            touch(*about, i);
        break;
    }
    step_at_ = now + std::chrono::nanoseconds(policy_.wait_ns);
    if (!actions.empty())
        obtainable_then_ = obtainable_;
    return actions;
}

void Guard::touch(const Suspect &about, std::size_t index) {
    const GuardStep step = policy_.steps[index];
    // The one whom it is about is the last.
    auto it = std::ranges::find_if(touched_, [&](const Touched &each) {
        return each.suspect.holder.path == about.holder.path &&
               each.suspect.holder.id == about.holder.id;
    });

    if (it == touched_.end())
        it = touched_.insert(it, Touched{});
    std::rotate(it, it + 1, touched_.end());
    Touched &its = touched_.back();
    its.suspect = about;
    its.next = index + 1;
    its.time = reading_->time;
    its.frozen = (its.frozen && step != GuardStep::signal) || step == GuardStep::freeze;
    its.killed = step == GuardStep::kill;
}

Guard::Action Guard::take(GuardStep step, Suspect suspect) {
    reclaiming_ = step == GuardStep::reclaim;
    return action(step, std::move(suspect), reclaiming_ ? missing() : 0);
}

Guard::Action Guard::raise_reserve() {
    raised_from_ = reading_->reserve;
    // While less than the floor is left, that refuses all; with more of it, nothing.
    raised_to_ = std::min(reading_->reserve + (floor_ > 0 ? floor_ : obtainable_), total_);
    return action(GuardStep::reserve, {}, raised_to_);
}

std::uint64_t Guard::missing() const {
    return std::max(without(floor_ + floor_ / 8, obtainable_), significant());
}

Guard::Action Guard::action(GuardStep step, std::optional<Suspect> suspect,
                            std::uint64_t bytes) const {
    Action action{.step = step,
                  .suspect = std::move(suspect),
                  .bytes = bytes,
                  .obtainable = obtainable_,
                  .floor = floor_,
                  .pressure = pressure_};
    const auto from = short_since_ ? (low_since_ ? low_since_ : short_since_) : well_since_;

    if (reading_ && from)
        action.for_ = std::chrono::duration_cast<std::chrono::milliseconds>(reading_->time - *from);
    return action;
}

Guard::Duration Guard::interval() const {
    const auto most = policy_.pressure ? with_pressure : slowest;

    if (low_since_ || short_since_ || acting_)
        return quickest;
    if (floor_ == 0)
        return most;
    const std::chrono::duration<double> until(static_cast<double>(obtainable_ - floor_) /
                                              static_cast<double>(fastest));
    return std::clamp<Duration>(std::chrono::duration_cast<Duration>(until), quickest, most);
}

std::string Guard::Action::text() const {
    const auto verb = [this]() -> std::string {
        switch (step) {
        case GuardStep::reclaim:
            return fmt::format("reclaim {} from", format_size(bytes));
        case GuardStep::reserve:
            return fmt::format("set the reserve {} {}", undo ? "back to" : "to",
                               format_size(bytes));
        case GuardStep::freeze:
            return undo ? "thaw" : "freeze";
        case GuardStep::signal:
            return "ask to end";
        case GuardStep::kill:
            break;
        }
        return "kill";
    };
    std::string text = verb();

    if (suspect)
        text += ' ' + printable(suspect->holder.path);
    text += fmt::format(": {} could be had", format_size(obtainable));
    if (floor > 0)
        text += fmt::format(", floor {}", format_size(floor));
    if (pressure > 0)
        text += fmt::format(", pressure {}", format_percent(pressure));
    text += fmt::format(", for {} ms", for_.count());
    if (!suspect || undo)
        return text;
    text += fmt::format("; it holds {} through the driver and {} else",
                        format_size(suspect->holder.driver), format_size(suspect->holder.other));
    if (suspect->grown > 0)
        text += fmt::format(", {} more than until {} s ago", format_size(suspect->grown),
                            suspect->within.count());
    if (suspect->over_soft > 0)
        text += fmt::format(", {} above its soft limit", format_size(suspect->over_soft));
    return text;
}

} // namespace umacct
