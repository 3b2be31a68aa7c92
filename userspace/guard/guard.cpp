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

/// Fastest possible growth in a second, which decides how soon to look again.
constexpr std::uint64_t fastest = 16ULL << 30;

constexpr auto quickest = 50ms;
constexpr auto slowest = 1000ms;
/// Interval if pressure or failures count, which come without warning.
constexpr auto with_pressure = 100ms;
/// Intervals between looks at the holders: in normal times, and below twice the floor. The first
/// varies by chance, so that no service's own rhythm hides its highs.
constexpr std::chrono::milliseconds look_least = 3s;
constexpr std::chrono::milliseconds look_most = 7s;
constexpr auto look_near = 2s;

/// Period in which growth counts; while the guard is young, half of its age.
constexpr auto longest_window = 1200s;
/// Time before that in which a size counts as usual.
constexpr auto usual_within = 3600s;
/// Growth in this time counts most.
constexpr auto sudden_window = 10s;
/// Length of a slot of a cgroup's past: a minute, or less while the guard is young.
constexpr auto shortest_slot = 10s;
constexpr auto longest_slot = 60s;

/// Default pressure: tasks that wait for half of this time are logged.
constexpr double usual_strain = 50;
constexpr auto usual_strain_time = 60s;
/// Memory is not short if this share is available.
constexpr std::uint64_t plenty_share = 8;
/// Interval of the line that no cgroup is to blame.
constexpr auto report_again_after = 600s;

/// A machine that gets there again so soon is treated as if it had not been over.
constexpr auto relapse = 60s;
/// A process that was killed gives back what it holds in this time, or something is wrong.
constexpr auto death_takes = 30s;
/// Once no process is in it any more, memory comes back without a longer pause.
constexpr auto release_pause = 2s;

/// Smaller growth is noise on any machine.
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

    const std::uint64_t failed_before = reading_ ? reading_->failed : reading.failed;
    reading_ = reading;
    obtainable_ = without(reading.available, is_raised ? *raised_from_ : reading.reserve);
    if (obtainable_ >= most_obtainable_ + noise) {
        most_obtainable_ = obtainable_;
        rose_ = now;
    }
    follow_pressure(reading);
    follow_failures(failed_before);

    const bool failing = is_failing();
    const bool pressed = policy_.pressure && pressure_ >= *policy_.pressure;
    const bool relaxed = !failing && (!policy_.pressure || pressure_ < *policy_.pressure / 2);
    since(low_since_, obtainable_ < floor_, now);
    since(strained_since_,
          !low_since_ && obtainable_ >= total_ / plenty_share && reading.waited_us &&
              pressure_ >= policy_.pressure.value_or(usual_strain),
          now);
    if (!low_since_ && !pressed && !failing && !strained_since_)
        no_culprit_at_.reset();
    since(short_since_, pressed || failing || lasts(low_since_, now, policy_.for_ns), now);
    since(well_since_, relaxed && obtainable_ >= floor_ + floor_ / 8, now);
    due_ = now + interval();
    return now >= next_look_ || (!short_since_ && is_strained() && may_report_no_culprit()) ||
           (short_since_ && (now >= step_at_ || reclaiming_)) ||
           (acting_ && lasts(well_since_, now, policy_.release_ns));
}

bool Guard::is_strained() const {
    return strained_since_ &&
           reading_->time - *strained_since_ >=
               (policy_.pressure ? Duration(std::chrono::nanoseconds(policy_.for_ns))
                                 : Duration(usual_strain_time));
}

bool Guard::may_report_no_culprit() const {
    return !no_culprit_at_ || reading_->time - *no_culprit_at_ >= report_again_after;
}

Guard::Action Guard::report_no_culprit() {
    Action told = action(GuardStep::reclaim, {}, 0);

    told.nobody = true;
    told.strained = strained_since_.has_value();
    if (told.strained)
        told.for_ = std::chrono::duration_cast<std::chrono::milliseconds>(reading_->time -
                                                                          *strained_since_);
    no_culprit_at_ = reading_->time;
    return told;
}

void Guard::follow_failures(std::uint64_t before) {
    if (!low_since_ && !short_since_ && !strained_since_)
        failed_then_ = before;
    if (reading_->failed > before)
        failed_at_ = reading_->time;
}

bool Guard::is_failing() const {
    return policy_.failed && failed_at_ &&
           reading_->time - *failed_at_ < std::chrono::nanoseconds(policy_.wait_ns);
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
    } else if (!short_since_ && is_strained() && may_report_no_culprit()) {
        actions.push_back(report_no_culprit());
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
        // A cgroup that grows again is frozen again.
        each.next -= each.next > 0 ? 1 : 0;
    }
    const auto raised_from = std::exchange(raised_from_, {});
    if (raised_from)
        actions.push_back(action(GuardStep::reserve, {}, *raised_from));
    for (Action &each : actions)
        each.undo = true;
    acting_ = false;
    reclaiming_ = false;
    // The next step does not depend on the time that the last one had.
    step_at_ = {};
    if (reading_)
        released_ = reading_->time;
    return actions;
}

// --- targets -----------------------------------------------------------------------

/// Returns the part of a holder that has a history: driver memory below its soft limit is its own.
/// Memory on swap is a part, too: whose memory others push out doesn't shrink by that, and who
/// leaks there grows.
std::uint64_t Guard::counted(const Holder &holder) {
    return (holder.soft ? holder.other : holder.held()) + holder.swap;
}

void Guard::remember(const std::vector<Holder> &holders) {
    const Time now = reading_->time;
    const Duration length =
        std::clamp<Duration>((now - first_look_.value_or(now)) / 5, shortest_slot, longest_slot);
    std::unordered_map<std::uint64_t, Past> past;
    std::uint64_t sharers = 0;
    const std::string *tenant = nullptr; // a group, which comes before what is in it

    for (const Holder &holder : holders) {
        const auto known = past_.find(holder.id);
        const bool in_another = tenant != nullptr && is_below(holder.path, *tenant);

        // However many a tenant makes, its share is one.
        if (holder.kind != HolderKind::shared && holder.held() >= noise && !in_another)
            ++sharers;
        // One that holds little has no path: it is small itself, and so is what is in it.
        if (holder.kind == HolderKind::tenant && !in_another && !holder.path.empty())
            tenant = &holder.path;
        // A cgroup that holds little counts as new.
        if (known == past_.end() && holder.held() < noise / 4)
            continue;

        Past &its = past[holder.id] = known == past_.end() ? Past{} : std::move(known->second);
        const std::uint64_t held = counted(holder);
        if (its.slots.empty() || now - its.slots.back().begin >= length)
            its.slots.push_back({.begin = now});
        Past::Slot &slot = its.slots.back();
        slot.most = std::max(slot.most, held);
        slot.sum += held;
        ++slot.looks;
        while (its.slots.front().begin + longest_slot <= now - longest_window - usual_within)
            its.slots.pop_front();

        if (its.latest.empty() || now - its.latest.back().first >= 1s)
            its.latest.emplace_back(now, held);
        while (its.latest.front().first < now - 3 * sudden_window)
            its.latest.pop_front();
    }
    if (!first_look_)
        first_look_ = now;
    fair_share_ = total_ / std::clamp<std::uint64_t>(sharers, 2, 8);
    past_ = std::move(past);
}

std::uint64_t Guard::usual(const Past &past) const {
    const Time end = reading_->time - window();
    const Time begin = std::max(*first_look_, end - usual_within);
    std::vector<std::pair<std::uint64_t, Duration>> levels;

    for (auto slot = past.slots.begin(); slot != past.slots.end() && slot->begin < end; ++slot) {
        const auto next = std::next(slot);
        const Time until = next == past.slots.end() ? end : std::min(next->begin, end);

        // A size above a fair share counts by its average, not by its peak.
        levels.emplace_back(std::min(slot->most, std::max(fair_share_, slot->sum / slot->looks)),
                            until - std::max(slot->begin, begin));
    }
    std::ranges::sort(levels, std::ranges::greater());

    const auto span = static_cast<double>((end - begin).count());
    std::uint64_t usual = 0;
    Duration held{};
    for (const auto &[level, time] : levels) {
        held += std::max(time, Duration(0));
        const double share = 2 * static_cast<double>(held.count()) / span;
        usual = std::max(usual,
                         share >= 1
                             ? level
                             : std::min(level, static_cast<std::uint64_t>(share * double(total_))));
    }
    return usual;
}

Guard::Duration Guard::window() const {
    return first_look_ ? std::min<Duration>(longest_window, (reading_->time - *first_look_) / 2)
                       : Duration(0);
}

Suspect Guard::weigh(const Holder &holder) const {
    const auto known = past_.find(holder.id);
    const std::uint64_t held = counted(holder);
    Suspect suspect;

    suspect.holder = holder;
    suspect.within = std::chrono::ceil<seconds>(window());
    if (!first_look_) // it existed before the first look
        return suspect;
    const std::uint64_t usual = known == past_.end() ? 0 : this->usual(known->second);
    std::uint64_t before = usual;
    if (known != past_.end()) {
        for (const auto &[time, at_that] : known->second.latest)
            before = time <= reading_->time - sudden_window ? std::max(before, at_that) : before;
    }
    if (holder.soft)
        suspect.over_soft = without(holder.driver, *holder.soft);
    suspect.grown = without(held, usual);
    suspect.sudden = without(held, before) + suspect.over_soft;
    if (suspect.sudden < much())
        suspect.sudden = 0;
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

std::string Guard::immunity_of_group(const Suspect &group, const std::vector<Suspect> &all,
                                     const std::vector<Holder> &holders) const {
    std::uint64_t besides = group.holder.held(); // memory in none of its cgroups
    const std::string *outer = nullptr;

    for (const Suspect &each : all) {
        const std::string &path = each.holder.path;

        if (!is_below(path, group.holder.path))
            continue;
        // Growth that goes on while a cgroup is frozen is not its own.
        const Touched *before = touched(each.holder.id);
        const bool goes_on = !each.holder.empty && (before == nullptr || !before->frozen);
        if (each.passed_by.empty() && goes_on && each.grown >= group.grown / 2)
            return "a cgroup in it caused half of its growth";
        // Parents precede their children in the list.
        if (goes_on && (outer == nullptr || !is_below(path, *outer))) {
            besides = without(besides, each.holder.held());
            outer = &path;
        }
    }
    if (group.grown < group.holder.held() - group.holder.held() / 8 &&
        besides < std::max(group.excess() / 2, much()))
        return "more than an eighth of its memory is not new";
    return has_protected(group.holder, holders) ? "a cgroup in it is protected" : "";
}

std::vector<Suspect> Guard::ranking(const std::vector<Holder> &holders) const {
    std::vector<Suspect> all;

    for (const Holder &holder : holders) {
        if (holder.held() + holder.swap < noise)
            continue;
        Suspect &suspect = all.emplace_back(weigh(holder));
        suspect.passed_by = immunity(holder);
        if (suspect.passed_by.empty() && suspect.excess() < much())
            suspect.passed_by = fmt::format("it grew by less than {}", format_size(much()));
    }
    // Inner groups first: parents precede their children in the list.
    for (auto at = all.rbegin(); at != all.rend(); ++at) {
        if (at->holder.kind == HolderKind::tenant && at->passed_by.empty())
            at->passed_by = immunity_of_group(*at, all, holders);
    }
    // Suspects that are too small to make up for the missing memory come last.
    const auto key = [least = missing()](const Suspect &each) {
        return std::tuple(!each.passed_by.empty(), each.holder.preference, each.excess() < least,
                          ~each.weight(), ~each.holder.held());
    };
    std::ranges::stable_sort(all, {}, key);
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
            if (now - std::max(each.time, rose_) >= release_pause)
                return false;
        }
        return is_gone ? without(most_obtainable_, obtainable_then_) < then.held() / 2
                       : holder->held() > then.held() / 2;
    });
}

std::optional<Suspect> Guard::suspect(const std::vector<Holder> &holders, bool anew) const {
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

    // It stays with one, unless memory goes on falling and another is to blame for that.
    const auto still = std::ranges::find_if(holders, [&](const Holder &each) {
        return !touched_.empty() && each.id == touched_.back().suspect.holder.id;
    });
    if (still == holders.end() || still->empty || touched_.back().killed)
        return first(new_one);
    if (auto front = anew ? first(new_one) : std::nullopt)
        return front;
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
    Suspect again = touched_.back().suspect;
    again.grown = without(again.grown + still->held(), again.holder.held());
    again.holder = *still;
    return again;
}

bool Guard::is_possible(GuardStep step, bool about_one) const {
    if (step != GuardStep::reserve)
        return about_one;
    // The reserve is for lack of memory alone: otherwise it would refuse every request without
    // need.
    return reading_->can_reserve && !raised_from_ && (about_one || !strained_since_);
}

std::vector<Guard::Action> Guard::step(const std::vector<Holder> &holders) {
    const Time now = reading_->time;
    std::vector<Action> actions;

    if (!acting_ && !(released_ && now - *released_ < relapse))
        touched_.clear();
    const bool anew = !std::exchange(acting_, true);
    reclaiming_ = false;
    if (is_dying(holders)) {
        step_at_ = now + quickest;
        return actions;
    }

    const auto about = suspect(holders, anew);
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
    } else if (!about && may_report_no_culprit()) {
        actions.push_back(report_no_culprit());
    }
    return actions;
}

void Guard::touch(const Suspect &about, std::size_t index) {
    const GuardStep step = policy_.steps[index];
    // The current target is the last.
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
    // Refuses all while less than the floor is left, and nothing with more.
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
                  .pressure = pressure_,
                  .failed = without(reading_ ? reading_->failed : 0, failed_then_)};
    const auto from = short_since_ ? (low_since_ ? low_since_ : short_since_) : well_since_;

    if (reading_ && from)
        action.for_ = std::chrono::duration_cast<std::chrono::milliseconds>(reading_->time - *from);
    return action;
}

Guard::Duration Guard::interval() const {
    const auto most = policy_.pressure || policy_.failed ? with_pressure : slowest;

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
                            : "no cgroup to act against";
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
    if (failed > 0)
        text += fmt::format(", {} failed request{}", failed, failed == 1 ? "" : "s");
    text += fmt::format(", for {} ms", for_.count());
    if (!suspect || undo)
        return text;
    text += fmt::format("; it holds {} through the driver and {} else",
                        format_size(suspect->holder.driver), format_size(suspect->holder.other));
    if (suspect->holder.swap > 0)
        text += fmt::format(" and {} on swap", format_size(suspect->holder.swap));
    if (suspect->grown > 0)
        text += fmt::format(", grew {} above its usual size within {} s",
                            format_size(suspect->grown), suspect->within.count());
    if (suspect->over_soft > 0)
        text += fmt::format(", {} above its soft limit", format_size(suspect->over_soft));
    return text;
}

} // namespace umacct
