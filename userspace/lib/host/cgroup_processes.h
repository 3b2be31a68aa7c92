// SPDX-License-Identifier: GPL-2.0-or-later
/// Processes in a cgroup and below it. A tenant can make any number of both: each function visits a
/// limited number of cgroups and processes.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <unordered_set>

#include <sys/types.h>

#include "lib/host/cgroup.h"

namespace umacct {

/// Returns the processes. most: how many cgroups may be visited; each visit takes one from it.
std::unordered_set<pid_t> processes_below(const Cgroups &cgroups, const std::string &path,
                                          std::size_t &most);

/// Sends SIGTERM to them, until that time. 0, or the first error as an errno.
int terminate_processes(const Cgroups &cgroups, const std::string &path, std::size_t most,
                        std::chrono::steady_clock::time_point until);

} // namespace umacct
