// SPDX-License-Identifier: GPL-2.0-or-later
/// A first policy for a machine whose CPU and GPU share one memory, from its size and its past:
/// "umacct setup spark".
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lib/containers/edit.h"

namespace umacct::tool::spark {

/// The name of the part, and of its record.
inline constexpr const char *part = "spark";

/// One thing that is proposed.
struct Proposal {
    std::string question; ///< including the reason
    std::string table;    ///< table of the policy: "machine", "guard"
    std::string lines;    ///< keys of that table
    bool taken = true;
};

/// Proposes what the policy does not set yet. root: of the file
/// system. total: the machine's memory, in bytes. Throws PolicyError where the policy is wrong.
std::vector<Proposal> propose(const std::filesystem::path &root, std::uint64_t total);

/// The files for what was taken of the proposals; empty where nothing was.
std::vector<containers::Edit> edits(const std::filesystem::path &root,
                                    const std::vector<Proposal> &proposals);

/// The largest fall of the available memory within two seconds, in the last seven days, in bytes; 0
/// without a history.
std::uint64_t fastest_fall(const std::filesystem::path &root);

} // namespace umacct::tool::spark
