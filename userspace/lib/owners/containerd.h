// SPDX-License-Identifier: GPL-2.0-or-later
/// containerd: what it wrote down about its containers.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "lib/owners/owner.h"
#include "lib/owners/spec.h"
#include "lib/owners/state_file.h"

namespace umacct {

std::optional<RuntimeSpec> containerd_spec(StateFiles &files, const std::string &id);

/// The containers whose cgroup is at a path that doesn't say so: "/NAMESPACE/ID", or
/// whatever its maker asked for; by that path.
std::unordered_map<std::string, Owner> containerd_owners(StateFiles &files);

} // namespace umacct
