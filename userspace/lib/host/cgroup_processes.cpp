// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/cgroup_processes.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include <sys/syscall.h>
#include <unistd.h>

#include "lib/host/file_descriptor.h"

namespace umacct {

namespace {

constexpr std::size_t most_processes = 65536;
/// umacctd may have 1,024 files open.
constexpr std::size_t handles_at_once = 256;

/// Calls visit with the directory of a cgroup and of those below it, until it returns false, or
/// most is 0.
void visit_below(const Cgroups &cgroups, const std::string &path, std::size_t &most,
                 const std::function<bool(const std::filesystem::path &directory)> &visit) {
    std::vector<std::string> left{path};

    while (!left.empty()) {
        const std::string each = std::move(left.back());
        std::error_code ignored;

        left.pop_back();
        const auto directory = cgroups.directory(each);
        if (!directory)
            continue;
        if (!visit(*directory))
            return;
        for (const std::string &name : folders_in(*directory, ignored, most)) {
            left.push_back(join_path(each, name));
            --most;
        }
    }
}

std::vector<pid_t> processes_in(const std::filesystem::path &directory) {
    std::ifstream file(directory / "cgroup.procs");
    std::vector<pid_t> pids;

    for (pid_t pid = 0; pids.size() < most_processes && file >> pid;)
        pids.push_back(pid);
    return pids;
}

/// Sends SIGTERM to the processes in a cgroup. A pid may be another's by the time it is used, so
/// each is used by a handle, and a handle is of one of them if its pid is still listed. Nothing is
/// read in /proc: umacctd's unit hides what is not its own there.
int terminate(const std::filesystem::path &directory, std::chrono::steady_clock::time_point until) {
    const std::vector<pid_t> pids = processes_in(directory);
    int first_error = 0;

    for (std::size_t at = 0; at < pids.size(); at += handles_at_once) {
        std::map<pid_t, FileDescriptor> handles;

        if (std::chrono::steady_clock::now() >= until)
            break;
        for (std::size_t i = at; i < std::min(at + handles_at_once, pids.size()); ++i)
            handles.try_emplace(pids[i], static_cast<int>(syscall(SYS_pidfd_open, pids[i], 0)));
        const std::vector<pid_t> still = processes_in(directory);
        const std::unordered_set<pid_t> listed(still.begin(), still.end());
        for (const auto &[pid, handle] : handles) {
            if (handle.get() >= 0 && listed.contains(pid) &&
                syscall(SYS_pidfd_send_signal, handle.get(), SIGTERM, nullptr, 0) != 0 &&
                errno != ESRCH && first_error == 0)
                first_error = errno;
        }
    }
    return first_error;
}

} // namespace

std::unordered_set<pid_t> processes_below(const Cgroups &cgroups, const std::string &path,
                                          std::size_t &most) {
    std::unordered_set<pid_t> pids;

    visit_below(cgroups, path, most, [&](const std::filesystem::path &directory) {
        for (const pid_t pid : processes_in(directory))
            pids.insert(pid);
        return pids.size() < most_processes;
    });
    return pids;
}

int terminate_processes(const Cgroups &cgroups, const std::string &path, std::size_t most,
                        std::chrono::steady_clock::time_point until) {
    int first_error = 0;

    visit_below(cgroups, path, most, [&](const std::filesystem::path &directory) {
        const int error = terminate(directory, until);

        first_error = first_error != 0 ? first_error : error;
        return std::chrono::steady_clock::now() < until;
    });
    return first_error;
}

} // namespace umacct
