// SPDX-License-Identifier: GPL-2.0-or-later
/// The mount table, from /proc/PID/mountinfo. No file system is accessed here: it may belong to a
/// server or program that does not answer.
#pragma once

#include <filesystem>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace umacct {

/// Mounts that are assumed to answer, whatever their type.
struct Trust {
    bool root = false;     ///< the mount at "/"
    bool overlays = false; ///< overlays, which may lie on a file system of a program
};

struct Mount {
    int id = 0;                  ///< no other mount has it, whatever its namespace
    dev_t device = 0;            ///< the file system's
    std::string root;            ///< the part of the file system that is mounted
    std::filesystem::path point; ///< mount point, as seen from the reader's root
    std::string type;
    std::string options; ///< the file system's

    /// Its files are pages of memory.
    bool is_tmpfs() const { return type == "tmpfs"; }

    /// Returns whether a lookup in it needs no server and no other program.
    bool answers(const Trust &trust) const;
};

/// Later ones may hide earlier ones. Lines that aren't understood are left out.
std::vector<Mount> read_mounts(std::istream &mountinfo);

/// Returns the mount that a path is on, unless a later mount hides it, which the table doesn't
/// show. nullptr if a mount that may not answer is on the way, or the mount at "/" isn't known, as
/// for a process whose root is a folder of a mount.
const Mount *mount_of(const std::vector<Mount> &mounts, const std::filesystem::path &path,
                      const Trust &trust);

} // namespace umacct
