// SPDX-License-Identifier: GPL-2.0-or-later
/// Has the module do what the policy says, for what there is and what appears. What it set
/// stays in the kernel when it ends, and is found there when it begins: what a rule set that
/// is gone by then is lifted, unless somebody changed it since.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/policy.h"
#include "daemon/set_by_policy.h"
#include "lib/json.h"
#include "lib/machine.h"
#include "lib/module/module.h"

namespace umacct {

class Enforcer {
public:
    using Clock = std::chrono::steady_clock;
    /// Takes a line about what was changed, or could not be, and the same for programs: "failed",
    /// and as far as they are known "path", "rule" and "place" (of the rule) and what was set.
    using Tell = std::function<void(const std::string &line, const Json &event)>;

    Enforcer(Connection &connection, Machine &machine, Policy policy, Tell tell);

    /// Of cgroups that came and went. Throws Error (missing) when the module isn't loaded:
    /// apply_all() is for when it is.
    void follow(const std::vector<std::string> &appeared, const std::vector<std::string> &gone);

    /// The machine, and all cgroups that there are: what isn't so already is set.
    void apply_all();

    /// Another policy, for all that there is: all of it or, when it throws, nothing.
    void replace(Policy policy);

    /// When to call retry(), if ever: a runtime has yet to write down how a container is called.
    std::optional<Clock::time_point> due() const { return due_; }

    void retry();

    const Policy &policy() const { return policy_; }

    /// How many cgroups it knows.
    std::size_t size() const { return known_.size(); }

private:
    /// What an account was before a change.
    struct Undo {
        std::string path;
        std::uint64_t id;
        AccountChange before;
    };

    using Undos = std::vector<Undo>;

    void apply_machine();
    void apply(const std::string &path, Undos *undos);
    /// The same; what the module refuses is told.
    void try_to_apply(const std::string &path);
    /// source: the rule that says so, if one does. waits: its name may come yet, so that nothing is
    /// taken from it.
    void change(const std::string &path, std::uint64_t &id, const AccountChange &wanted,
                const Rule *source, bool waits, Undos *undos);
    bool waits_for_name(const std::string &path, const std::optional<Owner> &owner);
    void roll_back(const Undos &undos, const Status &status);
    void tell_failure(const std::string &line, const std::string &path = "") const;

    Connection &connection_;
    Machine &machine_;
    Policy policy_;
    Tell tell_;
    std::uint64_t total_;
    SetByPolicy set_;
    /// Every cgroup that there is, and its id where that was asked for.
    std::unordered_map<std::string, std::uint64_t> known_;
    std::unordered_map<std::string, Clock::time_point> unnamed_; ///< until when a name may come
    std::optional<Clock::time_point> due_;
};

} // namespace umacct
