// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/umacctd.h"

#include <array>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/hints.h"

namespace umacct {

namespace {

namespace fs = std::filesystem;

/// Size above which it is put aside, in place of the one before.
constexpr off_t most_bytes = 256 << 10;
constexpr std::size_t most_of_a_line = 16 << 10;

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
        throw Error(Failure::failed, "umacctd is already running",
                    "see 'systemctl status umacctd'");
    throw Error(failure_of(code),
                fmt::format("cannot lock {}: {}", (folder_of(root) / "lock").string(),
                            std::generic_category().message(code)));
}

std::optional<pid_t> Instance::running(const fs::path &root) {
    const FileDescriptor file(open_lock(root, O_RDONLY));
    struct flock lock = whole_file();

    if (file.get() < 0 && failure_of(errno) == Failure::permission)
        throw Error(Failure::permission, "cannot see whether umacctd is running: permission denied",
                    run_as_root);
    // F_GETLK asks by describing the lock that one would take.
    if (file.get() < 0 || fcntl(file.get(), F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK ||
        lock.l_pid <= 0)
        return std::nullopt;
    return lock.l_pid;
}

EventFile::EventFile(const fs::path &root) : file_(folder_of(root) / "events") {}

void EventFile::append(const std::string &line) const {
    struct stat state {};

    std::error_code ignored;

    if (lstat(file_.c_str(), &state) == 0 && state.st_size > most_bytes) {
        fs::path old = file_;
        old += ".old";
        fs::rename(file_, old, ignored);
    }
    const FileDescriptor fd(
        open(file_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    const std::string text = line + "\n";
    [[maybe_unused]] const ssize_t written = write(fd.get(), text.data(), text.size());
}

EventTail::EventTail(const fs::path &root) : file_(folder_of(root) / "events") {
    open_file();
    lseek(fd_.get(), 0, SEEK_END);
}

void EventTail::open_file() {
    fd_.reset(open(file_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    rest_.clear();
}

std::vector<std::string> EventTail::take() {
    std::vector<std::string> lines;

    struct stat ours {};

    struct stat there {};

    read_lines(lines);
    if (lstat(file_.c_str(), &there) == 0 &&
        (fstat(fd_.get(), &ours) != 0 || ours.st_ino != there.st_ino)) {
        open_file();
        read_lines(lines);
    }
    return lines;
}

void EventTail::read_lines(std::vector<std::string> &lines) {
    std::array<char, 4096> buffer{};
    ssize_t size = 0;

    while ((size = read(fd_.get(), buffer.data(), buffer.size())) > 0) {
        rest_.append(buffer.data(), static_cast<std::size_t>(size));
        for (std::size_t end = 0; (end = rest_.find('\n')) != std::string::npos;) {
            lines.push_back(rest_.substr(0, end));
            rest_.erase(0, end + 1);
        }
        if (rest_.size() > most_of_a_line)
            rest_.clear();
    }
}

} // namespace umacct
