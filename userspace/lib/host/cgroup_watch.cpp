// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/cgroup_watch.h"

#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "lib/error.h"

namespace umacct {

namespace {

constexpr std::size_t buffer_bytes = 65536;

[[noreturn]] void throw_errno(const char *what) {
    const int code = errno;

    throw Error(
        Failure::failed, fmt::format("{}: {}", what, std::generic_category().message(code)),
        code == ENOSPC || code == EMFILE
            ? "raise fs.inotify.max_user_watches or fs.inotify.max_user_instances, by sysctl"
            : "");
}

} // namespace

CgroupWatch::CgroupWatch(const Cgroups &cgroups)
    : cgroups_(cgroups), inotify_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    if (inotify_.get() < 0)
        throw_errno("following cgroups");
}

CgroupWatch::Changes CgroupWatch::take() {
    alignas(inotify_event) std::array<char, buffer_bytes> buffer{};
    Changes changes;

    if (std::exchange(first_, false))
        follow_everything(changes.appeared);
    for (;;) {
        const ssize_t size = read(inotify_.get(), buffer.data(), buffer.size());

        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0 && errno == EAGAIN)
            return changes;
        if (size <= 0)
            throw_errno("following cgroups");
        for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
            const auto *event = reinterpret_cast<const inotify_event *>(buffer.data() + at);
            const auto watch = paths_.find(event->wd);

            at += sizeof(*event) + event->len;
            if ((event->mask & IN_Q_OVERFLOW) != 0) {
                follow_everything(changes.appeared);
            } else if (watch == paths_.end()) {
                continue;
            } else if ((event->mask & IN_IGNORED) != 0) {
                // What came and went meanwhile is not there.
                std::erase(changes.appeared, watch->second);
                changes.gone.push_back(std::move(watch->second));
                paths_.erase(watch);
            } else if ((event->mask & IN_CREATE) != 0) {
                follow(join_path(watch->second, event->name), changes.appeared);
            }
        }
    }
}

/// What is made in it from here on is told; what was made in it before is looked for here.
void CgroupWatch::follow(const std::string &path, std::vector<std::string> &appeared) {
    const auto directory = cgroups_.directory(path);

    if (!directory)
        return;
    const int watch = inotify_add_watch(inotify_.get(), directory->c_str(),
                                        IN_CREATE | IN_ONLYDIR | IN_DONT_FOLLOW);
    if (watch < 0) {
        if (errno == ENOENT || errno == ENOTDIR || errno == EACCES)
            return;
        throw_errno("following cgroups");
    }
    if (paths_.insert_or_assign(watch, path).second)
        appeared.push_back(path);

    std::error_code error;
    for (std::filesystem::directory_iterator at(*directory, error), end; !error && at != end;
         at.increment(error)) {
        std::error_code ignored;

        if (at->symlink_status(ignored).type() == std::filesystem::file_type::directory)
            follow(join_path(path, at->path().filename().string()), appeared);
    }
}

void CgroupWatch::follow_everything(std::vector<std::string> &appeared) {
    follow(cgroups_.mount().root, appeared);
}

} // namespace umacct
