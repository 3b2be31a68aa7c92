// SPDX-License-Identifier: GPL-2.0-or-later
/// Pieces of the text output that more than one verb prints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/host/cgroup.h"
#include "lib/module/model.h"
#include "lib/owners/owners.h"

namespace umacct::tool {

/// A name that others chose, safe to print: control characters, which could
/// drive the terminal, become '?'.
std::string printable(std::string_view text);

/// A cgroup for people: its path, from its container or pod where it names one:
/// "docker vllm/init", "docker 0123456789ab/init".
std::string display_path(const Owners &owners, std::string_view path);

/// The same without what is above its last component, for a list where that is seen.
std::string short_name(const Owners &owners, std::string_view path);

/// "1 process", "2 processes".
std::string counted(std::uint64_t count, const char *one, const char *many);

/// What the kernel's own controller says of a cgroup.
struct MemoryController {
    std::optional<std::uint64_t> current; ///< empty where it can't be read
    std::optional<std::uint64_t> max;     ///< the same; UMACCT_UNLIMITED for "max"
};

/// From the module where it knows; else from the cgroup's directory.
MemoryController memory_controller(const Cgroups &cgroups, const Account &account);

/// A size or limit that may be unknown: "-" then.
std::string format_known(const std::optional<std::uint64_t> &bytes);

/// What makes the module's figures wrong or incomplete, one sentence each.
std::vector<std::string> warnings(const Status &status);

} // namespace umacct::tool
