// SPDX-License-Identifier: GPL-2.0-or-later
/// The cgroup v2 hierarchy, as far as this process sees it. A path begins with
/// "/" and is seen from the reader's cgroup namespace, as /proc/PID/cgroup says
/// it and as the module says it too.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "lib/host/path.h"

namespace umacct {

/// Mount point of the cgroup hierarchy, from a mountinfo file.
struct CgroupMount {
    std::filesystem::path point;
    std::string root; ///< path of the cgroup that is mounted there
    /// Mounted with memory_recursiveprot: what memory.min and memory.low protect is for those
    /// below, too.
    bool recursive_protection = false;

    /// Empty when no cgroup v2 hierarchy is mounted.
    static std::optional<CgroupMount> find(std::istream &mountinfo);
};

class Cgroups {
public:
    /// proc: where procfs is. Nothing is read until something is asked.
    explicit Cgroups(std::filesystem::path proc = "/proc");

    /// Throws Error (failed) when no cgroup v2 hierarchy is mounted.
    const CgroupMount &mount() const;

    /// The cgroup's directory; empty when it is outside what is mounted here, or nothing is.
    std::optional<std::filesystem::path> directory(std::string_view path) const;
    /// The cgroup of a directory; empty when that is outside the mount point.
    std::optional<std::string> path_of(const std::filesystem::path &directory) const;

    bool exists(std::string_view path) const;
    /// The kernel's id of that cgroup: the inode number of its directory. Throws
    /// Error (failed) when there is no such cgroup.
    std::uint64_t id(std::string_view path) const;

    /// The v2 cgroup of a process; empty when there is no such process.
    std::optional<std::string> of_pid(std::uint32_t pid) const;
    std::string of_self() const;

    /// First line of a file in the cgroup ("memory.current"); empty when it can't be read.
    std::optional<std::string> read(std::string_view path, const char *file) const;
    /// The same as a number; "max" gives UMACCT_UNLIMITED.
    std::optional<std::uint64_t> number(std::string_view path, const char *file) const;
    /// Lines of "key value" ("memory.stat"); empty when the file can't be read.
    std::map<std::string, std::uint64_t> keyed(std::string_view path, const char *file) const;
    /// 0, or what is wrong with it as an errno.
    int try_write(std::string_view path, const char *file, std::string_view text) const;
    /// Throws Error when it can't be written.
    void write(std::string_view path, const char *file, std::string_view text) const;

    /// Calls visit for every cgroup that can be seen, parents first. Those that
    /// vanish meanwhile are left out.
    void for_each(const std::function<void(const std::string &path)> &visit) const;

private:
    const std::optional<CgroupMount> &find_mount() const;

    std::filesystem::path proc_;
    mutable std::optional<CgroupMount> mount_;
};

/// Returns the names of a folder's subfolders, up to a bound; error: why there may be more. A
/// link is none.
std::vector<std::string> folders_in(const std::filesystem::path &folder, std::error_code &error,
                                    std::size_t at_most = SIZE_MAX);

} // namespace umacct
