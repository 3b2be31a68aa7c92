// SPDX-License-Identifier: GPL-2.0-or-later
/// The authority over a cgroup: this machine's root, or a tenant.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/host/cgroup.h"
#include "lib/host/cgroup_tree.h"

namespace umacct {

/// Whether a cgroup is a tenant's: it is a container, or it was delegated to a user, or it is below
/// one of these. Root in a container is a tenant like any other: what it calls its cgroups, which
/// attributes user.* it gives them and how many it makes is its word, not this machine's.
bool is_tenants(const Cgroups &cgroups, std::string_view path);

/// Returns the tenant that has a part of what is bounded: the first two components of a path, as in
/// "/user.slice/user-1000.slice".
std::string_view tenant_of(std::string_view path);

/// Whether a cgroup is acted upon, and shown, as one with all that is in it: a service, a session,
/// a container. A user's manager isn't: what it runs are services of their own.
bool is_whole(const Cgroups &cgroups, std::string_view path);

/// Whether a cgroup is a group of one tenant: a user's, a pod, or what was delegated.
bool is_tenants_group(std::string_view path, const CgroupFolder &folder);

/// Whether a cgroup that isn't root's has to be acted against as a whole, whatever it is called and
/// whatever is below it: its tenant runs processes in the cgroup itself. The kernel keeps the
/// memory controller from what is below a cgroup for as long as processes are in that cgroup.
bool is_tenants_unit(const Cgroups &cgroups, const std::string &path, const CgroupFolder &folder,
                     bool has_memory);

/// Value of systemd's ManagedOOMPreference=.
enum class Preference : std::uint8_t { none, avoid, omit };

/// Reads it from the xattrs that systemd writes for systemd-oomd. A tenant may write those that
/// begin with "user.", root alone the others.
Preference preference_of(const Cgroups &cgroups, const std::string &path);

} // namespace umacct
