// SPDX-License-Identifier: GPL-2.0-or-later
/// Has the module do what the orders of each cgroup come to, for what there is and what appears.
/// A setting that no order asks for is made neutral.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lib/host/cgroup_watch.h"
#include "lib/json.h"
#include "lib/machine.h"
#include "lib/module/module.h"
#include "lib/orders/carry_out.h"
#include "lib/policy/policy.h"

namespace umacct {

class Enforcer {
public:
    using Clock = std::chrono::steady_clock;
    /// Takes a line about what was changed, or could not be, and the same for programs: "failed",
    /// and as far as they are known "path", "rule" and "place" (of the rule) and what was set.
    using Tell = std::function<void(const std::string &line, const Json &event)>;

    Enforcer(Connection &connection, Machine &machine, Policy policy, Tell tell);

    /// Sets what the policy says of cgroups that came, and forgets those that went. A failure for
    /// one cgroup is reported by Tell, and the others are set all the same. Throws Error (missing)
    /// when the module isn't loaded: apply_all() is for when it is.
    void follow(const std::vector<std::string> &appeared,
                const std::vector<CgroupWatch::Gone> &gone);

    /// The machine, and all cgroups that there are: what isn't so already is set. Throws Error
    /// (permission) where nothing may be set at all.
    void apply_all();

    /// Another policy, for all that there is. What differs is set in one go, so that nothing is
    /// lifted meanwhile that both of them say. Throws Error where the module refuses what the
    /// policy says of the machine: then nothing has changed. taken: called once it is certain that
    /// the policy is taken, before any cgroup is looked at. Returns the
    /// number of cgroups for which the module refused something; Tell reports each.
    std::size_t replace(Policy policy, const std::function<void()> &taken = {});

    /// Returns the time of the next retry(), if any: a runtime has yet to write down a container's
    /// name, the module did not answer or was short of memory, or lines are left to report.
    std::optional<Clock::time_point> due() const;

    void retry();

    const Policy &policy() const { return policy_; }

private:
    /// Lines about cgroups that had no line each, as many came at once.
    struct Unreported {
        std::size_t set = 0;
        std::size_t failed = 0;
        std::string below; ///< common ancestor of these cgroups
        std::string last;  ///< last of their lines
    };

    /// The settings of the module's accounts that have any, by the cgroups' ids.
    using Known = std::unordered_map<std::uint64_t, AccountChange>;

    void apply_machine();
    /// Applies it to all cgroups. Returns for how many the module refused something.
    std::size_t apply_to_all();
    /// The same; where the module does not answer, retry() goes on.
    std::size_t apply_to_all_or_later();
    /// known: null where it has to be asked for. fresh: the cgroup was made just now.
    void apply(const std::string &path, const Known *known, bool fresh);
    /// The same. Throws OwnerChanged if a hook names the cgroup meanwhile.
    void apply_by_owner(const std::string &path, const Known *known, bool fresh);
    /// The same. False if the module refused something, which Tell reports.
    bool try_to_apply(const std::string &path, const Known *known, bool fresh);
    /// Says where systemd has not set what the rule has it set.
    void check_total(const std::string &path, const Rule &rule);
    void change(Errand errand, const Rule *rule);
    bool waits_for_name(const std::string &path, const std::optional<Owner> &owner);
    bool has_room_for(const std::string &path) const;
    /// Logs a line about a cgroup: a bounded number in a period, and the rest as one line after it.
    void tell_of(const std::string &path, const std::string &line, Json event);
    void tell_rest();

    Connection &connection_;
    Machine &machine_;
    Policy policy_;
    Tell tell_;
    std::uint64_t total_;
    std::unordered_map<std::string, Clock::time_point> unnamed_; ///< end of the wait for a name
    std::unordered_set<std::string> again_; ///< cgroups for which the module was short of memory
    std::optional<Clock::time_point> due_;
    bool is_partial_ = false; ///< the policy is not applied to all cgroups yet
    Clock::time_point telling_since_{};
    std::size_t reported_ = 0; ///< lines since then
    Unreported unreported_;
};

} // namespace umacct
