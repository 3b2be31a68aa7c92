// SPDX-License-Identifier: GPL-2.0-or-later
/// What to do where memory runs short, and to whom. It decides, from readings alone, and what
/// time it is comes with them; who asks it reads and acts.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/policy.h"

namespace umacct {

/// A cgroup and what it would give back, with what is below it.
struct Holder {
    std::string path;
    std::uint64_t id = 0;
    std::uint64_t driver = 0; ///< taken through the driver, whoever else counts it
    std::uint64_t other = 0;  ///< all else but page cache, and nothing of it twice
    Limit soft;
    /// Steps are for a service, a container or a session as a whole, and for what processes are
    /// in outside of those. Others are there because of what is below them.
    bool whole = false;

    std::uint64_t held() const { return driver + other; }
};

/// Whom a step is for, and why.
struct Suspect {
    Holder holder;
    std::uint64_t grown = 0;        ///< beyond what it had held until then
    std::chrono::seconds within{0}; ///< until when: so long ago
    std::uint64_t over_soft = 0;
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
    };

    struct Action {
        GuardStep step = GuardStep::reclaim;
        bool undo = false;
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

    /// Less than this is nothing to speak of.
    std::uint64_t significant() const;
    /// So much is worth a step against somebody else.
    std::uint64_t much() const;

    bool is_protected(std::string_view path) const;

private:
    /// What a cgroup held, as far as it matters.
    struct Past {
        struct At {
            Time time;
            std::uint64_t held = 0;
            std::uint64_t other = 0;
        };

        std::uint64_t id = 0;
        Time born{};           ///< or before anybody looked
        std::deque<At> highs;  ///< each time it held more than ever
        std::deque<At> values; ///< lately
    };

    /// Someone whom steps were taken against.
    struct Touched {
        Suspect suspect;
        std::size_t next = 0; ///< of the policy's steps
        Time time{};          ///< of the last one
        bool frozen = false;
        bool killed = false;
    };

    /// A cgroup, beside others, by what it took since some moment.
    struct Scored {
        Suspect suspect;
        std::uint64_t score = 0;
    };

    void follow_pressure(const Reading &reading);
    void remember(const std::vector<Holder> &holders);

    std::optional<Suspect> choose(const std::vector<Holder> &holders) const;
    /// The one who took most, since so long ago.
    std::optional<Scored> best(const std::vector<Holder> &holders, std::chrono::seconds window,
                               bool beyond_highs) const;
    /// How much less could be had than in lean times until so long ago.
    std::uint64_t lost(std::chrono::seconds window) const;
    Scored score(const Holder &holder, std::chrono::seconds window, bool beyond_highs) const;
    /// What it had to itself so long ago: the most that it ever held until then, or what it
    /// held least since.
    Past::At before(const Holder &holder, std::chrono::seconds window, bool beyond_highs) const;
    bool may_touch(const Scored &scored, const std::vector<Holder> &holders) const;

    const Touched *touched(const Holder &holder) const;
    /// Whether one that was killed is about to give back what it held.
    bool is_dying(const std::vector<Holder> &holders) const;
    std::optional<Suspect> suspect(const std::vector<Holder> &holders) const;
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

    bool acting_ = false;
    Time step_at_{};                           ///< no sooner
    std::optional<std::uint64_t> raised_from_; ///< the reserve before
    std::uint64_t raised_to_ = 0;
    std::uint64_t obtainable_then_ = 0; ///< at the last step
    std::vector<Touched> touched_;      ///< the last is whom it is about
    bool reclaiming_ = false;
    std::optional<Time> released_;

    bool first_ = true; ///< nobody was seen before
    std::map<std::string, Past> past_;
    std::deque<std::pair<Time, std::uint64_t>> obtainables_;
};

} // namespace umacct
