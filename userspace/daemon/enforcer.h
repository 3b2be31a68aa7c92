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

#include "daemon/set_by_policy.h"
#include "lib/host/cgroup_watch.h"
#include "lib/json.h"
#include "lib/machine.h"
#include "lib/module/module.h"
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
    /// policy says of the machine: then nothing has changed. Returns the
    /// number of cgroups for which the module refused something; Tell reports each.
    std::size_t replace(Policy policy);

    /// When to call retry(), if ever: a runtime has yet to write down how a container is called,
    /// or there is more to tell.
    std::optional<Clock::time_point> due() const;

    void retry();

    const Policy &policy() const { return policy_; }

private:
    /// Lines about cgroups that had no line each, as many came at once.
    struct Untold {
        std::size_t set = 0;
        std::size_t failed = 0;
        std::string below; ///< what they are all below
        std::string last;  ///< of them
    };

    void apply_machine();
    void apply(const std::string &path);
    /// The same. False if the module refused something, which Tell reports.
    bool try_to_apply(const std::string &path);
    /// source: the rule that says so, if one does. waits: the runtime may still report the name,
    /// so no setting is reset yet.
    void change(const std::string &path, const Rule *source, bool waits);
    bool waits_for_name(const std::string &path, const std::optional<Owner> &owner);
    bool has_room_for(const std::string &path) const;
    /// About a cgroup: so many of them each few seconds, and the rest in one line after that.
    void tell_of(const std::string &path, const std::string &line, Json event);
    void tell_rest();

    Connection &connection_;
    Machine &machine_;
    Policy policy_;
    Tell tell_;
    std::uint64_t total_;
    SetByPolicy set_;
    std::unordered_map<std::string, Clock::time_point> unnamed_; ///< until when a name may come
    std::optional<Clock::time_point> due_;
    Clock::time_point telling_since_{};
    std::size_t told_ = 0; ///< since then
    Untold untold_;
};

} // namespace umacct
