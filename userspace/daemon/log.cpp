// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/log.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include <fmt/format.h>

namespace umacct {

void log_line(Level level, const std::string &text) {
    static const bool journal = std::getenv("JOURNAL_STREAM") != nullptr;
    std::istringstream lines(text);

    for (std::string line; std::getline(lines, line);) {
        if (journal)
            fmt::print(stderr, "<{}>{}\n", static_cast<int>(level), line);
        else
            fmt::print(stderr, "{}: {}\n", program_invocation_short_name, line);
    }
}

void log_error(const Error &error, const std::string &before) {
    log_line(Level::error, before + error.what());
    if (!error.hint().empty())
        log_line(Level::error, "hint: " + error.hint());
}

} // namespace umacct
