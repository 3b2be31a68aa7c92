// SPDX-License-Identifier: GPL-2.0-or-later
/// The last policy that was good, as files, for a start that finds a bad one: a mistake in /etc
/// doesn't leave the machine without limits. While umacctd runs it is the one in force.
#pragma once

#include <filesystem>
#include <optional>

#include "lib/policy/policy.h"

namespace umacct {

class LastGood {
public:
    /// root: where /var is.
    explicit LastGood(const std::filesystem::path &root);

    /// The files that a policy was read from just now. Where there is no room for them the ones
    /// before stay.
    void keep(const std::vector<std::filesystem::path> &files) const;

    /// The policy that was kept; empty for none, or where it is broken.
    std::optional<Policy> policy() const;

    /// Whether it was kept from these files, as they are now.
    bool is_of(const std::vector<std::filesystem::path> &files) const;

private:
    std::filesystem::path folder_;
};

struct PolicyInForce {
    Policy policy;
    bool differs = false; ///< umacctd has not taken what the files say now, or has refused it
};

/// What umacctd goes by; what the files below root say where it does not run, or the caller may
/// not know. Throws PolicyError.
PolicyInForce policy_in_force(const std::filesystem::path &root);

} // namespace umacct
