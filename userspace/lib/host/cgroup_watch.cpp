// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/cgroup_watch.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "lib/host/cgroup_tree.h"

namespace umacct {

namespace {

using namespace std::chrono_literals;

/// Some hundreds of events.
constexpr std::size_t buffer_bytes = 8192;

/// Changes that are returned at a time, besides those of one read().
constexpr std::size_t most_at_once = 256;

constexpr auto look_again_after = 10s;
/// Minimum pause after a scan, as a multiple of its duration.
constexpr int least_pause = 10;

/// Whether a cgroup of that name has one program's cgroups below it: a service, a scope, or a
/// container by its id.
bool is_unit(std::string_view name) {
    constexpr std::size_t id_length = 64;

    return name.ends_with(".service") || name.ends_with(".scope") ||
           (name.size() == id_length &&
            name.find_first_not_of("0123456789abcdef") == std::string_view::npos);
}

Error error_of(int code) {
    return {Failure::failed,
            fmt::format("following cgroups: {}", std::generic_category().message(code)),
            code == ENOSPC || code == EMFILE
                ? "raise fs.inotify.max_user_watches or fs.inotify.max_user_instances, by sysctl"
                : ""};
}

} // namespace

CgroupWatch::CgroupWatch(const Cgroups &cgroups, std::size_t most_below)
    : cgroups_(cgroups),
      most_below_(most_below),
      inotify_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    if (inotify_.get() < 0)
        throw error_of(errno);
}

/// Removes all in one go: a tenant's cgroups may be in each other two thousand deep.
std::string CgroupWatch::path_of(const Node &node) {
    std::vector<const Node *> above;
    const Node *top = &node;

    for (; top->parent != nullptr; top = top->parent)
        above.push_back(top);
    std::string path = top->name;
    for (; !above.empty(); above.pop_back()) {
        if (path != "/")
            path += '/';
        path += above.back()->name;
    }
    return path;
}

CgroupWatch::Node *CgroupWatch::tenant_of(Node &node) const {
    Node *parent = node.parent;

    if (parent == nullptr)
        return node.tenant;
    // A cgroup is delegated after it was created.
    if (parent->tenant == nullptr && node.tenant != nullptr) {
        const auto folder = folder_of(cgroups_, path_of(*parent));

        if (folder && folder->owner != 0)
            parent->tenant = parent;
    }
    return parent->tenant != nullptr ? parent->tenant : node.tenant;
}

CgroupWatch::Changes CgroupWatch::take() {
    alignas(inotify_event) std::array<char, buffer_bytes> buffer{};
    Changes changes;

    if (scan_ == 0 || (due_ && *due_ <= Clock::now()))
        scan(changes);
    while (changes.appeared.size() + changes.gone.size() < most_at_once) {
        // Creations in a folder are reported by inotify once it is followed; earlier ones are found
        // by reading it.
        if (!left_.empty()) {
            look_on(changes);
            continue;
        }
        if (std::exchange(scanning_, false))
            finish_scan(changes);

        const ssize_t size = read(inotify_.get(), buffer.data(), buffer.size());
        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0 && errno == EAGAIN)
            break;
        if (size <= 0)
            throw error_of(errno);
        for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
            const auto *event = reinterpret_cast<const inotify_event *>(buffer.data() + at);

            at += sizeof(*event) + event->len;
            take_event(event->wd, event->mask, event->len > 0 ? event->name : "", changes);
        }
    }
    return changes;
}

void CgroupWatch::take_event(int watch, std::uint32_t mask, const char *name, Changes &changes) {
    const auto at = nodes_.find(watch);

    if ((mask & IN_Q_OVERFLOW) != 0) {
        scan(changes);
    } else if (at == nodes_.end()) {
        // It was followed by another of its name by then.
        return;
    } else if ((mask & IN_IGNORED) != 0) {
        remove(*at->second, changes);
    } else if ((mask & IN_CREATE) != 0) {
        follow(at->second, name, changes);
    }
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity): each step may find the cgroup gone
void CgroupWatch::follow(Node *parent, const std::string &name, Changes &changes) {
    // A watch that is added and removed leaves an event: many of them would ask for another scan.
    if (parent != nullptr && parent->tenant != nullptr && parent->tenant->below >= most_below_ &&
        !parent->children.contains(name))
        return;
    const std::string path = parent == nullptr ? name : join_path(path_of(*parent), name);
    const auto directory = cgroups_.directory(path);

    if (!directory)
        return;
    const int watch = inotify_add_watch(inotify_.get(), directory->c_str(),
                                        IN_CREATE | IN_ONLYDIR | IN_DONT_FOLLOW);
    if (watch < 0) {
        // A cgroup with a path this long cannot be set, either; limits above it hold.
        if (errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == ENAMETOOLONG)
            return;
        fail(errno, changes);
    }

    const auto folder = folder_of(cgroups_, path);
    // It vanished meanwhile, which is not reported unless it is watched.
    if (!folder && watch < 0)
        return;

    std::shared_ptr<Node> node = root_;
    if (parent != nullptr) {
        const auto found = parent->children.find(name);
        node = found == parent->children.end() ? nullptr : found->second;
    }
    const bool same = node && (node->watch < 0 || watch < 0 ? folder && node->id == folder->id
                                                            : node->watch == watch);
    if (node && !same) {
        remove(*node, changes);
        node.reset();
    }
    if (!node) {
        node = std::make_shared<Node>();
        node->name = name;
        node->parent = parent;
        if (is_unit(name) || (folder && folder->owner != 0))
            node->tenant = node.get();
        node->tenant = tenant_of(*node);
        if (node->tenant != nullptr && node->tenant != node.get())
            ++node->tenant->below;
        if (parent == nullptr)
            root_ = node;
        else
            parent->children.emplace(node->name, node);
        changes.appeared.push_back(path);
    }
    if (node->watch >= 0 && node->watch != watch)
        nodes_.erase(node->watch);
    node->watch = watch;
    node->id = folder ? folder->id : node->id;
    node->scan = scan_;
    if (watch >= 0)
        nodes_.insert_or_assign(watch, node.get());
    left_.push_back({.node = node, .names = {}});
}

void CgroupWatch::look_on(Changes &changes) {
    Left &left = left_.back();
    const auto node = left.node.lock();
    const auto directory = node ? cgroups_.directory(path_of(*node)) : std::nullopt;

    if (directory && !left.names) {
        std::error_code error;

        left.names = folders_in(*directory, error);
        if (error && error != std::errc::no_such_file_or_directory &&
            error != std::errc::no_such_device) {
            whole_ = false;
            fail(error.value(), changes);
        }
    }
    if (!directory || left.names->empty()) {
        left_.pop_back();
        return;
    }
    const std::string name = std::move(left.names->back());
    left.names->pop_back();
    follow(node.get(), name, changes);
}

void CgroupWatch::forget(Node &node, Changes &changes) {
    for (const auto &[name, child] : node.children)
        forget(*child, changes);
    if (node.tenant != nullptr && node.tenant != &node)
        --node.tenant->below;
    const std::string path = path_of(node);
    // A cgroup may have come and gone meanwhile.
    std::erase(changes.appeared, path);
    changes.gone.push_back({changes.gone.size() < most_at_once ? path : "", node.id});
    nodes_.erase(node.watch);
}

void CgroupWatch::remove(Node &node, Changes &changes) {
    forget(node, changes);
    if (node.parent == nullptr)
        root_.reset();
    else
        node.parent->children.erase(std::string_view(node.name));
}

void CgroupWatch::scan(Changes &changes) {
    ++scan_;
    scanning_ = true;
    scan_began_ = Clock::now();
    whole_ = true;
    due_.reset();
    left_.clear();
    follow(nullptr, cgroups_.mount().root, changes);
}

void CgroupWatch::finish_scan(Changes &changes) {
    // A cgroup that could not be read is not gone.
    if (whole_ && root_)
        forget_unseen(*root_, changes);
    if (due_) {
        const auto now = Clock::now();

        due_ = now + std::max<Clock::duration>(look_again_after, (now - scan_began_) * least_pause);
    } else if (std::exchange(degraded_, false)) {
        changes.trouble.reset();
        changes.recovered = true;
    }
}

void CgroupWatch::forget_unseen(Node &node, Changes &changes) {
    std::vector<std::shared_ptr<Node>> unseen;

    for (const auto &[name, child] : node.children) {
        if (child->scan == scan_)
            forget_unseen(*child, changes);
        else
            unseen.push_back(child);
    }
    for (const auto &each : unseen)
        remove(*each, changes);
}

void CgroupWatch::fail(int code, Changes &changes) {
    due_ = Clock::now() + look_again_after;
    if (std::exchange(degraded_, true))
        return;
    changes.trouble = error_of(code);
    changes.recovered = false;
}

} // namespace umacct
