// SPDX-License-Identifier: GPL-2.0-or-later
#include "oci_hook/hook.h"

#include <exception>
#include <optional>
#include <ostream>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "lib/contract.h"
#include "lib/error.h"
#include "lib/machine.h"
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

/// What was asked for can't be enforced, through no fault of who asked.
class Unenforced : public Error {
public:
    using Error::Error;
};

/// What umacctd goes by, or would at its start.
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
          asked_(read_asked(read_config(state_.bundle))),
          connection_(surroundings.connect),
          machine_(surroundings.proc, surroundings.root, surroundings.connect),
          policy_(policy_of(surroundings.root)) {}

    bool may_start_unlimited() const { return policy_.containers.start_unlimited.value_or(false); }

    /// Throws Unenforced, or Error.
    void apply() {
        if (!is_asked() && policy_.rules.empty())
            return;
        for (int attempt = 0; attempt < attempts; ++attempt) {
            const ContainerCgroup cgroup(machine_.cgroups(), machine_.proc(), state_);

            apply_to(cgroup);
            if (cgroup.is_still_it())
                return;
        }
        throw Error(Failure::failed,
                    "cannot find its cgroup: it is moved from one to another while it starts");
    }

private:
    bool is_asked() const { return asked_.is_for_umacct() || has_memory_limit(); }

    bool has_memory_limit() const {
        return policy_.containers.from_memory_limit.value_or(false) && asked_.memory_limit;
    }

    void apply_to(const ContainerCgroup &cgroup) {
        const Rule *rule = rule_for(cgroup.path());

        if (rule == nullptr && !is_asked())
            return;
        cgroup.check_own();
        const std::uint64_t total = total_for(rule);
        const Contract contract = asked_.contract(total, has_memory_limit());
        const AccountChange change = policy_.change(cgroup.path(), rule, total, contract);

        if (change.empty())
            return;
        try {
            set(cgroup, contract, change);
        } catch (const Error &error) {
            // What a rule alone says umacctd sets, whoever runs the runtime.
            if (error.failure() == Failure::permission && contract.empty())
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

    void set(const ContainerCgroup &cgroup, const Contract &contract, AccountChange change) {
        // umacctd reads it from now on, and has read it before it sets anything once the lock is
        // ours: what it sets is not more than this. It does so for a module that comes later, too.
        if (!contract.empty()) {
            if (const int code = write_contract(machine_.cgroups(), cgroup.path(), contract))
                throw Error(failure_of(code),
                            fmt::format("cannot keep what it asks for with its cgroup: {}",
                                        std::generic_category().message(code)));
        }
        Module &module = connection_.loaded();
        const ContractLock lock(machine_.root(), ContractLock::Setter::hook);
        // umacctd may have been there before.
        fit_soft(change, module.account(cgroup.id()).value_or(Account()));
        const Enforcement made = module.set_account(cgroup.id(), change);
        if (made.driver_state != UMACCT_DRIVER_ABSENT && !made.reason.empty())
            throw Unenforced(Failure::failed,
                             fmt::format("nothing enforces its limits: {}", made.reason),
                             "'umacct doctor' says more");
    }

    const Rule *rule_for(const std::string &path) {
        if (policy_.rules.empty())
            return nullptr;
        // To learn a container's name takes looking into its runtime's files.
        const auto owner = policy_.needs_names() ? machine_.owners().of(path) : owner_of(path);

        return policy_.match({.path = path,
                              .owner = owner ? &*owner : nullptr,
                              .inside = is_made_inside(path, machine_.owners())});
    }

    /// Of the machine's memory, where something is a share of it; that takes asking.
    std::uint64_t total_for(const Rule *rule) const {
        const auto &keep = policy_.containers.keep;
        const bool is_share = asked_.has_shares() || (keep && keep->percent) ||
                              (rule != nullptr && rule->settings.has_shares());

        return is_share ? machine_.meminfo().total() : 0;
    }

    ContainerState state_;
    Asked asked_;
    Connection connection_;
    Machine machine_;
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
