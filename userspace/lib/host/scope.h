// SPDX-License-Identifier: GPL-2.0-or-later
/// A cgroup of its own for one command: a systemd scope where systemd runs, else
/// a directory made in the cgroup file system.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "lib/host/cgroup.h"

namespace umacct {

bool systemd_runs();

class Scope {
public:
    /// Makes the cgroup and moves the processes into it; it lives for as long as
    /// one of them does. description: for who asks systemd what it is. Throws Error; nothing
    /// is left behind then.
    Scope(const Cgroups &cgroups, const std::string &name, const std::string &description,
          const std::vector<pid_t> &members, bool systemd = systemd_runs());
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;
    Scope(Scope &&) = delete;
    Scope &operator=(Scope &&) = delete;
    /// Kills what is left in it, and removes it.
    ~Scope();

    const std::string &path() const { return path_; }

private:
    const Cgroups &cgroups_;
    bool systemd_;
    std::string path_;
};

} // namespace umacct
