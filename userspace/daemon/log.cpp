// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/log.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include <fmt/format.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>

namespace umacct {

namespace {

bool to_journal() {
    static const bool journal = std::getenv("JOURNAL_STREAM") != nullptr;

    return journal;
}

} // namespace

void log_line(Level level, const std::string &text) {
    std::istringstream lines(text);

    for (std::string line; std::getline(lines, line);) {
        if (to_journal())
            fmt::print(stderr, "<{}>{}\n", static_cast<int>(level), line);
        else
            fmt::print(stderr, "{}: {}\n", program_invocation_short_name, line);
    }
}

void log_event(Level level, const std::string &text, const JournalFields &fields) {
    std::vector<std::string> entries{
        "MESSAGE=" + text, fmt::format("PRIORITY={}", static_cast<int>(level)),
        std::string("SYSLOG_IDENTIFIER=") + program_invocation_short_name};
    std::vector<iovec> parts;

    for (const auto &[name, value] : fields)
        entries.push_back(fmt::format("{}={}", name, value));
    parts.reserve(entries.size());
    for (std::string &entry : entries)
        parts.push_back({entry.data(), entry.size()});
    if (!to_journal() || sd_journal_sendv(parts.data(), static_cast<int>(parts.size())) < 0)
        log_line(level, text);
}

void log_error(const Error &error, const std::string &before) {
    log_line(Level::error, before + error.what());
    if (!error.hint().empty())
        log_line(Level::error, "hint: " + error.hint());
}

} // namespace umacct
