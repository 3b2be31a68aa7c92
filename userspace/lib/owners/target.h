// SPDX-License-Identifier: GPL-2.0-or-later
/// The object that a user's TARGET names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/host/cgroup.h"
#include "lib/owners/owners.h"

namespace umacct {

enum class FoundBy { path, unit, name, id, pid };

struct Target {
    std::string path;                 ///< the cgroup
    std::uint64_t id = 0;             ///< its id
    std::optional<std::uint32_t> pid; ///< set if a process was named
    FoundBy found = FoundBy::path;
};

/// Understands, in this order; the first match wins:
///  1. a path: of a directory in the cgroup file system where it begins with "./" or
///     "../", else of a cgroup, with or without the mount point or the first "/";
///  2. a systemd unit, "nginx.service" or "nginx" for it;
///  3. a container's or a pod's name: "vllm", "default/llm-0", "llm-0",
///     "default/llm-0/vllm";
///  4. the beginning of a container's id or a pod's uid: 4 characters, one of them a letter;
///  5. a pid: the cgroup of that process.
/// What a tenant can make, which is what is inside of a container, a service or a user's
/// session, is taken for 2 to 4 only where there is nothing outside. A number that is a
/// pid and, by 3 or 4, something else too, is refused.
///
/// "path:", "unit:", "container:", "pod:" and "pid:" before it leave no doubt; after
/// "container:" and "pod:", an id may be digits alone.
///
/// Throws Error (failed) when nothing or more than one thing matches.
Target resolve_target(std::string_view text, const Cgroups &cgroups, const Owners &owners);

} // namespace umacct
