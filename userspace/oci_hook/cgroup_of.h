// SPDX-License-Identifier: GPL-2.0-or-later
/// The cgroup of a container that is being made, and that it still is the same one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "lib/host/cgroup.h"
#include "lib/host/file_descriptor.h"
#include "oci_hook/state.h"

namespace umacct::oci_hook {

class ContainerCgroup {
public:
    /// Throws Error (failed) where the container's process is gone, or its cgroup can't be found.
    ContainerCgroup(const Cgroups &cgroups, const std::filesystem::path &proc,
                    const ContainerState &state);

    /// Throws Error (failed) where that is the runtime's own, or above it.
    void check_own() const;

    const std::string &path() const { return path_; }

    std::uint64_t id() const { return id_; }

    /// The process is in it, and its path still means the cgroup of that id.
    bool is_still_it() const;

private:
    /// Returns the cgroup of the process that was opened, not of a later one with its pid.
    std::string read_path() const;

    const Cgroups &cgroups_;
    FileDescriptor process_;
    std::string inner_; ///< the process's, which the container's is at or above
    std::string path_;
    std::uint64_t id_ = 0;
};

} // namespace umacct::oci_hook
