// SPDX-License-Identifier: GPL-2.0-or-later
/// The machine's memory, as /proc/meminfo says it. A task whose account has a
/// view reads it within its limit.
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <string>

namespace umacct {

class Meminfo {
public:
    /// Throws Error when the text isn't that of /proc/meminfo.
    explicit Meminfo(std::istream &text);

    /// Bytes of one line ("MemFree"); 0 where the kernel has no such line.
    std::uint64_t bytes(const std::string &name) const;

    std::uint64_t total() const { return bytes("MemTotal"); }

    std::uint64_t free() const { return bytes("MemFree"); }

    std::uint64_t available() const { return bytes("MemAvailable"); }

private:
    std::map<std::string, std::uint64_t> bytes_;
};

} // namespace umacct
