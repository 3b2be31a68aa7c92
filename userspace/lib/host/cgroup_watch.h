// SPDX-License-Identifier: GPL-2.0-or-later
/// Cgroups as they come and go: the kernel reports each, nothing is searched for. Where it
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

    /// Number of cgroups that are followed in a unit, or in a subtree that root doesn't own. What
    /// is set above holds for all of them.
    static constexpr std::size_t most_of_tenant = 16384;

    struct Gone {
        std::string path;     ///< empty for some where many went at once
        std::uint64_t id = 0; ///< the cgroup's; 0 if it vanished before its id was read
    };

    struct Changes {
        std::vector<std::string> appeared; ///< parents first
        /// Happened before the appearances: one name may be in both lists.
        std::vector<Gone> gone;
        std::optional<Error> trouble; ///< some cgroups are found only by scanning from here on
        bool recovered = false;       ///< all cgroups are found by inotify again
    };

    /// Throws Error (failed) when the kernel has no room for it. most_below: number of cgroups that
    /// are followed below a tenant's topmost one.
    explicit CgroupWatch(const Cgroups &cgroups, std::size_t most_below = most_of_tenant);

    /// Becomes readable when there is something to take.
    int fd() const { return inotify_.get(); }

    /// Returns the time of the next take() without readability, if any.
    std::optional<Clock::time_point> due() const {
        return left_.empty() && !scanning_ ? due_ : std::optional(Clock::time_point());
    }

    /// Has it be due at once.
    void look_now() { due_ = Clock::now(); }

    /// Returns the changes since the last call, and every cgroup at the first. A call returns at
    /// most some hundreds; due() says whether there are more. Does not wait. Throws Error (failed)
    /// when inotify fails.
    Changes take();

private:
    /// A cgroup by its name and its parent: whole paths would be many times as long.
    struct Node {
        std::string name;
        Node *parent = nullptr;
        std::uint64_t id = 0;
        int watch = -1; ///< the kernel's number of it; negative where it has no room
        std::uint64_t scan = 0;
        Node *tenant = nullptr; ///< topmost unit or cgroup that root doesn't own, from here upwards
        std::size_t below = 0;  ///< number of nodes that have this one as their tenant
        std::unordered_map<std::string_view, std::shared_ptr<Node>> children; ///< the key is the
                                                                              ///< child's name
    };

    struct Left {
        std::weak_ptr<Node> node;
        std::optional<std::vector<std::string>> names; ///< its entries; empty until it is read
    };

    static std::string path_of(const Node &node);
    /// Returns the tenant of a new node; null above all units.
    Node *tenant_of(Node &node) const;
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
    std::size_t most_below_;
    FileDescriptor inotify_;
    std::shared_ptr<Node> root_;
    std::unordered_map<int, Node *> nodes_; ///< the key is the watch's number
    std::vector<Left> left_;                ///< folders that are yet to be looked into
    std::uint64_t scan_ = 0;
    bool scanning_ = false;
    Clock::time_point scan_began_;
    bool whole_ = true; ///< the scan could look into every folder
    std::optional<Clock::time_point> due_;
    bool degraded_ = false; ///< a "trouble" without "recovered" was reported
};

} // namespace umacct
