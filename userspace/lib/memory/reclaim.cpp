// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/memory/reclaim.h"

#include <cerrno>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/hints.h"
#include "lib/host/file_descriptor.h"

namespace umacct {

namespace {

namespace fs = std::filesystem;

/// Reclaimed pages wait in lists of each processor, tens of MiB of them from 6.7 on, and is in
/// no block there. Each reading of this file takes an eighth out of them.
constexpr int refreshes = 24;

/// 0, or the errno.
int write_to(const fs::path &file, const std::string &text) {
    const FileDescriptor fd(open(file.c_str(), O_WRONLY | O_CLOEXEC));

    if (fd.get() < 0 || write(fd.get(), text.data(), text.size()) < 0)
        return errno;
    return 0;
}

[[noreturn]] void throw_errno(const char *what, const fs::path &file, int code) {
    throw Error(failure_of(code),
                fmt::format("cannot {} by {}: {}", what, file.string(),
                            std::generic_category().message(code)),
                failure_of(code) == Failure::permission ? run_as_root : "");
}

} // namespace

Reclaimer::Reclaimer(const Cgroups &cgroups, fs::path proc, fs::path root, bool anonymous)
    : cgroups_(cgroups), proc_(std::move(proc)), root_(std::move(root)), anonymous_(anonymous) {}

bool Reclaimer::reclaim(std::uint64_t bytes) {
    const auto directory = cgroups_.directory("/");

    if (!directory)
        throw Error(Failure::failed,
                    "cannot reclaim memory: the root of the cgroup hierarchy is not visible here",
                    "run it outside of containers");
    const fs::path file = *directory / "memory.reclaim";
    int code = EINVAL;
    if (!anonymous_ && takes_swappiness_) {
        code = write_to(file, fmt::format("{} swappiness=0", bytes));
        takes_swappiness_ = code != EINVAL;
    }
    if (!takes_swappiness_ && swaps())
        throw Error(Failure::failed,
                    "this kernel's memory.reclaim takes no swappiness, and there is swap: page "
                    "cache can't be had alone",
                    "allow it to swap, or swapoff");
    if (anonymous_ || !takes_swappiness_)
        code = write_to(file, std::to_string(bytes));
    if (code != 0 && code != EAGAIN)
        throw_errno("reclaim memory", file, code);
    empty_cpu_lists();
    return code == 0;
}

/// A caller that may not read it does without.
void Reclaimer::empty_cpu_lists() const {
    for (int i = 0; i < refreshes; ++i) {
        std::ifstream file(proc_ / "sys/vm/stat_refresh");

        file.peek();
        if (!file.is_open())
            return;
    }
}

void Reclaimer::compact() const {
    std::error_code error;
    std::vector<fs::path> files;

    // Each node's file is for who may write there, without being root.
    for (fs::directory_iterator at(root_ / "sys/devices/system/node", error), end;
         !error && at != end; at.increment(error)) {
        if (fs::exists(at->path() / "compact", error))
            files.push_back(at->path() / "compact");
    }
    if (files.empty())
        files.push_back(proc_ / "sys/vm/compact_memory");
    for (const fs::path &file : files) {
        if (const int code = write_to(file, "1"))
            throw_errno("compact memory", file, code);
    }
    empty_cpu_lists();
}

bool Reclaimer::swaps() const {
    std::ifstream swaps(proc_ / "swaps");
    std::string line;

    // The first line is a head.
    return std::getline(swaps, line) && std::getline(swaps, line);
}

} // namespace umacct
