// SPDX-License-Identifier: GPL-2.0-or-later
#include "guard/guard.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "lib/arithmetic.h"
#include "lib/host/cgroup_tree.h"
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
/// Who holds what, with nothing the matter, and where there is less than twice the floor. The
/// first varies by chance, so that no service's own rhythm hides its highs.
constexpr std::chrono::milliseconds look_least = 3s;
constexpr std::chrono::milliseconds look_most = 7s;
constexpr auto look_near = 2s;

/// Growth counts for so long; of a guard that is younger, for half of its life.
constexpr auto longest_window = 1200s;
/// Who took much in this time comes before all others.
constexpr auto sudden_window = 10s;
constexpr auto slot_length = 5s;
constexpr auto half_an_hour = 1800s;

/// Where the policy says nothing of pressure: it is told of tasks that wait for half of this time.
constexpr double usual_strain = 50;
constexpr auto usual_strain_time = 60s;
/// Of memory that is there, so much is no want of it.
constexpr std::uint64_t plenty_share = 8;
/// That nobody is to blame is told again.
constexpr auto told_again_after = 600s;

/// A machine that gets there again so soon is treated as if it had not been over.
constexpr auto relapse = 60s;
/// A process that was killed gives back what it holds in this time, or something is wrong.
constexpr auto death_takes = 30s;
/// Once no process is in it any more, memory comes back without a longer pause.
constexpr auto burial_takes = 2s;

/// Below this, in a machine of any size, it is noise.
constexpr std::uint64_t noise = 16ULL << 20;

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

} // namespace

Guard::Guard(GuardPolicy policy, std::uint64_t total, std::string self)
    : policy_(std::move(policy)),
      total_(total),
      floor_(policy_.floor ? policy_.floor->of(total) : 0),
      self_(std::move(self)) {}

std::uint64_t Guard::much() const {
    return std::max({noise, total_ / 1024, floor_ / 2});
}

bool Guard::is_protected(std::string_view path) const {
    return path == self_ || (self_ != "/" && is_below(path, self_)) || policy_.protects(path);
}

bool Guard::read(const Reading &reading) {
    const Time now = reading.time;
    const bool is_raised = raised_from_ && reading.reserve == raised_to_;

    reading_ = reading;
    obtainable_ = without(reading.available, is_raised ? *raised_from_ : reading.reserve);
    if (obtainable_ >= most_obtainable_ + noise) {
        most_obtainable_ = obtainable_;
        rose_ = now;
    }
    follow_pressure(reading);

    const bool pressed = policy_.pressure && pressure_ >= *policy_.pressure;
    const bool relaxed = !policy_.pressure || pressure_ < *policy_.pressure / 2;
    since(low_since_, obtainable_ < floor_, now);
    since(strained_since_,
          !low_since_ && obtainable_ >= total_ / plenty_share && reading.waited_us &&
              pressure_ >= policy_.pressure.value_or(usual_strain),
          now);
    if (!low_since_ && !pressed && !strained_since_)
        told_nobody_.reset();
    since(short_since_, pressed || lasts(low_since_, now, policy_.for_ns), now);
    since(well_since_, relaxed && obtainable_ >= floor_ + floor_ / 8, now);
    due_ = now + interval();
    return now >= next_look_ || (!short_since_ && is_strained() && may_tell_nobody()) ||
           (short_since_ && (now >= step_at_ || reclaiming_)) ||
           (acting_ && lasts(well_since_, now, policy_.release_ns));
}

bool Guard::is_strained() const {
    return strained_since_ &&
           reading_->time - *strained_since_ >=
               (policy_.pressure ? Duration(std::chrono::nanoseconds(policy_.for_ns))
                                 : Duration(usual_strain_time));
}

bool Guard::may_tell_nobody() const {
    return !told_nobody_ || reading_->time - *told_nobody_ >= told_again_after;
}

Guard::Action Guard::tell_nobody() {
    Action told = action(GuardStep::reclaim, {}, 0);

    told.nobody = true;
    told.strained = strained_since_.has_value();
    if (told.strained)
        told.for_ = std::chrono::duration_cast<std::chrono::milliseconds>(reading_->time -
                                                                          *strained_since_);
    told_nobody_ = reading_->time;
    return told;
}

void Guard::follow_pressure(const Reading &reading) {
    const auto span = std::max<Duration>(std::chrono::nanoseconds(policy_.for_ns), 200ms);

    pressure_ = 0;
    if (!reading.waited_us) {
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
    else if (short_since_ && reclaiming_ && touched(touched_.back().suspect.holder.id) != nullptr) {
        actions.push_back(action(GuardStep::reclaim, touched_.back().suspect, missing()));
        actions.back().again = true;
    } else if (!short_since_ && is_strained() && may_tell_nobody()) {
        actions.push_back(tell_nobody());
    }
    remember(holders);
    std::uniform_int_distribution<std::int64_t> spread(look_least.count(), look_most.count());
    next_look_ = now + (obtainable_ < 2 * floor_ ? std::chrono::milliseconds(look_near)
                                                 : std::chrono::milliseconds(spread(chance_)));
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
    const auto raised_from = std::exchange(raised_from_, {});
    // A reserve that a person or a policy set since is kept. In a dry run none was ever raised.
    if (raised_from && (policy_.dry_run || reading_->reserve == raised_to_))
        actions.push_back(action(GuardStep::reserve, {}, *raised_from));
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
    const bool turn = first_look_ && now - half_hour_ >= half_an_hour;
    std::unordered_map<std::uint64_t, Past> past;

    for (const Holder &holder : holders) {
        const auto known = past_.find(holder.id);

        // Who holds little is as good as new.
        if (known == past_.end() && holder.held() < noise / 4)
            continue;

        Past &its = past[holder.id] = known == past_.end() ? Past{} : std::move(known->second);
        const Past::Slot most{now, holder.held(), holder.other};
        const auto keep_most = [](Past::Slot &slot, const Past::Slot &other) {
            slot.held = std::max(slot.held, other.held);
            slot.other = std::max(slot.other, other.other);
        };
        if (known == past_.end() && !first_look_)
            its.older = most; // as long as anybody knows
        if (its.slots.empty() || now - its.slots.back().time >= slot_length)
            its.slots.push_back(most);
        else
            keep_most(its.slots.back(), most);
        while (its.slots.front().time + slot_length <= now - longest_window) {
            keep_most(its.older, its.slots.front());
            its.slots.pop_front();
        }
        if (turn) {
            its.oldest = its.older;
            its.older = {};
        }
    }
    if (turn || !first_look_)
        half_hour_ = now;
    if (!first_look_)
        first_look_ = now;
    past_ = std::move(past);
}

Guard::Past::Slot Guard::before(const Holder &holder, Duration ago) const {
    const auto known = past_.find(holder.id);
    Past::Slot most;

    if (!first_look_) // it was there before anybody looked
        return {{}, holder.held(), holder.other};
    if (known == past_.end())
        return most;
    const auto count = [&most](const Past::Slot &slot) {
        most.held = std::max(most.held, slot.held);
        most.other = std::max(most.other, slot.other);
    };
    count(known->second.oldest);
    count(known->second.older);
    for (const Past::Slot &slot : known->second.slots) {
        if (slot.time + slot_length <= reading_->time - ago)
            count(slot);
    }
    return most;
}

Guard::Duration Guard::window() const {
    return first_look_ ? std::min<Duration>(longest_window, (reading_->time - *first_look_) / 2)
                       : Duration(0);
}

Suspect Guard::weigh(const Holder &holder) const {
    const auto grown = [&](const Past::Slot &was, Suspect &suspect) {
        suspect.grown = without(holder.held(), was.held);
        if (!holder.soft)
            return;
        // What the driver gives it below its soft limit is its own.
        suspect.over_soft = without(holder.driver, *holder.soft);
        suspect.grown = without(holder.other, was.other);
    };
    const Duration window = this->window();
    Suspect suspect;

    suspect.holder = holder;
    grown(before(holder, std::min<Duration>(sudden_window, window)), suspect);
    suspect.sudden = suspect.score() >= much() ? suspect.score() : 0;
    grown(before(holder, window), suspect);
    suspect.within = std::chrono::ceil<seconds>(window);
    return suspect;
}

std::string Guard::immunity(const Holder &holder) const {
    if (holder.kind == HolderKind::shared)
        return "it is of several tenants";
    if (holder.preference == Preference::omit)
        return "its unit has ManagedOOMPreference=omit";
    if (is_protected(holder.path))
        return "it is protected";
    if (is_below(self_, holder.path))
        return "umacctd is in it";
    if (holder.empty)
        return has_touched(holder.id) && touched(holder.id)->killed ? "it was killed"
                                                                    : "no process is in it";
    return "";
}

bool Guard::has_protected(const Holder &group, const std::vector<Holder> &holders) const {
    return group.shelters || std::ranges::any_of(holders, [&](const Holder &each) {
               return is_below(each.path, group.path) &&
                      (each.preference == Preference::omit || is_protected(each.path));
           });
}

void Guard::judge_rest(Suspect &rest, const Suspect &group,
                       const std::vector<Holder> &holders) const {
    // Where a group has held as much before, that it lies elsewhere in it now is no growth.
    rest.grown = std::min(rest.grown, group.score());
    rest.over_soft = std::min(rest.over_soft, group.score() - rest.grown);
    rest.sudden = std::min(rest.sudden, group.sudden);
    if (!rest.passed_by.empty())
        return;
    if (group.passed_by.empty())
        rest.passed_by = "all of it may be acted against";
    else if (rest.score() < much())
        rest.passed_by = fmt::format("it grew by less than {}", format_size(much()));
    else if (has_protected(group.holder, holders))
        rest.passed_by = "a cgroup in it is protected";
}

std::string Guard::immunity_of_group(const Suspect &group, const std::vector<Suspect> &all,
                                     const std::vector<Holder> &holders) const {
    if (group.grown < group.holder.held() - group.holder.held() / 8)
        return "more than an eighth of its memory is not new";
    if (std::ranges::any_of(all, [&](const Suspect &each) {
            return is_below(each.holder.path, group.holder.path) && each.passed_by.empty() &&
                   each.grown >= group.grown / 2;
        }))
        return "a cgroup in it caused half of its growth";
    return has_protected(group.holder, holders) ? "a cgroup in it is protected" : "";
}

std::vector<Suspect> Guard::ranking(const std::vector<Holder> &holders) const {
    std::vector<Suspect> all;

    for (const Holder &holder : holders) {
        if (holder.held() < noise)
            continue;
        Suspect &suspect = all.emplace_back(weigh(holder));
        suspect.passed_by = immunity(holder);
        if (suspect.passed_by.empty() && suspect.score() < much())
            suspect.passed_by = fmt::format("it grew by less than {}", format_size(much()));
    }
    std::unordered_map<std::uint64_t, Suspect *> rests;
    for (Suspect &each : all) {
        if (each.holder.rest)
            rests.emplace(each.holder.id, &each);
    }
    // Of groups in groups, the inner ones first: parents come before what is in them.
    for (auto at = all.rbegin(); at != all.rend(); ++at) {
        if (at->holder.kind != HolderKind::tenant || at->holder.rest)
            continue;
        if (at->passed_by.empty())
            at->passed_by = immunity_of_group(*at, all, holders);
        if (const auto rest = rests.find(Holder::rest_id(at->holder.id)); rest != rests.end())
            judge_rest(*rest->second, *at, holders);
    }
    std::erase_if(all,
                  [](const Suspect &each) { return each.holder.rest && !each.passed_by.empty(); });
    std::ranges::stable_sort(all, [](const Suspect &a, const Suspect &b) {
        const auto key = [](const Suspect &each) {
            return std::tuple(!each.passed_by.empty(), each.holder.preference, ~each.sudden,
                              ~each.score(), ~each.holder.held());
        };

        return key(a) < key(b);
    });
    return all;
}

// --- what ------------------------------------------------------------------------

const Guard::Touched *Guard::touched(std::uint64_t id) const {
    const auto found = std::ranges::find_if(
        touched_, [&](const Touched &each) { return each.suspect.holder.id == id; });

    return found == touched_.end() ? nullptr : &*found;
}

bool Guard::has_touched(std::uint64_t id) const {
    return touched(id) != nullptr;
}

bool Guard::is_dying(const std::vector<Holder> &holders) const {
    const Time now = reading_->time;

    return std::ranges::any_of(touched_, [&](const Touched &each) {
        if (!each.killed || now - each.time >= death_takes)
            return false;
        const Holder &then = each.suspect.holder;
        const auto holder =
            std::ranges::find_if(holders, [&](const Holder &one) { return one.id == then.id; });
        const bool is_gone = holder == holders.end();

        if (is_gone || holder->empty) {
            if (now - std::max(each.time, rose_) >= burial_takes)
                return false;
        }
        return is_gone ? without(most_obtainable_, obtainable_then_) < then.held() / 2
                       : holder->held() > then.held() / 2;
    });
}

std::optional<Suspect> Guard::suspect(const std::vector<Holder> &holders) const {
    const std::vector<Suspect> ranking = this->ranking(holders);
    const auto first = [&](const auto &is_one) -> std::optional<Suspect> {
        const auto found = std::ranges::find_if(
            ranking, [&](const Suspect &each) { return each.passed_by.empty() && is_one(each); });

        return found == ranking.end() ? std::nullopt : std::optional(*found);
    };
    const auto new_one = [&](const Suspect &each) {
        const Touched *before = touched(each.holder.id);

        return before == nullptr || !before->killed;
    };

    if (touched_.empty() || touched_.back().killed)
        return first(new_one);

    // It stays with one, unless memory goes on falling and another is to blame for that.
    const Suspect &last = touched_.back().suspect;
    const auto still = std::ranges::find_if(
        holders, [&](const Holder &each) { return each.id == last.holder.id; });
    if (still == holders.end() || still->empty)
        return first(new_one);
    const std::uint64_t fell = without(obtainable_then_, obtainable_);
    if (fell >= much()) {
        auto another = first([&](const Suspect &each) {
            const auto then = held_then_.find(each.holder.id);
            const std::uint64_t held = each.holder.held();
            const std::uint64_t since = without(held, then == held_then_.end() ? 0 : then->second);

            return touched(each.holder.id) == nullptr && since >= fell / 2;
        });
        if (another)
            return another;
    }
    Suspect again = last;
    again.grown = without(again.grown + still->held(), again.holder.held());
    again.holder = *still;
    return again;
}

bool Guard::is_possible(GuardStep step, bool about_one) const {
    if (step != GuardStep::reserve)
        return about_one;
    // The reserve is for want of memory: else it would refuse all for what nobody did.
    return reading_->can_reserve && !raised_from_ && (about_one || !strained_since_);
}

std::vector<Guard::Action> Guard::step(const std::vector<Holder> &holders) {
    const Time now = reading_->time;
    std::vector<Action> actions;

    if (!acting_ && !(released_ && now - *released_ < relapse))
        touched_.clear();
    // Another may be the one this time.
    if (!acting_ && !touched_.empty() && !touched_.back().killed) {
        const auto ranking = this->ranking(holders);

        if (!ranking.empty() && ranking.front().passed_by.empty() &&
            touched(ranking.front().holder.id) == nullptr)
            touched_.push_back({.suspect = ranking.front(), .time = now});
    }
    acting_ = true;
    reclaiming_ = false;
    if (is_dying(holders)) {
        step_at_ = now + quickest;
        return actions;
    }

    const auto about = suspect(holders);
    const Touched *before = about ? touched(about->holder.id) : nullptr;
    for (std::size_t i = before != nullptr ? before->next : 0; i < policy_.steps.size(); ++i) {
        const GuardStep step = policy_.steps[i];

        if (!is_possible(step, about.has_value()))
            continue;
        actions.push_back(step == GuardStep::reserve ? raise_reserve() : take(step, *about));
        if (about)
            touch(*about, i);
        break;
    }
    step_at_ = now + std::chrono::nanoseconds(policy_.wait_ns);
    if (!actions.empty()) {
        obtainable_then_ = obtainable_;
        most_obtainable_ = obtainable_;
        held_then_.clear();
        for (const Holder &holder : holders)
            held_then_.emplace(holder.id, holder.held());
    } else if (!about && may_tell_nobody()) {
        actions.push_back(tell_nobody());
    }
    return actions;
}

void Guard::touch(const Suspect &about, std::size_t index) {
    const GuardStep step = policy_.steps[index];
    // The one whom it is about is the last.
    auto it = std::ranges::find_if(
        touched_, [&](const Touched &each) { return each.suspect.holder.id == about.holder.id; });

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
    // It is so from now on, whether it is read again or not.
    reading_->reserve = raised_to_;
    return action(GuardStep::reserve, {}, raised_to_);
}

std::uint64_t Guard::missing() const {
    return std::max({without(floor_ + floor_ / 8, obtainable_), noise, total_ / 1024});
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
        if (nobody)
            return strained ? "tasks wait although memory is available; no cgroup to act against"
                            : "nobody to act against";
        switch (step) {
        case GuardStep::reclaim:
            return fmt::format("reclaim {} from", format_size(bytes));
        case GuardStep::reserve:
            return fmt::format("set the reserve {} {}", undo ? "back to" : "to",
                               format_size(bytes));
        case GuardStep::freeze:
            return undo ? "thaw" : "freeze";
        case GuardStep::signal:
            return "SIGTERM";
        case GuardStep::kill:
            break;
        }
        return "kill";
    };
    std::string text = verb();

    if (suspect)
        text += ' ' + printable(suspect->holder.path);
    text += fmt::format(": {} available", format_size(obtainable));
    if (floor > 0)
        text += fmt::format(", floor {}", format_size(floor));
    if (pressure > 0)
        text += fmt::format(", pressure {}", format_percent(pressure));
    text += fmt::format(", for {} ms", for_.count());
    if (!suspect || undo)
        return text;
    text += fmt::format("; it holds {} through the driver and {} else{}",
                        format_size(suspect->holder.driver), format_size(suspect->holder.other),
                        suspect->holder.rest ? " besides the cgroups in it" : "");
    if (suspect->grown > 0)
        text += fmt::format(", grew {} above its previous peak within {} s",
                            format_size(suspect->grown), suspect->within.count());
    if (suspect->over_soft > 0)
        text += fmt::format(", {} above its soft limit", format_size(suspect->over_soft));
    return text;
}

} // namespace umacct
