// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/cgroup_tree.h"

#include <array>
#include <cerrno>
#include <memory>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

namespace umacct {

namespace {

struct CloseDirectory {
    void operator()(DIR *directory) const { closedir(directory); }
};

} // namespace

std::vector<std::string> folders_in(const std::filesystem::path &folder, std::error_code &error,
                                    std::size_t at_most) {
    std::vector<std::string> names;

    error.clear();
    errno = 0;
    // Not std::filesystem's iterator: asked what an entry is, links apart, it asks the kernel of
    // each file, which has said so already.
    const std::unique_ptr<DIR, CloseDirectory> directory(opendir(folder.c_str()));
    while (directory && names.size() < at_most) {
        errno = 0;
        const dirent *entry = readdir(directory.get());
        if (entry == nullptr)
            break;
        const std::string_view name = entry->d_name;

        struct stat info {};

        if (name == "." || name == "..")
            continue;
        if (entry->d_type == DT_DIR ||
            (entry->d_type == DT_UNKNOWN &&
             fstatat(dirfd(directory.get()), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
             S_ISDIR(info.st_mode)))
            names.emplace_back(name);
    }
    if (errno != 0)
        error.assign(errno, std::generic_category());
    return names;
}

void walk_cgroups(const Cgroups &cgroups, const std::string &from, const VisitCgroup &visit) {
    const auto directory = cgroups.directory(from);
    std::error_code ignored;

    if (!directory || !visit(from))
        return;
    // Not a recursive_directory_iterator, which ends the whole walk at a directory that vanishes.
    for (const std::string &name : folders_in(*directory, ignored))
        walk_cgroups(cgroups, join_path(from, name), visit);
}

// Here, as it is a walk: cgroup.cpp knows nothing of the tree.
void Cgroups::for_each(const std::function<void(const std::string &)> &visit) const {
    walk_cgroups(*this, mount().root, [&visit](const std::string &path) {
        visit(path);
        return true;
    });
}

std::optional<CgroupFolder> folder_of(const Cgroups &cgroups, std::string_view path) {
    const auto directory = cgroups.directory(path);

    struct stat info {};

    if (!directory || stat(directory->c_str(), &info) != 0)
        return std::nullopt;
    // A folder has a link from its name, one from itself and one from each folder in it.
    return CgroupFolder{.id = info.st_ino, .owner = info.st_uid, .is_leaf = info.st_nlink == 2};
}

std::optional<std::string> attribute_of(const Cgroups &cgroups, std::string_view path,
                                        const char *name) {
    const auto directory = cgroups.directory(path);
    std::array<char, 64> value{};
    const ssize_t size =
        directory ? getxattr(directory->c_str(), name, value.data(), value.size()) : -1;

    if (size < 0)
        return std::nullopt;
    return std::string(value.data(), static_cast<std::size_t>(size));
}

} // namespace umacct
