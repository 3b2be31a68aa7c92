// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/kernel_log.h"

#include <array>
#include <cerrno>
#include <charconv>

#include <fcntl.h>
#include <unistd.h>

namespace umacct {

namespace {

/// Cuts the last mark and the text behind it off, and returns the latter.
std::optional<std::string_view> cut_last(std::string_view &text, std::string_view mark) {
    const std::size_t at = text.rfind(mark);

    if (at == std::string_view::npos)
        return std::nullopt;
    const std::string_view part = text.substr(at + mark.size());
    text = text.substr(0, at);
    return part;
}

} // namespace

std::optional<LogRecord> LogRecord::parse(std::string_view line) {
    const std::size_t text = line.find(';');
    std::size_t at = 0;
    LogRecord parsed;

    if (text == std::string_view::npos)
        return std::nullopt;
    for (int commas = 0; commas < 2; ++commas) {
        at = line.find(',', at);
        if (at == std::string_view::npos || at > text)
            return std::nullopt;
        ++at;
    }
    if (std::from_chars(line.data() + at, line.data() + text, parsed.time_us).ec != std::errc())
        return std::nullopt;
    parsed.text = line.substr(text + 1);
    return parsed;
}

std::optional<KernelKill> KernelKill::parse(std::string_view text) {
    KernelKill kill;

    // "oom-kill:constraint=...,oom_memcg=PATH,task_memcg=PATH,task=NAME,pid=N,uid=N": a tenant
    // chooses paths and names, so it is read from its end.
    if (!text.starts_with("oom-kill:") || !cut_last(text, ",uid="))
        return std::nullopt;
    const auto pid = cut_last(text, ",pid=");
    const auto name = pid ? cut_last(text, ",task=") : std::nullopt;
    const auto path = name ? cut_last(text, ",task_memcg=") : std::nullopt;
    if (!path ||
        std::from_chars(pid->data(), pid->data() + pid->size(), kill.pid).ec != std::errc())
        return std::nullopt;
    kill.name = *name;
    kill.path = *path;
    kill.limit_path = cut_last(text, ",oom_memcg=").value_or("");
    return kill;
}

KernelLog::KernelLog(const std::filesystem::path &file, From from)
    : file_(open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
    if (is_open() && from == From::end)
        lseek(file_.get(), 0, SEEK_END);
}

std::optional<LogRecord> KernelLog::next() {
    std::array<char, 8192> part{};

    while (is_open()) {
        if (const std::size_t end = lines_.find('\n'); end != std::string::npos) {
            const std::string line = lines_.substr(0, end);

            lines_.erase(0, end + 1);
            if (auto record = line.starts_with(' ') ? std::nullopt : LogRecord::parse(line))
                return record;
            continue;
        }
        const ssize_t size = read(file_.get(), part.data(), part.size());
        if (size > 0)
            lines_.append(part.data(), static_cast<std::size_t>(size));
        else if (size == 0 || (errno != EPIPE && errno != EINTR)) // EPIPE: some were overwritten
            break;
    }
    return std::nullopt;
}

} // namespace umacct
