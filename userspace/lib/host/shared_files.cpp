// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/shared_files.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <linux/memfd.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "lib/host/file_descriptor.h"
#include "lib/host/mountinfo.h"

#ifndef MFD_NOEXEC_SEAL // of Linux 6.3
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace umacct {

namespace {

namespace fs = std::filesystem;

/// Which file it is, whatever it is called.
using FileId = std::pair<dev_t, ino_t>;

/// st_blocks is in these, whatever a block of the file system's is.
constexpr std::uint64_t block_size = 512;

constexpr std::string_view deleted_mark = " (deleted)";

/// No machine has more names than this, unless a tenant means to keep the search busy.
constexpr std::size_t names_at_most = 100'000;

std::optional<std::uint32_t> pid_of(const fs::path &directory) {
    const std::string name = directory.filename().string();
    std::uint32_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);

    return error == std::errc() && end == name.data() + name.size() ? std::optional(pid)
                                                                    : std::nullopt;
}

/// A folder that no link leads to.
FileDescriptor folder_below(const fs::path &root, const char *path) {
    const FileDescriptor from(open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    open_how how{};

    how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
    how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    return FileDescriptor(from.get() < 0 ? -1
                                         : static_cast<int>(syscall(SYS_openat2, from.get(), path,
                                                                    &how, sizeof(how))));
}

/// Nothing is asked of a file before it is known that its file system is in memory: any other may
/// be a server's, or a program's, that doesn't answer.
class Search {
public:
    explicit Search(const fs::path &proc) : proc_(proc) {}

    std::vector<SharedFile> run(std::uint64_t least) {
        std::vector<std::pair<fs::path, std::uint32_t>> processes;

        add_own();
        add_mounts();
        std::error_code error;
        for (fs::directory_iterator at(proc_, error), end; !error && at != end;
             at.increment(error)) {
            if (const auto pid = pid_of(at->path()))
                processes.emplace_back(at->path(), *pid);
        }
        // What one has open may be of a mount of another's.
        for (const auto &[process, pid] : processes)
            add_namespace(process);
        for (const auto &[process, pid] : processes)
            add_process(process, pid);
        add_segments();

        std::vector<SharedFile> list;
        for (auto &[id, file] : files_) {
            if (file.bytes >= least)
                list.push_back(std::move(file));
        }
        std::ranges::stable_sort(list, [](const SharedFile &a, const SharedFile &b) {
            return std::pair(a.is_nobodys(), a.bytes) > std::pair(b.is_nobodys(), b.bytes);
        });
        return list;
    }

private:
    /// Where it is shown, on a file system in memory; path is what is known of its name.
    SharedFile *add(const fs::path &shown, const std::string &path) {
        struct stat info {};

        if (stat(shown.c_str(), &info) != 0 || !S_ISREG(info.st_mode) ||
            !is_memory(shown, info.st_dev))
            return nullptr;
        const auto [at, is_new] = files_.try_emplace(FileId(info.st_dev, info.st_ino));
        SharedFile &file = at->second;
        if (is_new) {
            file.path = path;
            // Secret memory has no blocks; what of it nobody has touched yet can't be told.
            file.bytes = secret_.contains(info.st_dev)
                             ? static_cast<std::uint64_t>(info.st_size)
                             : static_cast<std::uint64_t>(info.st_blocks) * block_size;
            file.deleted = info.st_nlink == 0 || path.ends_with(deleted_mark);
            if (path.ends_with(deleted_mark))
                file.path.resize(path.size() - deleted_mark.size());
        }
        return &file;
    }

    bool is_memory(const fs::path &file, dev_t device) {
        const auto [at, is_new] = memory_.try_emplace(device, false);

        struct statfs info {};

        if (is_new && statfs(file.c_str(), &info) == 0)
            at->second = info.f_type == TMPFS_MAGIC || info.f_type == SECRETMEM_MAGIC;
        return at->second;
    }

    /// A mount of the kernel's own, which no table has: by a file in it.
    void add_unlisted(int file, bool is_secret) {
        const FileDescriptor closed(file);

        struct stat info {};

        if (file < 0 || fstat(file, &info) != 0)
            return;
        memory_[info.st_dev] = true;
        if (is_secret)
            secret_.insert(info.st_dev);
        if (const auto mount = mount_of_file(proc_ / "self", std::to_string(file)))
            mounts_.insert(*mount);
    }

    void add_own() {
        // Without the flag, vm.memfd_noexec=2 refuses it; with it, a kernel before 6.3 does.
        long memfd = syscall(SYS_memfd_create, "umacct", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
        if (memfd < 0 && errno == EINVAL)
            memfd = syscall(SYS_memfd_create, "umacct", MFD_CLOEXEC);
        add_unlisted(static_cast<int>(memfd), false);
        add_unlisted(static_cast<int>(syscall(SYS_memfd_secret, O_CLOEXEC)), true);
    }

    /// The id of the mount that an open file is in.
    static std::optional<int> mount_of_file(const fs::path &process, const std::string &file) {
        std::ifstream info(process / "fdinfo" / file);
        int mount = 0;

        for (std::string word; info >> word;) {
            if (word == "mnt_id:")
                return info >> mount ? std::optional(mount) : std::nullopt;
        }
        return std::nullopt;
    }

    /// All files below a directory, on its own file system, but not on what is mounted in it.
    /// mounts: with places as the directory is seen_as. One that isn't in memory is left alone.
    void add_names(const fs::path &directory, const std::string &seen_as,
                   const std::vector<Mount> &mounts) {
        struct stat top {};

        std::error_code error;

        if (stat(directory.c_str(), &top) != 0 || !is_memory(directory, top.st_dev) ||
            !searched_.insert(top.st_dev).second)
            return;
        std::set<std::string> places;
        for (const Mount &mount : mounts)
            places.insert(mount.point.string());
        for (fs::recursive_directory_iterator
                 at(directory, fs::directory_options::skip_permission_denied, error),
             end;
             !error && at != end && names_ < names_at_most; at.increment(error), ++names_) {
            const std::string name =
                seen_as + at->path().string().substr(directory.string().size());

            struct stat info {};

            if (places.contains(name))
                at.disable_recursion_pending();
            else if (lstat(at->path().c_str(), &info) != 0)
                continue;
            else if (info.st_dev != top.st_dev)
                at.disable_recursion_pending();
            else if (S_ISREG(info.st_mode))
                add(at->path(), name);
        }
    }

    /// The mounts of a process that are in memory, and all that it sees.
    std::vector<Mount> read_mounts_of(const fs::path &process) {
        std::ifstream mountinfo(process / "mountinfo");
        std::vector<Mount> mounts = read_mounts(mountinfo);

        for (const Mount &mount : mounts) {
            if (!mount.is_tmpfs() && mount.type != "devtmpfs")
                continue;
            memory_[mount.device] = true;
            mounts_.insert(mount.id);
        }
        return mounts;
    }

    void add_mounts() {
        const std::vector<Mount> mounts = read_mounts_of(proc_ / "self");

        for (const Mount &mount : mounts) {
            struct stat info {};

            if (!mount.is_tmpfs() || mount_of(mounts, mount.point, true) != &mount ||
                stat(mount.point.c_str(), &info) != 0)
                continue;
            memory_[info.st_dev] = true;
            add_names(mount.point, mount.point.string(), mounts);
        }
    }

    /// A container has a /dev/shm of its own.
    void add_namespace(const fs::path &process) {
        static constexpr const char *shared = "/dev/shm";
        std::error_code error;
        const auto name = fs::read_symlink(process / "ns/mnt", error);

        if (error || !namespaces_.insert(name.string()).second)
            return;
        const std::vector<Mount> mounts = read_mounts_of(process);
        const Mount *mount = mount_of(mounts, shared, false);
        if (mount == nullptr || !mount->is_tmpfs())
            return;
        // A tenant may have put a link there.
        const FileDescriptor folder = folder_below(process / "root", "dev/shm");
        if (folder.get() >= 0)
            add_names(fmt::format("/proc/self/fd/{}", folder.get()), shared, mounts);
    }

    void add_process(const fs::path &process, std::uint32_t pid) {
        std::error_code error;

        std::ifstream maps(process / "maps");
        for (std::string line; std::getline(maps, line);)
            add_mapping(process, pid, line);
        for (fs::directory_iterator at(process / "fd", error), end; !error && at != end;
             at.increment(error)) {
            std::error_code gone;
            const std::string path = fs::read_symlink(at->path(), gone).string();

            // Of the driver's there may be tens of thousands, and reading about each takes a KiB.
            if (gone || !path.starts_with('/') || path.starts_with("/dev/nvidia"))
                continue;
            const auto mount = mount_of_file(process, at->path().filename().string());
            if (!mount || !mounts_.contains(*mount))
                continue;
            SharedFile *file = add(at->path(), path);
            if (file != nullptr && !has(file->mapped, pid) && !has(file->open, pid))
                file->open.push_back(pid);
        }
    }

    static bool has(const std::vector<std::uint32_t> &pids, std::uint32_t pid) {
        return std::ranges::find(pids, pid) != pids.end();
    }

    /// "START-END PERMISSIONS OFFSET MAJOR:MINOR INODE PATH"
    void add_mapping(const fs::path &process, std::uint32_t pid, const std::string &line) {
        std::istringstream words(line);
        std::string range;
        std::string word;
        unsigned major_number = 0;
        unsigned minor_number = 0;
        char colon = 0;
        ino_t inode = 0;

        words >> range >> word >> word >> std::hex >> major_number >> colon >> minor_number >>
            std::dec >> inode >> std::ws;
        if (!words || inode == 0)
            return;
        const dev_t device = makedev(major_number, minor_number);
        const auto known = files_.find(FileId(device, inode));
        const auto memory = memory_.find(device);
        SharedFile *file = nullptr;
        if (known != files_.end()) {
            file = &known->second;
        } else if (memory != memory_.end() && memory->second) {
            std::string path;

            std::getline(words, path);
            file = add(process / "map_files" / range, path);
        }
        if (file != nullptr && !has(file->mapped, pid))
            file->mapped.push_back(pid);
    }

    /// System V segments that nobody has attached; the others are mappings.
    void add_segments() {
        std::ifstream table(proc_ / "sysvipc/shm");
        std::string line;

        std::getline(table, line);
        while (std::getline(table, line)) {
            std::istringstream words(line);
            std::uint64_t id = 0;
            std::uint64_t attached = 0;
            std::uint64_t bytes = 0;
            std::string word;

            words >> word >> id;
            for (int i = 0; i < 4; ++i)
                words >> word;
            words >> attached;
            for (int i = 0; i < 7; ++i)
                words >> word;
            if (!(words >> bytes) || attached != 0)
                continue;
            SharedFile &file = files_[FileId(0, id)];
            file.path = fmt::format("System V segment {}", id);
            file.bytes = bytes;
        }
    }

    const fs::path &proc_;
    std::map<FileId, SharedFile> files_;
    std::map<dev_t, bool> memory_; ///< devices by whether they are file systems in memory
    std::set<dev_t> secret_;       ///< those of them that are memfd_secret()'s
    std::set<int> mounts_;         ///< ids of those that are in memory
    std::set<dev_t> searched_;
    std::set<std::string> namespaces_;
    std::size_t names_ = 0;
};

} // namespace

std::vector<SharedFile> shared_files(const fs::path &proc, std::uint64_t least) {
    return Search(proc).run(least);
}

} // namespace umacct
