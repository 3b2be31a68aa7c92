// SPDX-License-Identifier: GPL-2.0-or-later
/// Reads what the guard decides by, and does what it decides. What can be undone is written
/// down before it is done, so that who comes after one that was killed undoes it.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <nlohmann/json.hpp>
#include <sys/types.h>

#include "guard/guard.h"
#include "lib/json.h"
#include "lib/machine.h"
#include "lib/module/module.h"

namespace umacct {

/// Whether the system lets this process write to cgroups.
bool may_write_cgroups(const Cgroups &cgroups);

/// What was done, to whom, and the numbers that led to it. line: the same for people.
Json event_of(const Guard::Action &action, const std::string &line, bool failed, bool dry_run);

/// The processes that were in a cgroup when it was killed, by the cgroup's id.
using KilledProcesses = std::unordered_map<std::uint64_t, std::unordered_set<pid_t>>;

class GuardHost {
public:
    /// Takes what was done, for programs and in words, or why it could not be.
    using Tell = std::function<void(const Json &event, const std::string &line, bool failed)>;

    GuardHost(Connection &connection, Machine &machine, Tell tell);

    /// Another policy, or none; what was done by the last one is undone.
    void set(const std::optional<GuardPolicy> &policy);

    /// What was left by another that did not end is undone. Throws Error (missing) when the
    /// module isn't loaded.
    void recover();

    /// Undoes all that was done.
    void stop();

    /// When to call run(), if ever.
    std::optional<Guard::Time> due() const;

    /// Throws Error where there is nothing to read.
    void run();

    /// What everybody holds: of those that may be acted against, and groups of them, which come
    /// before what is in them. A tenant's group also stands for those of its cgroups that are too
    /// many, or too deep, to be looked at.
    std::vector<Holder> holders();

private:
    void act(const std::vector<Guard::Action> &actions);
    void perform(const Guard::Action &action);
    void reclaim(const Guard::Action &action) const;
    void signal(const std::string &path) const;
    void kill(const Guard::Action &action);
    bool was_frozen(const std::string &path) const;
    /// What an action's line says besides, where somebody else froze the cgroup.
    std::string frozen_by_another(const Guard::Action &action);
    void look_who_froze(const std::string &path);
    void forget_reserve();
    void note(const Guard::Action &action);
    void write_state() const;
    /// For "umacct guard": as it stands now.
    void publish(const std::vector<Holder> &holders) const;

    Connection &connection_;
    Machine &machine_;
    Tell tell_;
    std::optional<Guard> guard_;
    std::filesystem::path state_;           ///< the file
    Json last_;                             ///< what was done last
    std::vector<std::string> frozen_;       ///< by it
    std::vector<std::string> found_frozen_; ///< by somebody else, who thaws them
    KilledProcesses killed_;                ///< of cgroups that were killed of late
    std::uint64_t reserve_ = 0;             ///< that the module had at the last reading
    std::optional<std::pair<std::uint64_t, std::uint64_t>> raised_; ///< from, to
};

} // namespace umacct
