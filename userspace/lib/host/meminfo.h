// SPDX-License-Identifier: GPL-2.0-or-later
/// The kernel's figures of memory.
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <optional>
#include <string>

namespace umacct {

/// The machine's, as /proc/meminfo says it. A task whose account has a view reads it within its
/// limit: Machine::meminfo() is what puts that right.
class Meminfo {
public:
    /// Throws Error when the text isn't that of /proc/meminfo.
    explicit Meminfo(std::istream &text);

    /// Bytes of one line ("MemFree"); 0 where the kernel has no such line.
    std::uint64_t bytes(const std::string &name) const;

    /// Puts another source's figure in the place of a line's.
    void correct(const std::string &name, std::uint64_t bytes) { bytes_[name] = bytes; }

    std::uint64_t total() const { return bytes("MemTotal"); }

    std::uint64_t free() const { return bytes("MemFree"); }

    std::uint64_t available() const { return bytes("MemAvailable"); }

private:
    std::map<std::string, std::uint64_t> bytes_;
};

/// Pressure stall information: how long tasks waited for memory, from a pressure file of a
/// cgroup (memory.pressure) and of the machine (/proc/pressure/memory).
struct Pressure {
    /// The share of time in which some task waited, or all of them did.
    struct Share {
        double avg10 = 0; ///< per cent of the last 10 s
        double avg60 = 0;
        std::uint64_t total_us = 0;
    };

    Share some;
    Share full;

    /// Parses a pressure file; empty if it is not one.
    static std::optional<Pressure> read(std::istream &file);
};

} // namespace umacct
