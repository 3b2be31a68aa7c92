// SPDX-License-Identifier: GPL-2.0-or-later
/// The last policy that was good, as files, for a start that finds a bad one: a mistake in /etc
/// doesn't leave the machine without limits.
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

private:
    std::filesystem::path folder_;
};

} // namespace umacct
