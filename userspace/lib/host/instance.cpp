// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/instance.h"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>

#include "lib/error.h"

namespace umacct {

namespace {

namespace fs = std::filesystem;

/// The folder is the service's (RuntimeDirectory=).
fs::path folder_of(const fs::path &root) {
    return root / "run/umacctd";
}

int open_lock(const fs::path &root, int flags) {
    // Whoever may read it could lock it, too.
    return open((folder_of(root) / "lock").c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

struct flock whole_file() {
    struct flock lock {};

    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    return lock;
}

} // namespace

Instance::Instance(const fs::path &root)
    : file_([&] {
          std::error_code error;

          fs::create_directories(folder_of(root), error);
          return open_lock(root, O_RDWR | O_CREAT);
      }()) {
    struct flock lock = whole_file();

    if (file_.get() >= 0 && fcntl(file_.get(), F_SETLK, &lock) == 0)
        return;
    const int code = errno;
    if (file_.get() >= 0 && (code == EAGAIN || code == EACCES))
        throw Error(Failure::failed, "umacctd runs already", "see 'systemctl status umacctd'");
    throw Error(failure_of(code), fmt::format("{}: {}", (folder_of(root) / "lock").string(),
                                              std::generic_category().message(code)));
}

std::optional<pid_t> Instance::running(const fs::path &root) {
    const FileDescriptor file(open_lock(root, O_RDONLY));
    struct flock lock = whole_file();

    if (file.get() < 0 && failure_of(errno) == Failure::permission)
        throw Error(Failure::permission, "whether umacctd runs is for root to know");
    // To ask is to say which lock one would take.
    if (file.get() < 0 || fcntl(file.get(), F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK ||
        lock.l_pid <= 0)
        return std::nullopt;
    return lock.l_pid;
}

} // namespace umacct
