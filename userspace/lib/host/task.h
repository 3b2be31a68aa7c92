// SPDX-License-Identifier: GPL-2.0-or-later
/// Other users' processes, from /proc/PID/stat, which everyone can read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <istream>
#include <optional>
#include <string>

#include <sys/types.h>

namespace umacct {

/// One task: a thread, or the first thread of a process, which stands for it.
struct TaskStat {
    std::string name;
    char state = 0;            ///< the letter in ps: 'R', 'S', 'D', 'Z', ...
    std::uint32_t parent = 0;  ///< pid
    std::uint32_t group = 0;   ///< pid of the one that the process group is called by
    std::uint32_t session = 0; ///< the same of the session
    bool exiting = false;      ///< it is on its way out, or SIGKILL is pending for it
    std::uint64_t started = 0; ///< clock ticks since the machine's start

    /// Empty where the text isn't that of such a file.
    static std::optional<TaskStat> read(std::istream &text);
    /// directory: /proc/PID or /proc/PID/task/TID. Empty where it is gone, or can't be read.
    static std::optional<TaskStat> read(const std::filesystem::path &directory);
};

/// Memory of a process that it took without the driver, in bytes.
struct TaskMemory {
    std::uint64_t anonymous = 0;
    std::uint64_t shared = 0;  ///< tmpfs and shared memory that it has mapped
    std::uint64_t tables = 0;  ///< page tables
    std::uint64_t swapped = 0; ///< anonymous memory on swap

    /// directory: /proc/PID. Empty where it is gone.
    static std::optional<TaskMemory> read(const std::filesystem::path &directory);
};

/// Whether all of a process is on its way out: what it held through the driver is still coming
/// back. false where it is gone.
bool is_exiting(const std::filesystem::path &proc, std::uint32_t pid);

/// Whether what started a process is gone, and another has become its parent: that is of another
/// session, which a process gets into by nothing but beginning one; or it is the first of a
/// container, and the process that the group began with is gone.
bool is_orphaned(const std::filesystem::path &proc, std::uint32_t pid);

/// Whether it began then, and is no other that has the number now. start_time_ns: as
/// Client::start_time_ns.
bool started_at(const TaskStat &task, std::uint64_t start_time_ns);

} // namespace umacct
