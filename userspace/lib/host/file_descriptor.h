// SPDX-License-Identifier: GPL-2.0-or-later
/// An open file, closed with its owner.
#pragma once

#include <unistd.h>

namespace umacct {

class FileDescriptor {
public:
    /// fd: below zero for none.
    explicit FileDescriptor(int fd) : fd_(fd) {}

    FileDescriptor(const FileDescriptor &) = delete;
    FileDescriptor &operator=(const FileDescriptor &) = delete;
    FileDescriptor(FileDescriptor &&) = delete;
    FileDescriptor &operator=(FileDescriptor &&) = delete;

    ~FileDescriptor() { reset(-1); }

    int get() const { return fd_; }

    /// Closes it, and has another instead.
    void reset(int fd) {
        if (fd_ >= 0)
            close(fd_);
        fd_ = fd;
    }

private:
    int fd_;
};

} // namespace umacct
