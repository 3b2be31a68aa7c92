// SPDX-License-Identifier: GPL-2.0-or-later
/// The policy for a cgroup that a person names, be it there or not.
#pragma once

#include <optional>
#include <string>

#include "lib/machine.h"
#include "lib/orders/carry_out.h"
#include "lib/policy/policy.h"

namespace umacct::tool {

/// A cgroup that a rule can be for.
struct Who {
    Target target; ///< its path is empty where it isn't known yet
    std::optional<Owner> owner;
};

/// The policy for one cgroup.
struct Found {
    /// Finds a cgroup that there is. Throws Error.
    Found(const Machine &machine, const Policy &by, const std::string &word);
    Found(const Machine &machine, Policy by, Who who, bool is_there);
    Found(const Found &) = delete; // the rule is one of the policy's
    Found &operator=(const Found &) = delete;
    Found(Found &&) = delete;
    Found &operator=(Found &&) = delete;
    ~Found() = default;

    /// The same of what need not run yet.
    static Found of(const Machine &machine, const Policy &by, const std::string &word);

    Subject subject() const {
        return {.path = target.path, .owner = owner ? &*owner : nullptr, .inside = inside};
    }

    Policy policy;
    Target target;
    std::optional<Owner> owner;
    bool runs;
    bool inside;
    const Rule *rule; ///< null for none
    Orders orders;    ///< those that the caller may read
    AccountChange change;

private:
    Orders read(const Machine &machine) const;
};

} // namespace umacct::tool
