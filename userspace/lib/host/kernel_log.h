// SPDX-License-Identifier: GPL-2.0-or-later
/// The kernel's log, record by record, and its records of killed processes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "lib/host/file_descriptor.h"

namespace umacct {

/// The text that the driver logs for each try of a request for which it has no memory.
inline constexpr std::string_view driver_complaint = "NV_ERR_NO_MEMORY";

/// A record: "PRIORITY,NUMBER,MICROSECONDS,...;TEXT", and lines that begin with a space.
struct LogRecord {
    std::uint64_t time_us = 0; ///< time since the machine's start, not counting sleep
    std::string text;

    /// Parses its first line; empty if it is none.
    static std::optional<LogRecord> parse(std::string_view line);
};

/// A process that the kernel killed for lack of memory.
struct KernelKill {
    std::string path;      ///< its cgroup
    std::string name;      ///< unescaped: not safe to print
    std::uint32_t pid = 0; ///< its pid in the initial namespace
    std::string
        limit_path; ///< the cgroup whose limit it was; empty where the machine had no memory

    /// Empty if the text says no such thing.
    static std::optional<KernelKill> parse(std::string_view text);
};

class KernelLog {
public:
    enum class From : std::uint8_t { begin, end };

    /// file: /dev/kmsg. It has no records if the caller may not read that.
    KernelLog(const std::filesystem::path &file, From from);

    bool is_open() const { return file_.get() >= 0; }

    /// Takes the next record that is there already.
    std::optional<LogRecord> next();

private:
    FileDescriptor file_;
    std::string lines_; ///< text read ahead
};

} // namespace umacct
