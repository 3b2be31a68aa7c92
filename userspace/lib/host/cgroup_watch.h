// SPDX-License-Identifier: GPL-2.0-or-later
/// Cgroups as they come and go: the kernel tells of each, nothing is searched for.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "lib/host/cgroup.h"
#include "lib/host/file_descriptor.h"

namespace umacct {

class CgroupWatch {
public:
    struct Changes {
        std::vector<std::string> appeared; ///< parents first
        std::vector<std::string> gone;
    };

    /// Throws Error (failed) when the kernel has no room for it.
    explicit CgroupWatch(const Cgroups &cgroups);

    /// Becomes readable when there is something to take.
    int fd() const { return inotify_.get(); }

    /// What changed since; at first, all that there are. Doesn't wait. Throws Error (failed)
    /// when the kernel follows no more.
    Changes take();

private:
    void follow(const std::string &path, std::vector<std::string> &appeared);
    void follow_everything(std::vector<std::string> &appeared);

    const Cgroups &cgroups_;
    FileDescriptor inotify_;
    std::unordered_map<int, std::string> paths_; ///< by the kernel's number of the watch
    bool first_ = true;
};

} // namespace umacct
