// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/task.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include <unistd.h>

namespace umacct {

namespace {

/// PF_EXITING, of the kernel's linux/sched.h: what exit() sets first. The numbers of these
/// flags are no ABI, but this one hasn't changed since Linux 2.4.
constexpr std::uint64_t flag_exiting = 0x4;

/// Returns whether the process is the first of its pid namespace: "NSpid: 4711 1".
bool is_first(const std::filesystem::path &process) {
    std::ifstream status(process / "status");

    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("NSpid:"))
            return line.ends_with("\t1") || line.ends_with(" 1");
    }
    return false;
}

constexpr std::uint64_t bit_of(int signal) {
    return std::uint64_t{1} << (signal - 1);
}

} // namespace

std::optional<TaskStat> TaskStat::read(std::istream &text) {
    TaskStat task;
    std::string line;

    std::getline(text, line, '\0');
    // "PID (NAME) STATE PARENT ...": NAME may hold anything.
    const std::size_t open = line.find('(');
    const std::size_t close = line.rfind(')');
    if (open == std::string::npos || close == std::string::npos || close < open)
        return std::nullopt;
    task.name = line.substr(open + 1, close - open - 1);

    std::istringstream words(line.substr(close + 1));
    const auto skip = [&words](int count) {
        for (std::string word; count > 0; --count)
            words >> word;
    };
    std::uint64_t flags = 0;
    std::uint64_t pending = 0;
    words >> task.state >> task.parent >> task.group >> task.session;
    skip(2);
    words >> flags;
    skip(12);
    if (!(words >> task.started))
        return std::nullopt;
    skip(8);
    words >> pending;
    task.exiting = task.state == 'Z' || task.state == 'X' || (flags & flag_exiting) != 0 ||
                   (pending & bit_of(SIGKILL)) != 0;
    return task;
}

std::optional<TaskStat> TaskStat::read(const std::filesystem::path &directory) {
    std::ifstream file(directory / "stat");

    return file ? read(file) : std::nullopt;
}

std::optional<TaskMemory> TaskMemory::read(const std::filesystem::path &directory) {
    std::ifstream status(directory / "status");
    TaskMemory memory;

    if (!status)
        return std::nullopt;
    for (std::string line; std::getline(status, line);) {
        for (const auto &[key, bytes] : {std::pair{"RssAnon:", &memory.anonymous},
                                         {"RssShmem:", &memory.shared},
                                         {"VmPTE:", &memory.tables},
                                         {"VmSwap:", &memory.swapped}}) {
            if (line.starts_with(key))
                *bytes = std::strtoull(line.c_str() + std::strlen(key), nullptr, 10) * 1024;
        }
    }
    return memory;
}

bool is_exiting(const std::filesystem::path &proc, std::uint32_t pid) {
    const auto process = proc / std::to_string(pid);
    const std::optional<TaskStat> first = TaskStat::read(process);

    if (!first || !first->exiting)
        return false;
    // The first thread may have ended while others go on.
    std::error_code error;
    for (std::filesystem::directory_iterator at(process / "task", error), end; !error && at != end;
         at.increment(error)) {
        const std::optional<TaskStat> thread = TaskStat::read(at->path());

        if (thread && !thread->exiting)
            return false;
    }
    return true;
}

bool is_orphaned(const std::filesystem::path &proc, std::uint32_t pid) {
    const auto process = [&](std::uint32_t number) {
        return TaskStat::read(proc / std::to_string(number));
    };
    const std::optional<TaskStat> task = process(pid);
    const std::optional<TaskStat> parent = task ? process(task->parent) : std::nullopt;

    // No parent: it is the first process of its pid namespace, or the machine's.
    if (!parent || task->session == pid)
        return false;
    if (parent->session != task->session)
        return true;
    return task->group != pid && !process(task->group) &&
           is_first(proc / std::to_string(task->parent));
}

bool started_at(const TaskStat &task, std::uint64_t start_time_ns) {
    const auto ticks = static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));

    return task.started == start_time_ns * ticks / 1'000'000'000;
}

} // namespace umacct
