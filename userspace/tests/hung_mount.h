// SPDX-License-Identifier: GPL-2.0-or-later
/// A file system of a program that answers until a process has its only file open and mapped, and
/// never again, as one of a server that is gone.
#pragma once

#include <filesystem>

#include <sys/types.h>

namespace umacct::test {

class HungMount {
public:
    /// Mounts it in a new mount namespace.
    explicit HungMount(const std::filesystem::path &place);
    HungMount(const HungMount &) = delete;
    HungMount &operator=(const HungMount &) = delete;
    HungMount(HungMount &&) = delete;
    HungMount &operator=(HungMount &&) = delete;
    ~HungMount();

    /// The process that has the file, and a memfd of 2 MiB; 0 where the system allows no such
    /// mount.
    pid_t user() const { return user_; }

private:
    pid_t server_ = 0;
    pid_t user_ = 0;
};

} // namespace umacct::test
