// SPDX-License-Identifier: GPL-2.0-or-later
/// Checks of a policy: values that this machine or the module would refuse, and rules that can
/// never match. "umacct config check", a reload and umacctd's start share it.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/machine.h"
#include "lib/policy/policy.h"

namespace umacct {

/// The machine's properties that limit a policy.
struct MachineFacts {
    std::uint64_t total = 0;         ///< the machine's memory, in bytes
    std::uint64_t largest_block = 0; ///< largest block of the kernel's page allocator, in bytes; 0:
                                     ///< not known

    /// Reads that machine's facts. total: its memory, from the caller, as a view may change /proc.
    static MachineFacts of(const Machine &machine, std::uint64_t total);

    /// The block, in bytes, to keep free where one of @p wanted bytes is asked for: the kernel's
    /// largest at the most. A larger one is never free, whatever is given back for it.
    std::uint64_t block_of(std::uint64_t wanted) const;
};

/// All that is wrong, each with its place; empty where the policy can be applied as a whole.
std::vector<Diagnostic> validate(const Policy &policy, const MachineFacts &facts);

} // namespace umacct
