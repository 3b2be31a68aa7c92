// SPDX-License-Identifier: GPL-2.0-or-later
/// What is mounted, as /proc/PID/mountinfo says it. Nothing here asks a file system, which may wait
/// for somebody who doesn't answer.
#pragma once

#include <filesystem>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace umacct {

/// What is taken to answer, whatever file system it is.
struct Trust {
    bool root = false;     ///< what is mounted at "/"
    bool overlays = false; ///< overlays, which may lie on a file system of a program
};

struct Mount {
    int id = 0;                  ///< no other mount has it, whatever its namespace
    dev_t device = 0;            ///< of the file system
    std::string root;            ///< what of the file system is mounted
    std::filesystem::path point; ///< where, as seen from the reader's root
    std::string type;
    std::string options; ///< of the file system

    /// Its files are pages of memory.
    bool is_tmpfs() const { return type == "tmpfs"; }

    /// To look something up in it waits for nobody: no server, and no program.
    bool answers(const Trust &trust) const;
};

/// Later ones may hide earlier ones. Lines that aren't understood are left out.
std::vector<Mount> read_mounts(std::istream &mountinfo);

/// What a path lies in, unless that is hidden by what was mounted above it: the table doesn't say
/// that. nullptr where a mount that may not answer is on the way to it, or what is at "/" isn't
/// known, as for a process whose root is a folder in a mount.
const Mount *mount_of(const std::vector<Mount> &mounts, const std::filesystem::path &path,
                      const Trust &trust);

} // namespace umacct
