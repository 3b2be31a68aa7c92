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

namespace umacct {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t buffer_bytes = 65536;

constexpr auto look_again_after = 10s;
/// So many times as long as the looking took, at least.
constexpr int least_pause = 10;

Error error_of(int code) {
    return {Failure::failed,
            fmt::format("following cgroups: {}", std::generic_category().message(code)),
            code == ENOSPC || code == EMFILE
                ? "raise fs.inotify.max_user_watches or fs.inotify.max_user_instances, by sysctl"
                : ""};
}

} // namespace

CgroupWatch::CgroupWatch(const Cgroups &cgroups)
    : cgroups_(cgroups), inotify_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    if (inotify_.get() < 0)
        throw error_of(errno);
}

CgroupWatch::Changes CgroupWatch::take() {
    alignas(inotify_event) std::array<char, buffer_bytes> buffer{};
    Changes changes;

    if (scan_ == 0 || (due_ && *due_ <= Clock::now()))
        scan(changes);
    for (;;) {
        const ssize_t size = read(inotify_.get(), buffer.data(), buffer.size());

        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0 && errno == EAGAIN)
            return changes;
        if (size <= 0)
            throw error_of(errno);
        for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
            const auto *event = reinterpret_cast<const inotify_event *>(buffer.data() + at);

            at += sizeof(*event) + event->len;
            take_event(event->wd, event->mask, event->len > 0 ? event->name : "", changes);
        }
    }
}

void CgroupWatch::take_event(int watch, std::uint32_t mask, const char *name, Changes &changes) {
    const auto at = paths_.find(watch);

    if ((mask & IN_Q_OVERFLOW) != 0) {
        scan(changes);
    } else if (at == paths_.end()) {
        return;
    } else if ((mask & IN_IGNORED) != 0) {
        const auto followed = followed_.find(at->second);

        // It comes when the last who had the folder open closes it: by then another may have
        // that name.
        if (followed != followed_.end() && followed->second.watch == watch) {
            // What came and went meanwhile is not there.
            std::erase(changes.appeared, at->second);
            changes.gone.push_back(at->second);
            followed_.erase(followed);
        }
        paths_.erase(at);
    } else if ((mask & IN_CREATE) != 0) {
        follow(join_path(at->second, name), changes);
    }
}

/// What is made in it from here on is told; what was made in it before is looked for here.
void CgroupWatch::follow(const std::string &path, Changes &changes) {
    const auto directory = cgroups_.directory(path);

    if (!directory)
        return;
    const int watch = inotify_add_watch(inotify_.get(), directory->c_str(),
                                        IN_CREATE | IN_ONLYDIR | IN_DONT_FOLLOW);
    if (watch < 0) {
        // Of one whose path is too long nothing can be set, either; what is above it holds.
        if (errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == ENAMETOOLONG)
            return;
        fail(errno, changes);
    }
    note(path, watch, changes);

    std::error_code error;
    const std::vector<std::string> children = folders_in(*directory, error);
    if (error && error != std::errc::no_such_file_or_directory &&
        error != std::errc::no_such_device) {
        whole_ = false;
        fail(error.value(), changes);
    }
    // No folder is open meanwhile: whoever makes cgroups chooses how deep they go.
    for (const std::string &child : children)
        follow(join_path(path, child), changes);
}

void CgroupWatch::note(const std::string &path, int watch, Changes &changes) {
    const auto [at, is_new] = followed_.try_emplace(path);
    Followed &followed = at->second;
    std::uint64_t id = 0;

    if (watch < 0 || (!is_new && followed.watch < 0)) {
        try {
            id = cgroups_.id(path);
        } catch (const Error &) {
            // It went meanwhile, which nobody tells.
            if (is_new)
                followed_.erase(at);
            return;
        }
    }

    const bool same = !is_new && (followed.watch < 0 ? followed.id == id : followed.watch == watch);
    if (!same && !is_new) {
        std::erase(changes.appeared, path);
        changes.gone.push_back(path);
    }
    if (!same)
        changes.appeared.push_back(path);
    if (watch >= 0)
        paths_.insert_or_assign(watch, path);
    followed = {.watch = watch, .id = watch < 0 ? id : 0, .scan = scan_};
}

void CgroupWatch::scan(Changes &changes) {
    const auto began = Clock::now();

    ++scan_;
    whole_ = true;
    due_.reset();
    follow(cgroups_.mount().root, changes);
    // Who could not be looked at is not gone.
    if (whole_)
        forget_unseen(changes);
    if (due_) {
        const auto now = Clock::now();

        due_ = now + std::max<Clock::duration>(look_again_after, (now - began) * least_pause);
    } else if (std::exchange(told_, false)) {
        changes.trouble.reset();
        changes.recovered = true;
    }
}

void CgroupWatch::forget_unseen(Changes &changes) {
    for (auto at = followed_.begin(); at != followed_.end();) {
        if (at->second.scan == scan_) {
            ++at;
            continue;
        }
        changes.gone.push_back(at->first);
        at = followed_.erase(at);
    }
    std::erase_if(changes.appeared,
                  [&](const std::string &path) { return !followed_.contains(path); });
    std::erase_if(paths_, [&](const auto &each) {
        const auto followed = followed_.find(each.second);

        return followed == followed_.end() || followed->second.watch != each.first;
    });
}

void CgroupWatch::fail(int code, Changes &changes) {
    due_ = Clock::now() + look_again_after;
    if (std::exchange(told_, true))
        return;
    changes.trouble = error_of(code);
    changes.recovered = false;
}

} // namespace umacct
