// SPDX-License-Identifier: GPL-2.0-or-later
/// Memory that lies in files, which no process has to have: tmpfs (/dev/shm above all), memfds,
/// secret ones too, and System V segments; and who maps them, or has them open.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace umacct {

struct SharedFile {
    std::string path; ///< the holder's view of it; not safe for a terminal
    std::uint64_t bytes = 0;
    bool deleted = false;              ///< has no name any more, and goes with its last holder
    std::vector<std::uint32_t> mapped; ///< pids
    std::vector<std::uint32_t> open;   ///< pids that only have it open

    bool is_nobodys() const { return mapped.empty(); }
};

/// Lists the files of at least that many bytes, unmapped ones first, then the largest. Only root
/// sees the mappings of other users' processes. Reads the descriptors of every process: some 100 ms
/// for a thousand of them.
///
/// It asks no file system that may wait for a server or a program, nor an overlay of another user
/// namespace, which may lie on one: files that are not open, in a /dev/shm that is reached over
/// one, and that the reader sees nowhere else, is left out. So is what is in a tmpfs that is
/// mounted nowhere any more, and files that are not open below 256 folders.
std::vector<SharedFile> shared_files(const std::filesystem::path &proc, std::uint64_t least);

} // namespace umacct
