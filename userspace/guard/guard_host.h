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
#include "lib/orders/carry_out.h"

namespace umacct {

/// Whether the system lets this process write to cgroups.
bool may_write_cgroups(const Cgroups &cgroups);

/// Returns an event: step, target and the numbers that led to it. line: the same for people.
Json event_of(const Guard::Action &action, const std::string &line, bool failed, bool dry_run);

/// The processes that were in a cgroup when it was killed, by the cgroup's id.
using KilledProcesses = std::unordered_map<std::uint64_t, std::unordered_set<pid_t>>;

class GuardHost {
public:
    /// Takes what was done, for programs and in words, or why it could not be.
    using Tell = std::function<void(const Json &event, const std::string &line, bool failed)>;

    GuardHost(Connection &connection, Machine &machine, Tell tell);

    /// Another policy, or none; what was done by the last one is undone.
    /// reserve: the one that other orders ask for, which is the least.
    void set(const std::optional<GuardPolicy> &policy, std::uint64_t reserve);

    /// Undoes the steps of an earlier umacctd that was killed. Throws Error (missing) if the module
    /// isn't loaded.
    void recover();

    /// Undoes all that was done.
    void stop();

    /// Returns the time of the next run(), if any.
    std::optional<Guard::Time> due() const;

    /// Throws Error where there is nothing to read.
    void run();

    /// Returns the holders: the possible targets and their groups, which precede their members. A
    /// tenant's group also stands for those of its cgroups that are too many, or too deep, to be
    /// looked at.
    std::vector<Holder> holders();

private:
    void act(const std::vector<Guard::Action> &actions);
    /// Returns what an action's line says in addition.
    std::string perform(const Guard::Action &action);
    void reclaim(const Guard::Action &action) const;
    void signal(const std::string &path);
    void kill(const Holder &holder);
    void thaw(const std::string &path);
    void write_state() const;
    /// Writes the current ranking for "umacct show guard".
    void publish(const std::vector<Holder> &holders) const;

    Connection &connection_;
    Machine &machine_;
    Tell tell_;
    std::optional<Guard> guard_;
    std::filesystem::path state_;         ///< the file
    Json last_;                           ///< the last step
    std::vector<std::string> frozen_;     ///< cgroups that the guard froze
    KilledProcesses killed_;              ///< processes of recently killed cgroups
    std::uint64_t reserve_ = 0;           ///< the one that other orders ask for
    std::optional<std::uint64_t> raised_; ///< the guard's reserve
};

} // namespace umacct
