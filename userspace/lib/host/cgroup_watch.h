// SPDX-License-Identifier: GPL-2.0-or-later
/// Cgroups as they come and go: the kernel tells of each, nothing is searched for. Where it
/// follows no more of them, they are looked for at intervals.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib/error.h"
#include "lib/host/cgroup.h"
#include "lib/host/file_descriptor.h"

namespace umacct {

class CgroupWatch {
public:
    using Clock = std::chrono::steady_clock;

    struct Changes {
        std::vector<std::string> appeared; ///< parents first
        /// Before what appeared: one of the same name may be in both.
        std::vector<std::string> gone;
        std::optional<Error> trouble; ///< from here on some are found only by looking
        bool recovered = false;       ///< from here on none are
    };

    /// Throws Error (failed) when the kernel has no room for it.
    explicit CgroupWatch(const Cgroups &cgroups);

    /// Becomes readable when there is something to take.
    int fd() const { return inotify_.get(); }

    /// When to take() besides, if ever.
    std::optional<Clock::time_point> due() const { return due_; }

    /// Has it be due at once.
    void look_now() { due_ = Clock::now(); }

    /// What changed since; at first, all that there are. Doesn't wait. Throws Error (failed)
    /// when the kernel tells nothing any more.
    Changes take();

private:
    struct Followed {
        int watch = -1;       ///< the kernel's number of it; negative where it has no room
        std::uint64_t id = 0; ///< of the cgroup, where it isn't watched
        std::uint64_t scan = 0;
    };

    void take_event(int watch, std::uint32_t mask, const char *name, Changes &changes);
    void follow(const std::string &path, Changes &changes);
    void note(const std::string &path, int watch, Changes &changes);
    /// Looks at everything that there is.
    void scan(Changes &changes);
    void forget_unseen(Changes &changes);
    void fail(int code, Changes &changes);

    const Cgroups &cgroups_;
    FileDescriptor inotify_;
    std::unordered_map<std::string, Followed> followed_;
    std::unordered_map<int, std::string> paths_; ///< by number; older ones of a name, too
    std::uint64_t scan_ = 0;
    bool whole_ = true; ///< the last scan could look into every folder
    std::optional<Clock::time_point> due_;
    bool told_ = false; ///< that some are found only by looking
};

} // namespace umacct
