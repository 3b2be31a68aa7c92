// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/shared_files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/memfd.h>
#include <linux/nsfs.h>
#include <linux/openat2.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "lib/host/file_descriptor.h"
#include "lib/host/mountinfo.h"
#include "lib/host/path.h"

#ifndef MFD_NOEXEC_SEAL // New in Linux 6.3
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace umacct {

namespace {

namespace fs = std::filesystem;

/// The identity of a file, whatever its name.
using FileId = std::pair<dev_t, ino_t>;

/// st_blocks is in these, whatever a block of the file system's is.
constexpr std::uint64_t block_size = 512;

constexpr std::string_view deleted_mark = " (deleted)";

/// No machine has more names than this, unless a tenant means to keep the search busy.
constexpr std::size_t names_at_most = 100'000;

/// Nor folders in folders: each takes a descriptor meanwhile.
constexpr unsigned depth_at_most = 256;

std::optional<std::uint32_t> pid_of(const fs::path &directory) {
    const std::string name = directory.filename().string();
    std::uint32_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);

    return error == std::errc() && end == name.data() + name.size() ? std::optional(pid)
                                                                    : std::nullopt;
}

/// A file in a folder, which is not opened; below zero if it can't be had, or is a link.
int hold_in(const FileDescriptor &folder, const std::string &name, std::uint64_t resolve) {
    open_how how{};

    how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
    how.resolve = resolve | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    return static_cast<int>(syscall(SYS_openat2, folder.get(), name.c_str(), &how, sizeof(how)));
}

/// The id of the mount that an open file is in, as the kernel itself knows it.
std::optional<int> mount_in(const fs::path &fdinfo) {
    static constexpr std::string_view key = "mnt_id:";
    const FileDescriptor file(open(fdinfo.c_str(), O_RDONLY | O_CLOEXEC));
    std::array<char, 256> text{};
    const ssize_t size = read(file.get(), text.data(), text.size());
    const std::string_view read_text(text.data(), size < 0 ? 0 : static_cast<std::size_t>(size));
    std::size_t at = read_text.find(key);
    int id = 0;

    if (at == std::string_view::npos)
        return std::nullopt;
    at = read_text.find_first_not_of(" \t", at + key.size());
    if (at == std::string_view::npos ||
        std::from_chars(read_text.data() + at, read_text.data() + read_text.size(), id).ec !=
            std::errc())
        return std::nullopt;
    return id;
}

std::optional<int> mount_held(const FileDescriptor &file) {
    return file.get() < 0 ? std::nullopt
                          : mount_in(fmt::format("/proc/self/fdinfo/{}", file.get()));
}

/// Facts about an open file that are known without asking its file system: were it a program's
/// after all, nothing would wait for it.
bool look_at(const FileDescriptor &file, struct statx &info) {
    return file.get() >= 0 &&
           statx(file.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &info) == 0;
}

dev_t device_of(const struct statx &info) {
    return makedev(info.stx_dev_major, info.stx_dev_minor);
}

std::vector<Mount> mounts_seen_by(const fs::path &process) {
    std::ifstream mountinfo(process / "mountinfo");

    return read_mounts(mountinfo);
}

/// Whether a process's mounts are of the reader's user namespace. In another one, an overlay may
/// lie on a file system of the tenant's own.
bool is_of_own_users(const fs::path &process) {
    const FileDescriptor mounts(open((process / "ns/mnt").c_str(), O_RDONLY | O_CLOEXEC));
    const FileDescriptor owner(mounts.get() < 0 ? -1 : ioctl(mounts.get(), NS_GET_USERNS));

    struct stat theirs {};

    struct stat own {};

    return owner.get() >= 0 && fstat(owner.get(), &theirs) == 0 &&
           stat("/proc/self/ns/user", &own) == 0 && theirs.st_dev == own.st_dev &&
           theirs.st_ino == own.st_ino;
}

struct Entry {
    std::string name;
    unsigned char type; ///< DT_...; a tmpfs knows it of each
};

struct CloseDirectory {
    void operator()(DIR *directory) const { closedir(directory); }
};

/// Entries of a folder in memory, up to the first error.
std::vector<Entry> entries_in(const FileDescriptor &folder, std::size_t at_most) {
    std::vector<Entry> entries;
    const int file = openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const std::unique_ptr<DIR, CloseDirectory> directory(file < 0 ? nullptr : fdopendir(file));

    if (!directory && file >= 0)
        close(file);
    while (directory && entries.size() < at_most) {
        const dirent *entry = readdir(directory.get());
        if (entry == nullptr)
            break;
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..")
            entries.push_back({.name = std::string(name), .type = entry->d_type});
    }
    return entries;
}

/// Nothing is asked of a file before it is known that its file system is in memory: any other may
/// be a server's, or a program's, that doesn't answer. What a name leads to may change meanwhile,
/// so that a file is held (with O_PATH, which opens nothing), then its mount is looked at, then it.
/// The link to an open file that is held so asks FUSE nothing, but 9P, and NFS of a file that is
/// gone from the server: the first look is at fdinfo of who has it.
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
        // An open file may be on a mount of another process.
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
    /// Adds a file on a mount in memory; path: its name as far as it is known.
    SharedFile *add(const FileDescriptor &held, const std::string &path) {
        struct statx info {};

        if (!look_at(held, info) || !S_ISREG(info.stx_mode) || !memory_.contains(device_of(info)))
            return nullptr;
        const auto [at, is_new] = files_.try_emplace(FileId(device_of(info), info.stx_ino));
        SharedFile &file = at->second;
        if (is_new) {
            file.path = path;
            // Secret memory has no blocks: untouched parts of it can't be recognised.
            file.bytes =
                secret_.contains(device_of(info)) ? info.stx_size : info.stx_blocks * block_size;
            file.deleted = info.stx_nlink == 0 || path.ends_with(deleted_mark);
            if (path.ends_with(deleted_mark))
                file.path.resize(path.size() - deleted_mark.size());
        }
        return &file;
    }

    /// Adds the file behind the kernel's link to an open or mapped file.
    SharedFile *add_link(const fs::path &link, const std::string &path) {
        const FileDescriptor held(open(link.c_str(), O_PATH | O_CLOEXEC));
        const auto mount = mount_held(held);

        return mount && mounts_.contains(*mount) ? add(held, path) : nullptr;
    }

    /// A mount of the kernel's own, which no table has: by a file in it.
    void add_unlisted(int file, bool is_secret) {
        const FileDescriptor held(file);

        struct statx info {};

        if (!look_at(held, info))
            return;
        memory_.insert(device_of(info));
        if (is_secret)
            secret_.insert(device_of(info));
        if (const auto mount = mount_held(held))
            mounts_.insert(*mount);
    }

    void add_own() {
        // The flag is refused by kernels before 6.3, its absence by vm.memfd_noexec=2.
        long memfd = syscall(SYS_memfd_create, "umacct", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
        if (memfd < 0 && errno == EINVAL)
            memfd = syscall(SYS_memfd_create, "umacct", MFD_CLOEXEC);
        add_unlisted(static_cast<int>(memfd), false);
        add_unlisted(static_cast<int>(syscall(SYS_memfd_secret, O_CLOEXEC)), true);
    }

    /// All files below a folder in memory, but not those of what is mounted in it.
    void add_names(const FileDescriptor &folder, const std::string &seen_as) {
        struct statx top {};

        if (look_at(folder, top) && searched_.insert(device_of(top)).second)
            walk(folder, seen_as, 1);
    }

    /// A folder that vanishes, or can't be read, is left out alone.
    void walk(const FileDescriptor &folder, const std::string &seen_as, unsigned depth) {
        const std::vector<Entry> entries = entries_in(folder, names_at_most - names_);

        names_ += entries.size();
        for (const Entry &entry : entries) {
            if (entry.type != DT_REG && (entry.type != DT_DIR || depth == depth_at_most))
                continue;
            const FileDescriptor held(hold_in(folder, entry.name, RESOLVE_NO_XDEV));
            const std::string path = join_path(seen_as, entry.name);
            if (held.get() < 0)
                continue;
            if (entry.type == DT_DIR)
                walk(held, path, depth + 1);
            else
                add(held, path);
        }
    }

    /// The mounts of a process that are in memory, and all that it sees.
    std::vector<Mount> read_mounts_of(const fs::path &process) {
        std::vector<Mount> mounts = mounts_seen_by(process);

        for (const Mount &mount : mounts) {
            if (!mount.is_tmpfs() && mount.type != "devtmpfs")
                continue;
            memory_.insert(mount.device);
            mounts_.insert(mount.id);
        }
        return mounts;
    }

    /// The mount that a folder is in, of those in a table.
    static const Mount *mount_at(const std::vector<Mount> &mounts, const FileDescriptor &folder) {
        const auto id = mount_held(folder);
        const auto found =
            std::ranges::find_if(mounts, [&](const Mount &each) { return each.id == id; });

        return found == mounts.end() ? nullptr : &*found;
    }

    /// Adds what is in a tmpfs that a process sees. What is mounted may have changed, or hide it:
    /// each folder on the way is held, then it is looked up which mount it is in, and only then is
    /// it asked for the next one. A tenant's table is read anew for that: no other mount can have
    /// got the id of one that is held.
    void add_tmpfs(const fs::path &process, const Mount &tmpfs, const std::vector<Mount> *own) {
        const fs::path root = own != nullptr ? fs::path("/") : process / "root";
        FileDescriptor folder(open(root.c_str(), O_PATH | O_CLOEXEC));
        const auto trusted = own != nullptr ? mount_held(folder) : std::nullopt;
        std::vector<Mount> anew;
        const auto mount_here = [&] {
            if (own == nullptr)
                anew = mounts_seen_by(process);
            return mount_at(own != nullptr ? *own : anew, folder);
        };

        for (const fs::path &name : tmpfs.point.relative_path()) {
            if (!trusted || mount_held(folder) != trusted) {
                const Mount *mount = mount_here();

                if (mount == nullptr ||
                    !mount->answers(
                        {.root = false, .overlays = own != nullptr || is_of_own_users(process)}))
                    return;
            }
            // Links are not followed, as a tenant may have put them there. No O_DIRECTORY: it waits
            // for automounts.
            folder.reset(hold_in(folder, name.string(), 0));
        }
        const Mount *mount = mount_here();
        if (mount != nullptr && mount->id == tmpfs.id && mount->is_tmpfs())
            add_names(folder, tmpfs.point.string());
    }

    void add_mounts() {
        const fs::path self = proc_ / "self";
        const std::vector<Mount> mounts = read_mounts_of(self);

        for (const Mount &mount : mounts) {
            if (mount.is_tmpfs() &&
                mount_of(mounts, mount.point, {.root = true, .overlays = true}) == &mount)
                add_tmpfs(self, mount, &mounts);
        }
    }

    /// A container has a /dev/shm of its own.
    void add_namespace(const fs::path &process) {
        static constexpr const char *shared = "/dev/shm";
        std::error_code error;
        std::error_code no_root;
        const auto name = fs::read_symlink(process / "ns/mnt", error);
        // Its table does not have what is above its root.
        const auto root = fs::read_symlink(process / "root", no_root);

        if (error || !namespaces_.emplace(name.string(), root.string()).second)
            return;
        const std::vector<Mount> mounts = read_mounts_of(process);
        const Mount *mount =
            mount_of(mounts, shared, {.root = false, .overlays = is_of_own_users(process)});
        if (mount != nullptr && mount->is_tmpfs() && !searched_.contains(mount->device))
            add_tmpfs(process, *mount, nullptr);
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

            if (gone || !path.starts_with('/'))
                continue;
            // The driver may have tens of thousands open, and reading fdinfo of each takes a
            // KiB, which that of the own descriptor doesn't.
            if (!path.starts_with("/dev/nvidia")) {
                const auto mount = mount_in(process / "fdinfo" / at->path().filename());

                if (!mount || !mounts_.contains(*mount))
                    continue;
            }
            SharedFile *file = add_link(at->path(), path);
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
        SharedFile *file = nullptr;
        if (known != files_.end()) {
            file = &known->second;
        } else if (memory_.contains(device)) {
            std::string path;

            std::getline(words, path);
            file = add_link(process / "map_files" / range, path);
        }
        if (file != nullptr && !has(file->mapped, pid))
            file->mapped.push_back(pid);
    }

    /// System V segments that no process has attached; the others are mappings.
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
    std::set<dev_t> memory_; ///< devices of file systems in memory
    std::set<dev_t> secret_; ///< those of them that are memfd_secret()'s
    std::set<int> mounts_;   ///< ids of mounts of theirs
    std::set<dev_t> searched_;
    std::set<std::pair<std::string, std::string>> namespaces_; ///< including the root
    std::size_t names_ = 0;
};

} // namespace

std::vector<SharedFile> shared_files(const fs::path &proc, std::uint64_t least) {
    return Search(proc).run(least);
}

} // namespace umacct
