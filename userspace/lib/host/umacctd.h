// SPDX-License-Identifier: GPL-2.0-or-later
/// umacctd's files in /run: its lock, and records of its actions.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "lib/host/file_descriptor.h"

namespace umacct {

/// The guard's ranking, relative to root: one JSON object, replaced at each look.
constexpr const char *ranking_file = "run/umacctd/ranking";

/// The parsed state of container runtimes, relative to root: see StateFiles::share().
constexpr const char *answers_file = "run/umacctd/answers";

/// The guard's steps that are to be undone, below root: "reserve BYTES" and "frozen PATH".
constexpr const char *guard_file = "run/umacctd/guard";

/// The lock of OrderLock, below root.
constexpr const char *order_lock_file = "run/umacctd/orders";

/// The last good policy's texts, below root; another folder for each policy.
constexpr const char *kept_policy = "var/lib/umacctd/policy";

/// A file that is there while what is kept is older than the policy in force.
constexpr const char *policy_not_kept = "run/umacctd/policy-not-kept";

/// The lock of who changes a file of the policy, below root.
constexpr const char *policy_lock_file = "run/umacctd/policy-files";

/// The running umacctd. It holds a lock for as long as it runs, and the kernel names the holder.
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

/// Log of umacctd's own actions for other programs: a file of lines, of bounded size, readable by
/// root and umacctd alone.
class EventFile {
public:
    /// root: where /run is.
    explicit EventFile(const std::filesystem::path &root);

    /// Appends a line, given without its end. Ignores write errors: the journal has the line, too.
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
    std::string rest_; ///< an incomplete last line
};

} // namespace umacct
