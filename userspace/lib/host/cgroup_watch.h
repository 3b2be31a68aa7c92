// SPDX-License-Identifier: GPL-2.0-or-later
/// Cgroups as they come and go: the kernel tells of each, nothing is searched for. Where it
/// follows no more of them, they are looked for at intervals.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/error.h"
#include "lib/host/cgroup.h"
#include "lib/host/file_descriptor.h"

namespace umacct {

class CgroupWatch {
public:
    using Clock = std::chrono::steady_clock;

    struct Gone {
        std::string path;     ///< empty for some where many went at once
        std::uint64_t id = 0; ///< of the cgroup; 0 where it went before that was asked
    };

    struct Changes {
        std::vector<std::string> appeared; ///< parents first
        /// Before what appeared: one of the same name may be in both.
        std::vector<Gone> gone;
        std::optional<Error> trouble; ///< from here on some are found only by looking
        bool recovered = false;       ///< from here on none are
    };

    /// Throws Error (failed) when the kernel has no room for it.
    explicit CgroupWatch(const Cgroups &cgroups);

    /// Becomes readable when there is something to take.
    int fd() const { return inotify_.get(); }

    /// When to take() besides, if ever.
    std::optional<Clock::time_point> due() const {
        return left_.empty() && !scanning_ ? due_ : std::optional(Clock::time_point());
    }

    /// Has it be due at once.
    void look_now() { due_ = Clock::now(); }

    /// What changed since, and at first all that there are: some hundreds at a time, and due()
    /// says when there are more. Doesn't wait. Throws Error (failed) when the kernel tells
    /// nothing any more.
    Changes take();

private:
    /// A cgroup by its name and its parent: whole paths would be many times as long.
    struct Node {
        std::string name;
        Node *parent = nullptr;
        std::uint64_t id = 0;
        int watch = -1; ///< the kernel's number of it; negative where it has no room
        std::uint64_t scan = 0;
        std::unordered_map<std::string_view, std::shared_ptr<Node>> children; ///< by their names
    };

    struct Left {
        std::weak_ptr<Node> node;
        std::optional<std::vector<std::string>> names; ///< in it; empty until it was looked into
    };

    static std::string path_of(const Node &node);
    /// The node of that name is there and followed, or was gone before it could be.
    void follow(Node *parent, const std::string &name, Changes &changes);
    /// One more of those in the folder that was met last.
    void look_on(Changes &changes);
    /// It and those below it are gone.
    void forget(Node &node, Changes &changes);
    void remove(Node &node, Changes &changes);

    void take_event(int watch, std::uint32_t mask, const char *name, Changes &changes);
    /// Begins to look at everything that there is.
    void scan(Changes &changes);
    void finish_scan(Changes &changes);
    void forget_unseen(Node &node, Changes &changes);
    void fail(int code, Changes &changes);

    const Cgroups &cgroups_;
    FileDescriptor inotify_;
    std::shared_ptr<Node> root_;
    std::unordered_map<int, Node *> nodes_; ///< by number
    std::vector<Left> left_;                ///< folders that are yet to be looked into
    std::uint64_t scan_ = 0;
    bool scanning_ = false;
    Clock::time_point scan_began_;
    bool whole_ = true; ///< the scan could look into every folder
    std::optional<Clock::time_point> due_;
    bool told_ = false; ///< that some are found only by looking
};

} // namespace umacct
