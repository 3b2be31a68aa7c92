// SPDX-License-Identifier: GPL-2.0-or-later
/// Decides about steps when memory runs short, and about their targets. It works from readings
/// alone, which contain the time; its caller reads and acts.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/owners/tenant.h"
#include "lib/policy/policy.h"

namespace umacct {

/// Role of a cgroup.
enum class HolderKind : std::uint8_t {
    shared, ///< shared by several tenants, such as a slice of the system's: never a target
    unit,   ///< a service, a container or a session, with all that is in it
    tenant, ///< a group of one tenant: a user, a pod, a subtree that was delegated
};

/// A cgroup and what it would give back if its processes ended, with what is below it.
struct Holder {
    std::string path;         ///< empty where it holds too little for anything to be done to it
    std::uint64_t id = 0;     ///< the cgroup's own, which no later one of that path has
    std::uint64_t driver = 0; ///< taken through the driver, whoever else counts it
    std::uint64_t other = 0;  ///< all else but page cache and tmpfs, and nothing of it twice
    std::uint64_t swap = 0;   ///< memory on swap: growth, but none that would come back
    Limit soft;
    HolderKind kind = HolderKind::shared;
    Preference preference = Preference::none;
    bool shelters = false; ///< contains a protected cgroup, however small
    bool empty = false;    ///< no process is in it or below it

    std::uint64_t held() const { return driver + other; }
};

/// A cgroup as the guard ranks it.
struct Suspect {
    Holder holder;
    std::uint64_t grown = 0;        ///< beyond its usual size
    std::chrono::seconds within{0}; ///< time that it took
    std::uint64_t over_soft = 0;
    std::uint64_t sudden = 0; ///< part of that in the last seconds, if it is much
    std::string passed_by;    ///< why nothing is done to it; empty where something may be

    /// Returns the memory that it has not held for long enough to call it its own.
    std::uint64_t excess() const { return grown + over_soft; }

    /// Returns its rank: growth of the last seconds counts four times.
    std::uint64_t weight() const { return excess() + 3 * sudden; }
};

class Guard {
public:
    using Time = std::chrono::steady_clock::time_point;
    using Duration = std::chrono::steady_clock::duration;

    struct Reading {
        Time time;
        std::uint64_t available = 0; ///< available to the driver, before the reserve
        std::uint64_t reserve = 0;   ///< the module's reserve
        /// How long some task waited for memory, ever; empty where the kernel doesn't tell.
        std::optional<std::uint64_t> waited_us;
        bool can_reserve = true;  ///< false without the module, which refuses for a reserve
        std::uint64_t failed = 0; ///< requests for which the driver had no memory, ever
    };

    struct Action {
        GuardStep step = GuardStep::reclaim;
        bool undo = false;
        bool nobody = false;            ///< no step: there is no culprit
        bool strained = false;          ///< and memory is there, which tasks wait for all the same
        bool again = false;             ///< more of the same, nothing new
        std::optional<Suspect> suspect; ///< empty for the reserve's
        std::uint64_t bytes = 0;        ///< amount to reclaim, or the new reserve

        // Cause of the step.
        std::uint64_t obtainable = 0;
        std::uint64_t floor = 0;
        double pressure = 0;              ///< per cent
        std::uint64_t failed = 0;         ///< requests that failed since all was well
        std::chrono::milliseconds for_{}; ///< duration of the shortage

        /// The cgroup, or "".
        std::string path() const { return suspect ? suspect->holder.path : ""; }

        /// Returns the action in words.
        std::string text() const;
    };

    /// total: the machine's memory. self: the cgroup that decides, which is never touched.
    Guard(GuardPolicy policy, std::uint64_t total, std::string self);

    /// Whether it wants to know now who holds what.
    bool read(const Reading &reading);
    /// Decides by the holders at the last reading, and returns the actions.
    std::vector<Action> decide(const std::vector<Holder> &holders);
    /// All that was done, to be undone now.
    std::vector<Action> release();

    /// Returns the time of the next reading.
    Time due() const { return due_; }

    const GuardPolicy &policy() const { return policy_; }

    /// All holders at the last reading, the first target first. Those
    /// that are no targets come last, with the reason.
    std::vector<Suspect> ranking(const std::vector<Holder> &holders) const;

    bool is_protected(std::string_view path) const;

    /// Whether it remembers what that cgroup held; for one that holds nothing now, too.
    bool knows(std::uint64_t id) const { return past_.contains(id); }

    /// Whether it did something to that cgroup, of late.
    bool has_touched(std::uint64_t id) const;

    /// The last reading: what the driver could have, and whether that is too little.
    std::uint64_t obtainable() const { return obtainable_; }

    std::uint64_t floor() const { return floor_; }

    double pressure() const { return pressure_; }

    bool is_short() const { return short_since_.has_value(); }

    /// Tasks wait for memory, and have for some time, though there is much of it.
    bool is_strained() const;

private:
    /// A cgroup's past sizes, as far as they matter.
    struct Past {
        struct Slot {
            Time begin;
            std::uint64_t most = 0;
            std::uint64_t sum = 0; ///< total of all looks
            std::uint64_t looks = 0;
        };

        std::deque<Slot> slots;                            ///< one a minute
        std::deque<std::pair<Time, std::uint64_t>> latest; ///< looks of the last seconds
    };

    /// A target of steps.
    struct Touched {
        Suspect suspect;
        std::size_t next = 0; ///< index of the policy's next step
        Time time{};          ///< time of the last step
        bool frozen = false;
        bool killed = false;
    };

    void follow_pressure(const Reading &reading);
    /// Follows requests that failed. One is a sign until the next step would be due, so that each
    /// further step takes another failure. before: their number at the reading before.
    void follow_failures(std::uint64_t before);
    bool is_failing() const;
    bool may_report_no_culprit() const;
    Action report_no_culprit();
    static std::uint64_t counted(const Holder &holder);
    void remember(const std::vector<Holder> &holders);

    /// Returns the size that a known cgroup has held for long enough to call it its own.
    std::uint64_t usual(const Past &past) const;
    /// Returns the period in which growth counts: a young guard does not know usual sizes yet.
    Duration window() const;
    Suspect weigh(const Holder &holder) const;
    /// Why nothing may be done to it, whatever it took; empty where something may.
    std::string immunity(const Holder &holder) const;
    /// Whether one in a group is protected.
    bool has_protected(const Holder &group, const std::vector<Holder> &holders) const;
    /// The same of a group, by what is in it.
    std::string immunity_of_group(const Suspect &group, const std::vector<Suspect> &all,
                                  const std::vector<Holder> &holders) const;
    /// Less growth than this is nothing to act against, nor to turn to another for.
    std::uint64_t much() const;

    const Touched *touched(std::uint64_t id) const;
    /// Whether one that was killed is about to give back what it held. The driver may free it after
    /// the process is gone, and its cgroup, too.
    bool is_dying(const std::vector<Holder> &holders) const;
    /// anew: a shortage has just begun.
    std::optional<Suspect> suspect(const std::vector<Holder> &holders, bool anew) const;
    /// about_one: there is one to blame.
    bool is_possible(GuardStep step, bool about_one) const;
    std::vector<Action> step(const std::vector<Holder> &holders);
    Action take(GuardStep step, Suspect suspect);
    /// Remembers the step of that index against it.
    void touch(const Suspect &about, std::size_t index);
    Action raise_reserve();
    Action action(GuardStep step, std::optional<Suspect> suspect, std::uint64_t bytes) const;
    std::uint64_t missing() const;
    Duration interval() const;

    GuardPolicy policy_;
    std::uint64_t total_;
    std::uint64_t floor_;
    std::string self_;
    Time due_{};
    Time next_look_{}; ///< next look at the holders in normal times

    std::optional<Reading> reading_;
    std::uint64_t obtainable_ = 0;
    double pressure_ = 0;
    std::deque<Reading> readings_; ///< the period of the pressure's average
    std::optional<Time> failed_at_;
    std::uint64_t failed_then_ = 0; ///< failures when all was well
    std::optional<Time> low_since_;
    std::optional<Time> short_since_;
    std::optional<Time> well_since_;
    std::optional<Time> strained_since_;

    bool acting_ = false;
    Time step_at_{};                           ///< no sooner
    std::optional<std::uint64_t> raised_from_; ///< the reserve before
    std::uint64_t raised_to_ = 0;
    std::uint64_t obtainable_then_ = 0;                          ///< obtainable memory at the last
                                                                 ///< step
    std::uint64_t most_obtainable_ = 0;                          ///< maximum since that step
    Time rose_{};                                                ///< time of that maximum
    std::unordered_map<std::uint64_t, std::uint64_t> held_then_; ///< the same, by the cgroup's id
    std::vector<Touched> touched_; ///< the last one is the current target
    bool reclaiming_ = false;
    std::optional<Time> released_;

    std::optional<Time> no_culprit_at_;
    std::optional<Time> first_look_;
    std::minstd_rand chance_;                      ///< random intervals between looks
    std::uint64_t fair_share_ = 0;                 ///< share of the memory for each holder
    std::unordered_map<std::uint64_t, Past> past_; ///< the key is the cgroup's id
};

} // namespace umacct
