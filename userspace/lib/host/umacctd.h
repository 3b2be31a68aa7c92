// SPDX-License-Identifier: GPL-2.0-or-later
/// What umacctd has in /run: a lock, and what it did.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "lib/host/file_descriptor.h"

namespace umacct {

/// What its guard sees, below root: one JSON object, written anew with each look.
constexpr const char *ranking_file = "run/umacctd/ranking";

/// What it read of what container runtimes wrote down, below root: see StateFiles::share().
constexpr const char *answers_file = "run/umacctd/answers";

/// For who sets what a container asked for, see lib/contract.h; below root.
constexpr const char *contract_lock_file = "run/umacctd/contracts";

/// That there is one umacctd, and which process it is: it holds a lock for as long as it runs,
/// and the kernel tells whose lock that is.
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

/// What umacctd did of its own accord, for who watches: a file of lines, of bounded size, that
/// only root and umacctd read.
class EventFile {
public:
    /// root: where /run is.
    explicit EventFile(const std::filesystem::path &root);

    /// A line, without its end. That it can't be written is nobody's trouble: the log has it.
    void append(const std::string &line) const;

private:
    std::filesystem::path file_;
};

/// Reads the lines that are appended from now on, also across umacctd's restart.
class EventTail {
public:
    explicit EventTail(const std::filesystem::path &root);

    /// The lines since the last call; none where there is no file, or it is not for us.
    std::vector<std::string> take();

private:
    void open_file();
    void read_lines(std::vector<std::string> &lines);

    std::filesystem::path file_;
    FileDescriptor fd_{-1};
    std::string rest_; ///< of a line that isn't whole yet
};

} // namespace umacct
