// SPDX-License-Identifier: GPL-2.0-or-later
#include "oci_hook/hook.h"

#include <cerrno>
#include <exception>
#include <optional>
#include <ostream>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "lib/error.h"
#include "lib/machine.h"
#include "lib/orders/carry_out.h"
#include "lib/owners/identity.h"
#include "lib/policy/last_good.h"
#include "lib/policy/policy.h"
#include "lib/settings.h"
#include "lib/text.h"
#include "oci_hook/asked.h"
#include "oci_hook/cgroup_of.h"
#include "oci_hook/state.h"

namespace umacct::oci_hook {

namespace {

constexpr int attempts = 8;

/// Error: a request that can't be enforced, through no fault of its author.
class Unenforced : public Error {
public:
    using Error::Error;
};

/// Returns the policy that umacctd applies, or would at its start.
Policy policy_of(const std::filesystem::path &root) {
    try {
        return policy_in_force(root).policy;
    } catch (const PolicyError &) {
        auto last = LastGood(root).policy();

        if (!last)
            throw;
        return std::move(*last);
    }
}

class Hook {
public:
    Hook(const Surroundings &surroundings, ContainerState state)
        : state_(std::move(state)),
          config_(read_config(state_.bundle)),
          asked_(read_asked(config_)),
          connection_(surroundings.connect),
          machine_(surroundings.proc, surroundings.root, surroundings.connect),
          files_(surroundings.root),
          mark_(policy_mark(surroundings.root)),
          policy_(policy_of(surroundings.root)) {}

    bool may_start_unlimited() const { return policy_.containers.start_unlimited.value_or(false); }

    /// Throws Unenforced, or Error.
    void apply() {
        for (int attempt = 1;; ++attempt) {
            try {
                apply_policy();
                return;
            } catch (const PolicyChanged &) {
                if (attempt == attempts)
                    throw;
            }
            // The mark comes first: see OrderLock.
            mark_ = policy_mark(machine_.root());
            policy_ = policy_of(machine_.root());
        }
    }

private:
    void apply_policy() {
        if (!is_asked() && policy_.rules.empty()) {
            keep_identity();
            return;
        }
        for (int attempt = 0; attempt < attempts; ++attempt) {
            const ContainerCgroup cgroup(machine_.cgroups(), machine_.proc(), state_);

            apply_to(cgroup);
            if (cgroup.is_still_it())
                return;
        }
        throw Error(Failure::failed,
                    "cannot find its cgroup: it is moved from one to another while it starts");
    }

    bool is_asked() const { return asked_.is_for_umacct() || has_memory_limit(); }

    bool has_memory_limit() const {
        return policy_.containers.from_memory_limit.value_or(false) && asked_.memory_limit;
    }

    /// Keeps the identity for display. A failure stops no container that has no limit.
    void keep_identity() {
        try {
            const ContainerCgroup cgroup(machine_.cgroups(), machine_.proc(), state_);

            cgroup.check_own();
            keep_owner(machine_.cgroups(), cgroup.path(), identity_of(cgroup).owner);
        } catch (const Error &) { // NOLINT(bugprone-empty-catch): see above
        }
    }

    Identity identity_of(const ContainerCgroup &cgroup) {
        return identify(files_, state_.id, state_.bundle, config_, cgroup.path());
    }

    void apply_to(const ContainerCgroup &cgroup) {
        const Rule *rule = rule_for(cgroup);

        if (rule == nullptr && !is_asked())
            return;
        cgroup.check_own();
        const std::uint64_t total = total_for(rule);
        const Order order = asked_.order(total, has_memory_limit());
        RuleOrder by_rule = policy_.order(cgroup.path(), rule, total);

        if (settle({.rule = by_rule, .container = order, .person = {}}).author.empty())
            return;
        try {
            set(cgroup, order, std::move(by_rule));
        } catch (const Error &error) {
            // umacctd sets what a rule alone says, whichever user runs the runtime.
            if (error.failure() == Failure::permission && order.empty())
                return;
            if (error.failure() == Failure::permission)
                throw Unenforced(error.failure(), error.what(),
                                 "only a runtime that root runs can set limits; for one that a "
                                 "user runs, have a rule in /etc/umacct.toml");
            if (error.failure() == Failure::missing)
                throw Unenforced(error.failure(), error.what(), error.hint());
            throw;
        }
    }

    void set(const ContainerCgroup &cgroup, const Order &order, RuleOrder rule) {
        // Also for a module that comes later: umacctd carries it out then.
        if (!order.empty()) {
            const OrderBook book(machine_.cgroups(), machine_.root());

            if (const int code = book.keep_container(cgroup.path(), order))
                throw Error(failure_of(code),
                            fmt::format("cannot keep what it asks for with its cgroup: {}",
                                        std::generic_category().message(code)));
        }
        const Enforcement made = carry_out(machine_, connection_.loaded(),
                                           {.path = cgroup.path(),
                                            .id = cgroup.id(),
                                            .rule = std::move(rule),
                                            .mark = mark_,
                                            .person = {},
                                            .extent = Extent::ordered,
                                            .always = true})
                                     .made;
        if (made.driver_state != UMACCT_DRIVER_ABSENT && !made.reason.empty())
            throw Unenforced(Failure::failed,
                             fmt::format("nothing enforces its limits: {}", made.reason),
                             "'umacct doctor' says more");
    }

    /// Throws Unenforced if a rule may match it, which isn't known without its name.
    const Rule *rule_for(const ContainerCgroup &cgroup) {
        const std::string &path = cgroup.path();
        const Identity identity = identity_of(cgroup);
        const Rule *rule = policy_.match({.path = path, .owner = &identity.owner, .inside = false});
        bool is_own = true;

        try {
            cgroup.check_own();
        } catch (const Error &) {
            is_own = false;
        }
        // A user's runtime may set no name where root's runtimes alone may keep it: umacctd uses
        // the cgroup's path then.
        const int code = is_own ? keep_owner(machine_.cgroups(), path, identity.owner) : 0;
        if (code == EPERM || user_of(path).value_or(0) != 0 || identity.complete)
            return rule;
        for (const Rule &each : policy_.rules) {
            if (&each == rule)
                break;
            if ((each.container || each.image || each.label) &&
                (!each.cgroup || glob_matches(*each.cgroup, path)))
                throw Unenforced(Failure::failed,
                                 fmt::format("{}, {}, may be for it, and its name cannot be found",
                                             each.name, each.place.text()),
                                 "a rule for its 'cgroup', above that one, decides without a name");
        }
        return rule;
    }

    /// Returns the machine's memory if a setting is a share of it; reading it costs a request.
    std::uint64_t total_for(const Rule *rule) const {
        const auto &keep = policy_.containers.keep;
        const bool is_share = asked_.has_shares() || (keep && keep->percent) ||
                              (rule != nullptr && rule->settings.has_shares());

        return is_share ? machine_.meminfo().total() : 0;
    }

    ContainerState state_;
    std::string config_;
    Asked asked_;
    Connection connection_;
    Machine machine_;
    StateFiles files_;
    std::string mark_; ///< the policy_mark() from before the policy was read
    Policy policy_;
};

/// Runtimes print one line of it, some of them cut off.
void tell(std::ostream &err, const std::string &id, const std::string &what,
          const std::string &hint) {
    err << fmt::format("umacct-hook: {}{}{}{}\n",
                       id.empty() ? "" : fmt::format("container {}: ", printable(id)),
                       printable(what), hint.empty() ? "" : "; ", printable(hint));
}

} // namespace

int run_hook(const std::string &state, const Surroundings &surroundings) {
    std::string id;

    try {
        ContainerState container = read_state(state);

        id = container.id.substr(0, 12);
        Hook hook(surroundings, std::move(container));
        try {
            hook.apply();
        } catch (const Unenforced &error) {
            if (!hook.may_start_unlimited())
                throw;
            tell(
                surroundings.err, id,
                fmt::format("it starts without its limits, as the policy has it: {}", error.what()),
                error.hint());
        }
        return 0;
    } catch (const Unenforced &error) {
        tell(surroundings.err, id,
             fmt::format("it may not start without its limits: {}", error.what()), error.hint());
    } catch (const Error &error) {
        tell(surroundings.err, id, error.what(), error.hint());
    } catch (const std::exception &error) {
        tell(surroundings.err, id, error.what(), "");
    }
    return static_cast<int>(Failure::failed);
}

} // namespace umacct::oci_hook
