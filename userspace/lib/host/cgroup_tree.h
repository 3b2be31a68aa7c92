// SPDX-License-Identifier: GPL-2.0-or-later
/// The tree of cgroups: walking it, and the attributes of a cgroup's directory.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include <sys/types.h>

#include "lib/host/cgroup.h"

namespace umacct {

/// Called for each cgroup of a walk; returns whether to descend into it.
using VisitCgroup = std::function<bool(const std::string &path)>;

/// Calls visit for a cgroup and those below it, parents first. Those that vanish meanwhile are
/// left out. No folder is open while visit runs: a tenant chooses how deep its cgroups nest.
void walk_cgroups(const Cgroups &cgroups, const std::string &from, const VisitCgroup &visit);

/// Attributes of a cgroup's directory.
struct CgroupFolder {
    std::uint64_t id = 0; ///< the kernel's, as Cgroups::id()
    uid_t owner = 0;      ///< not root's: it was delegated
    bool is_leaf = false; ///< nothing is below it
};

/// Empty when there is no such cgroup.
std::optional<CgroupFolder> folder_of(const Cgroups &cgroups, std::string_view path);

/// The extended attribute of its directory; empty when it has none, or may not be read.
std::optional<std::string> attribute_of(const Cgroups &cgroups, std::string_view path,
                                        const char *name);

} // namespace umacct
