// SPDX-License-Identifier: GPL-2.0-or-later
/// That there is one umacctd, and which process it is: it holds a lock for as long as it
/// runs, and the kernel tells whose lock that is.
#pragma once

#include <filesystem>
#include <optional>

#include <sys/types.h>

#include "lib/host/file_descriptor.h"

namespace umacct {

class Instance {
public:
    /// Takes the lock, below root. Throws Error when another has it.
    explicit Instance(const std::filesystem::path &root);

    /// The process that runs; empty for none. Throws Error (permission) where the caller may
    /// not know.
    static std::optional<pid_t> running(const std::filesystem::path &root);

private:
    FileDescriptor file_;
};

} // namespace umacct
