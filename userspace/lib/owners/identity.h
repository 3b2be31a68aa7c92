// SPDX-License-Identifier: GPL-2.0-or-later
/// A container's identity as its runtime passed it to a hook, kept in an extended attribute of its
/// cgroup. Writing it needs CAP_SYS_ADMIN, and it goes with the cgroup. So umacctd and the tool
/// know the container, whatever its cgroup's name is, and wherever the runtime keeps its files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "lib/host/cgroup.h"
#include "lib/owners/owner.h"
#include "lib/owners/state_file.h"

namespace umacct {

struct Identity {
    Owner owner;
    /// The runtime's own record of it was found: a name, image or label that is empty is none.
    bool complete = false;
};

/// id, bundle: as the OCI state has them. config: the text of the bundle's config.json. path: of
/// the container's cgroup, which may tell the runtime.
Identity identify(StateFiles &files, const std::string &id, const std::filesystem::path &bundle,
                  const std::string &config, std::string_view path);

/// Whether something was kept with that cgroup; false where the caller may not know.
bool has_kept_owner(const Cgroups &cgroups, std::string_view path);

/// Returns the owner kept with that cgroup; empty if there is none, or the caller may not read it.
std::optional<Owner> kept_owner(const Cgroups &cgroups, std::string_view path);

/// 0, or what is wrong with it as an errno. Labels that have no room are left out.
int keep_owner(const Cgroups &cgroups, std::string_view path, const Owner &owner);

} // namespace umacct
