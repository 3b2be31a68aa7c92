// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/cgroup.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <umacct.h>

#include "lib/error.h"
#include "lib/host/file_descriptor.h"
#include "lib/host/mountinfo.h"

namespace umacct {

namespace {

/// "/a/b" without "/a" is "/b"; empty when path isn't at or below prefix.
std::optional<std::string> without_prefix(std::string_view path, std::string_view prefix) {
    if (prefix == "/")
        return std::string(path);
    if (!path.starts_with(prefix))
        return std::nullopt;
    path.remove_prefix(prefix.size());
    if (path.empty())
        return "/";
    if (path.front() != '/')
        return std::nullopt;
    return std::string(path);
}

/// Cgroups above the root of a cgroup namespace are "/..", and so on up to the host's root.
bool is_only_up(std::string_view root) {
    constexpr std::string_view up = "/..";

    while (root.starts_with(up))
        root.remove_prefix(up.size());
    return root.empty();
}

} // namespace

std::optional<CgroupMount> CgroupMount::find(std::istream &mountinfo) {
    std::optional<CgroupMount> found;

    for (const Mount &each : read_mounts(mountinfo)) {
        if (each.type != "cgroup2")
            continue;

        const bool recursive =
            ("," + each.options + ",").find(",memory_recursiveprot,") != std::string::npos;
        CgroupMount mount{
            .point = each.point, .root = each.root, .recursive_protection = recursive};
        // A container may have the host's hierarchy mounted. The module's paths begin there.
        if (is_only_up(mount.root))
            mount.root = "/";
        // A part of the hierarchy may be mounted elsewhere too: the whole of it is better.
        if (!found || (found->root != "/" && mount.root == "/"))
            found = std::move(mount);
    }
    return found;
}

Cgroups::Cgroups(std::filesystem::path proc) : proc_(std::move(proc)) {}

const std::optional<CgroupMount> &Cgroups::find_mount() const {
    if (!mount_) {
        std::ifstream mountinfo(proc_ / "self/mountinfo");

        mount_ = CgroupMount::find(mountinfo);
    }
    return mount_;
}

const CgroupMount &Cgroups::mount() const {
    if (!find_mount())
        throw Error(Failure::failed, "no cgroup v2 hierarchy is mounted",
                    "umacct keeps its accounts by cgroup v2: mount it, or boot with "
                    "systemd.unified_cgroup_hierarchy=1");
    return *mount_;
}

std::optional<std::filesystem::path> Cgroups::directory(std::string_view path) const {
    if (!find_mount())
        return std::nullopt;
    const auto below = without_prefix(path, mount_->root);
    if (!below)
        return std::nullopt;
    return mount_->point / below->substr(1);
}

std::optional<std::string> Cgroups::path_of(const std::filesystem::path &directory) const {
    std::string normal = directory.lexically_normal().string();

    if (normal.size() > 1 && normal.back() == '/')
        normal.pop_back();
    auto below = without_prefix(normal, mount().point.string());
    if (!below)
        return std::nullopt;
    if (mount().root == "/")
        return below;
    return *below == "/" ? mount().root : mount().root + *below;
}

bool Cgroups::exists(std::string_view path) const {
    const auto directory = this->directory(path);
    std::error_code ignored;

    return directory && std::filesystem::is_directory(*directory, ignored);
}

std::uint64_t Cgroups::id(std::string_view path) const {
    mount(); // throws the error to report if there is none
    const auto directory = this->directory(path);

    struct stat info {};

    if (!directory || stat(directory->c_str(), &info) != 0)
        throw Error(Failure::failed, fmt::format("there is no cgroup {}", path));
    return info.st_ino;
}

std::optional<std::string> Cgroups::of_pid(std::uint32_t pid) const {
    std::ifstream file(proc_ / std::to_string(pid) / "cgroup");

    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("0::"))
            return line.substr(3);
    }
    return std::nullopt;
}

std::string Cgroups::of_self() const {
    return of_pid(static_cast<std::uint32_t>(getpid())).value_or("/");
}

std::optional<std::string> Cgroups::read(std::string_view path, const char *file) const {
    const auto directory = this->directory(path);
    std::string line;

    if (!directory || !std::getline(std::ifstream(*directory / file), line))
        return std::nullopt;
    return line;
}

std::optional<std::uint64_t> Cgroups::number(std::string_view path, const char *file) const {
    const auto text = read(path, file);
    std::uint64_t value = 0;

    if (!text)
        return std::nullopt;
    if (*text == "max")
        return UMACCT_UNLIMITED;
    if (std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc())
        return std::nullopt;
    return value;
}

std::map<std::string, std::uint64_t> Cgroups::keyed(std::string_view path, const char *file) const {
    std::map<std::string, std::uint64_t> values;

    if (const auto directory = this->directory(path)) {
        std::ifstream text(*directory / file);
        std::uint64_t value = 0;

        for (std::string key; text >> key >> value;)
            values[key] = value;
    }
    return values;
}

int Cgroups::try_write(std::string_view path, const char *file, std::string_view text) const {
    const auto directory = this->directory(path);
    const FileDescriptor fd(directory ? open((*directory / file).c_str(), O_WRONLY | O_CLOEXEC)
                                      : (errno = ENOENT, -1));

    // cgroupfs takes one write(2) as one command and answers it with an errno.
    return fd.get() < 0 || ::write(fd.get(), text.data(), text.size()) < 0 ? errno : 0;
}

void Cgroups::write(std::string_view path, const char *file, std::string_view text) const {
    if (const int code = try_write(path, file, text))
        throw Error(failure_of(code), fmt::format("cannot write {} of cgroup {}: {}", file, path,
                                                  std::generic_category().message(code)));
}

} // namespace umacct
