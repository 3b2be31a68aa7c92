// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/replace_file.h"

#include <cerrno>
#include <optional>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/host/file_descriptor.h"

namespace umacct {

namespace fs = std::filesystem;

namespace {

constexpr mode_t of_all = 0666; ///< as far as the umask has it
constexpr mode_t of_owner = 0600;

enum class Mode {
    by_umask,
    as_before, ///< the old file's, and its owner
    only_owner,
};

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
    std::error_code ignored;

    // What somebody may have open or linked is not written to.
    fs::remove(file, ignored);
    const FileDescriptor out(open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (out.get() < 0)
        return errno;
    if (like && (fchown(out.get(), like->st_uid, like->st_gid) != 0 ||
                 fchmod(out.get(), like->st_mode & 07777) != 0))
        return errno;
    return write_all(out.get(), text);
}

int replace(const fs::path &file, const std::string &text, Mode mode) {
    std::error_code error;
    std::optional<struct stat> like;
    fs::path next = file;

    // Where there is no folder and none can be made, that is what is wrong.
    if (!fs::create_directories(file.parent_path(), error) && error)
        return error.value();
    if (mode == Mode::as_before && stat(file.c_str(), &like.emplace()) != 0) {
        if (errno != ENOENT)
            return errno;
        like.reset();
    }
    next += ".new";
    int code = write_new(next, text, like || mode == Mode::only_owner ? of_owner : of_all, like);
    if (code == 0 && rename(next.c_str(), file.c_str()) != 0)
        code = errno;
    if (code != 0)
        fs::remove(next, error);
    return code;
}

} // namespace

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
