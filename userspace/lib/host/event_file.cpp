// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/event_file.h"

#include <array>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace umacct {

namespace {

namespace fs = std::filesystem;

/// Above this it is put aside, in place of the one before.
constexpr off_t most_bytes = 256 << 10;
constexpr std::size_t most_of_a_line = 16 << 10;

fs::path file_below(const fs::path &root) {
    return root / "run/umacctd/events";
}

} // namespace

EventFile::EventFile(const fs::path &root) : file_(file_below(root)) {}

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

EventTail::EventTail(const fs::path &root) : file_(file_below(root)) {
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
