// SPDX-License-Identifier: GPL-2.0-or-later
/// What a user means by TARGET.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/host/cgroup.h"
#include "lib/owners/owners.h"

namespace umacct {

struct Target {
    std::string path;                 ///< the cgroup
    std::uint64_t id = 0;             ///< its id
    std::optional<std::uint32_t> pid; ///< when a process was named
};

/// Understands, in this order:
///  - a pid: digits only, the cgroup of that process if there is one;
///  - "." or a path that begins with "./" or "../": a directory in the cgroup
///    file system, from the working directory;
///  - a path that begins with "/": a cgroup, with or without the mount point;
///  - another path: a cgroup from the root of the hierarchy;
///  - a systemd unit ("nginx.service", and "nginx" for it), a container's name, a pod
///    ("default/llm-0", "llm-0") or one of its containers ("default/llm-0/vllm",
///    "vllm"), the beginning of a container id or pod uid, 4 characters or more.
/// Throws Error (failed) when nothing or more than one thing matches.
Target resolve_target(std::string_view text, const Cgroups &cgroups, const Owners &owners);

} // namespace umacct
