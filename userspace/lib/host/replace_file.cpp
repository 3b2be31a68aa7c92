// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/replace_file.h"

#include <cerrno>
#include <optional>
#include <random>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/host/file_descriptor.h"

namespace umacct {

namespace fs = std::filesystem;

namespace {

constexpr mode_t of_all = 0666; ///< the umask applies
constexpr mode_t of_owner = 0600;

enum class Mode {
    by_umask,
    as_before, ///< the old file's, and its owner
    only_owner,
};

OnFileStep &observer() {
    static OnFileStep call;

    return call;
}

void step(const char *name, const fs::path &path) {
    if (observer())
        observer()(name, path);
}

/// 0, or an errno.
int write_all(int file, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = write(file, text.data(), text.size());

        if (written < 0 && errno != EINTR)
            return errno;
        if (written > 0)
            text.remove_prefix(static_cast<std::size_t>(written));
    }
    return 0;
}

/// 0, or an errno. like: the file whose owner and mode the new one gets. Until it has them, only
/// its owner may read it: the text may be a secret.
int write_new(const fs::path &file, std::string_view text, mode_t mode,
              const std::optional<struct stat> &like) {
    const FileDescriptor out(open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (out.get() < 0)
        return errno;
    if (like && (fchown(out.get(), like->st_uid, like->st_gid) != 0 ||
                 fchmod(out.get(), like->st_mode & 07777) != 0))
        return errno;
    step("write", file);
    if (const int code = write_all(out.get(), text))
        return code;
    // Or the name could be on the disk before what it names.
    step("sync", file);
    return fsync(out.get()) == 0 ? 0 : errno;
}

/// Makes a folder, and those above it, so that they are there after a power cut, too.
int make_folder(const fs::path &folder) {
    std::error_code error;

    if (folder.empty() || fs::is_directory(folder, error))
        return 0;
    if (folder.has_parent_path() && folder.parent_path() != folder) {
        if (const int code = make_folder(folder.parent_path()))
            return code;
    }
    // Another may have made it just now.
    if (!fs::create_directory(folder, error) && error)
        return error == std::errc::file_exists ? ENOTDIR : error.value();
    return sync_path(folder.parent_path());
}

int replace(const fs::path &file, const std::string &text, Mode mode) {
    std::error_code error;
    std::optional<struct stat> like;
    fs::path next = file;

    // A folder that is missing and can't be made is the error to report.
    if (const int code = make_folder(file.parent_path()))
        return code;
    if (mode == Mode::as_before && stat(file.c_str(), &like.emplace()) != 0) {
        if (errno != ENOENT)
            return errno;
        like.reset();
    }
    // A name of its own: another may replace the same file just now.
    next += fmt::format(".new.{:08x}", std::random_device()());
    int code = write_new(next, text, like || mode == Mode::only_owner ? of_owner : of_all, like);
    code = code != 0 ? code : rename_path(next, file);
    if (code != 0)
        fs::remove(next, error);
    return code;
}

} // namespace

int rename_path(const fs::path &from, const fs::path &to) {
    step("rename", to);
    return rename(from.c_str(), to.c_str()) == 0 ? sync_path(to.parent_path()) : errno;
}

int sync_path(const fs::path &path) {
    const FileDescriptor file(open(path.empty() ? "." : path.c_str(), O_RDONLY | O_CLOEXEC));

    step("sync", path);
    if (file.get() < 0)
        return errno;
    return fsync(file.get()) == 0 ? 0 : errno;
}

void on_file_step(OnFileStep call) {
    observer() = std::move(call);
}

int replace_file(const fs::path &file, const std::string &text) {
    return replace(file, text, Mode::by_umask);
}

int replace_file_of_others(const fs::path &file, const std::string &text) {
    return replace(file, text, Mode::as_before);
}

int replace_private_file(const fs::path &file, const std::string &text) {
    return replace(file, text, Mode::only_owner);
}

} // namespace umacct
