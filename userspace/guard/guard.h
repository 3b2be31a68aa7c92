// SPDX-License-Identifier: GPL-2.0-or-later
/// What to do where memory runs short, and to whom. It decides, from readings alone, and what
/// time it is comes with them; who asks it reads and acts.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/policy/policy.h"

namespace umacct {

/// What a cgroup is to the guard.
enum class HolderKind : std::uint8_t {
    shared, ///< of several tenants, as a slice of the system's: nothing is ever done to it
    unit,   ///< a service, a container or a session, with all that is in it
    tenant, ///< a group of one tenant: a user, a pod, a subtree that was delegated
};

/// What systemd's ManagedOOMPreference= says of it.
enum class Preference : std::uint8_t { none, avoid, omit };

/// A cgroup and what it would give back if its processes ended, with what is below it.
struct Holder {
    std::string path;         ///< empty where it holds too little for anything to be done to it
    std::uint64_t id = 0;     ///< the cgroup's own, which no later one of that path has
    std::uint64_t driver = 0; ///< taken through the driver, whoever else counts it
    std::uint64_t other = 0;  ///< all else but page cache and tmpfs, and nothing of it twice
    Limit soft;
    HolderKind kind = HolderKind::shared;
    Preference preference = Preference::none;
    bool shelters = false; ///< what is protected is in it, however little that holds
    /// No process is in it, nor in what is below it; or, where it was killed, only such as came
    /// since.
    bool empty = false;
    /// Not the group of that path itself, but what it holds besides those in it that are listed and
    /// have processes: what was taken in one that its processes left, or in very small ones.
    bool rest = false;

    /// The id of a group's rest; the kernel gives no such number to a cgroup.
    static std::uint64_t rest_id(std::uint64_t group) { return ~group; }

    std::uint64_t held() const { return driver + other; }
};

/// A cgroup as the guard ranks it.
struct Suspect {
    Holder holder;
    std::uint64_t grown = 0;        ///< beyond the most that it held before
    std::chrono::seconds within{0}; ///< in so long
    std::uint64_t over_soft = 0;
    std::uint64_t sudden = 0; ///< of that, in the last seconds, where it is much
    std::string passed_by;    ///< why nothing is done to it; empty where something may be

    std::uint64_t score() const { return grown + over_soft; }
};

class Guard {
public:
    using Time = std::chrono::steady_clock::time_point;
    using Duration = std::chrono::steady_clock::duration;

    struct Reading {
        Time time;
        std::uint64_t available = 0; ///< that the driver could have, but for the reserve
        std::uint64_t reserve = 0;   ///< as the module has it
        /// How long some task waited for memory, ever; empty where the kernel doesn't tell.
        std::optional<std::uint64_t> waited_us;
        bool can_reserve = true; ///< where the module isn't loaded, nobody refuses for a reserve
    };

    struct Action {
        GuardStep step = GuardStep::reclaim;
        bool undo = false;
        bool nobody = false;            ///< no step: nobody is to blame
        bool strained = false;          ///< and memory is there, which tasks wait for all the same
        bool again = false;             ///< more of the same, nothing new
        std::optional<Suspect> suspect; ///< empty for the reserve's
        std::uint64_t bytes = 0;        ///< to reclaim, or the reserve

        // What led to it.
        std::uint64_t obtainable = 0;
        std::uint64_t floor = 0;
        double pressure = 0;              ///< per cent
        std::chrono::milliseconds for_{}; ///< that it was so

        /// The cgroup, or "".
        std::string path() const { return suspect ? suspect->holder.path : ""; }

        /// In words.
        std::string text() const;
    };

    /// total: the machine's memory. self: the cgroup that decides, which is never touched.
    Guard(GuardPolicy policy, std::uint64_t total, std::string self);

    /// Whether it wants to know now who holds what.
    bool read(const Reading &reading);
    /// Who holds what, at the last reading: what is to be done.
    std::vector<Action> decide(const std::vector<Holder> &holders);
    /// All that was done, to be undone now.
    std::vector<Action> release();

    /// When the next reading is due.
    Time due() const { return due_; }

    const GuardPolicy &policy() const { return policy_; }

    /// Everybody who holds something, at the last reading, the first to act against first. Those
    /// against whom nothing is done come last, with the reason.
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

    /// Whether the reserve is still to be put back.
    bool has_raised() const { return raised_from_.has_value(); }

    bool is_short() const { return short_since_.has_value(); }

    /// Tasks wait for memory, and have for some time, though there is much of it.
    bool is_strained() const;

private:
    /// What a cgroup held, as far as it matters.
    struct Past {
        struct Slot {
            Time time; ///< its first look
            std::uint64_t held = 0;
            std::uint64_t other = 0;
        };

        std::uint64_t id = 0;
        std::deque<Slot> slots; ///< the most in each few seconds, for as long as the window
        Slot older;             ///< the most before those, within the last half of an hour
        Slot oldest;            ///< the same of the half before
    };

    /// Someone whom steps were taken against.
    struct Touched {
        Suspect suspect;
        std::size_t next = 0; ///< of the policy's steps
        Time time{};          ///< of the last one
        bool frozen = false;
        bool killed = false;
    };

    void follow_pressure(const Reading &reading);
    bool may_tell_nobody() const;
    Action tell_nobody();
    void remember(const std::vector<Holder> &holders);

    /// The most that it held until so long ago.
    Past::Slot before(const Holder &holder, Duration ago) const;
    /// How far back growth counts: a guard that is young has seen nobody's usual size yet.
    Duration window() const;
    Suspect weigh(const Holder &holder) const;
    /// Why nothing may be done to it, whatever it took; empty where something may.
    std::string immunity(const Holder &holder) const;
    /// Whether one in a group is protected.
    bool has_protected(const Holder &group, const std::vector<Holder> &holders) const;
    /// Weighs a group's rest by what was found of the group.
    void judge_rest(Suspect &rest, const Suspect &group, const std::vector<Holder> &holders) const;
    /// The same of a group, by what is in it.
    std::string immunity_of_group(const Suspect &group, const std::vector<Suspect> &all,
                                  const std::vector<Holder> &holders) const;
    /// Less growth than this is nothing to act against, nor to turn to another for.
    std::uint64_t much() const;

    const Touched *touched(std::uint64_t id) const;
    /// Whether one that was killed is about to give back what it held. The driver may free it after
    /// the process is gone, and its cgroup, too.
    bool is_dying(const std::vector<Holder> &holders) const;
    std::optional<Suspect> suspect(const std::vector<Holder> &holders) const;
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
    Time next_look_{}; ///< at who holds what, with nothing the matter

    std::optional<Reading> reading_;
    std::uint64_t obtainable_ = 0;
    double pressure_ = 0;
    std::deque<Reading> readings_; ///< as far back as the pressure is measured
    std::optional<Time> low_since_;
    std::optional<Time> short_since_;
    std::optional<Time> well_since_;
    std::optional<Time> strained_since_;

    bool acting_ = false;
    Time step_at_{};                           ///< no sooner
    std::optional<std::uint64_t> raised_from_; ///< the reserve before
    std::uint64_t raised_to_ = 0;
    std::uint64_t obtainable_then_ = 0;                          ///< at the last step
    std::uint64_t most_obtainable_ = 0;                          ///< since then
    Time rose_{};                                                ///< when that last became more
    std::unordered_map<std::uint64_t, std::uint64_t> held_then_; ///< the same, by the cgroup's id
    std::vector<Touched> touched_;                               ///< the last is whom it is about
    bool reclaiming_ = false;
    std::optional<Time> released_;

    std::optional<Time> told_nobody_;
    std::optional<Time> first_look_;
    std::minstd_rand chance_;                      ///< when to look next
    Time half_hour_{};                             ///< when it began
    std::unordered_map<std::uint64_t, Past> past_; ///< by the cgroup's id
};

} // namespace umacct
