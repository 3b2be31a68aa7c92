// SPDX-License-Identifier: GPL-2.0-or-later
/// The last policy that was good, as files, for a start that finds a bad one: a mistake in /etc
/// doesn't leave the machine without limits. While umacctd runs it is the one in force.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "lib/policy/policy.h"

namespace umacct {

/// Keeps the files in /etc alone: those in /run end with the machine's start.
class LastGood {
public:
    /// root: where /var is.
    explicit LastGood(const std::filesystem::path &root);

    /// Keeps the texts that a policy was read from, and returns 0; or an errno, with the old ones
    /// kept. policy_in_force() does not go by those then. Where these are kept already,
    /// policy_mark() stays.
    int keep(const std::vector<PolicyText> &texts) const;

    /// The policy that was kept, with what persons have set; empty for none, or where it is broken.
    /// without: a file that is left out.
    std::optional<Policy> policy(const std::filesystem::path &without = {}) const;

    /// Whether the last keep() failed.
    bool is_outdated() const;

    /// Whether it was kept from these.
    bool is_of(const std::vector<PolicyText> &texts) const;

    /// Says why these are a policy that is missing, and not one that was taken away: a file of no
    /// bytes that had some, or no drop-in where another file system is in place of their folder.
    std::vector<Diagnostic> missing(const std::vector<PolicyText> &texts) const;

private:
    int write(const std::vector<PolicyText> &texts) const;
    bool is_drop_in(const std::filesystem::path &file) const;
    bool has_mount() const;
    std::vector<PolicyText> kept() const;
    std::vector<PolicyText> to_keep(const std::vector<PolicyText> &texts) const;

    std::filesystem::path root_;
    std::filesystem::path folder_;
};

struct PolicyInForce {
    Policy policy;
    bool differs = false; ///< umacctd has not taken what the files say now, or has refused it
};

/// Returns the policy that umacctd applies, or would at its start; the one in the files below root
/// if the caller may not know. without: a file that is left out. Throws PolicyError.
PolicyInForce policy_in_force(const std::filesystem::path &root,
                              const std::filesystem::path &without = {});

} // namespace umacct
