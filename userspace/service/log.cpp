// SPDX-License-Identifier: GPL-2.0-or-later
#include "service/log.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/uio.h>
#include <systemd/sd-journal.h>

#include "lib/policy/policy.h"

namespace umacct {

namespace {

bool to_journal() {
    static const bool journal = std::getenv("JOURNAL_STREAM") != nullptr;

    return journal;
}

std::string field_of(std::string key, const std::string &value) {
    std::transform(key.begin(), key.end(), key.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return fmt::format("UMACCT_{}={}", key, value);
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

void log_event(Level level, const std::string &text, const char *message_id, const Json &event) {
    std::vector<std::string> entries{
        "MESSAGE=" + text, fmt::format("PRIORITY={}", static_cast<int>(level)),
        std::string("SYSLOG_IDENTIFIER=") + program_invocation_short_name,
        std::string("MESSAGE_ID=") + message_id};
    std::vector<iovec> parts;

    for (const auto &[key, value] : event.items())
        entries.push_back(
            field_of(key, value.is_string() ? value.get<std::string>() : value.dump()));
    parts.reserve(entries.size());
    for (std::string &entry : entries)
        parts.push_back({entry.data(), entry.size()});
    if (!to_journal() || sd_journal_sendv(parts.data(), static_cast<int>(parts.size())) < 0)
        log_line(level, text);
}

void log_error(const Error &error, const std::string &before, Level level) {
    if (const auto *policy = dynamic_cast<const PolicyError *>(&error)) {
        for (const Diagnostic &diagnostic : policy->diagnostics())
            log_line(level, before + diagnostic.line());
        return;
    }
    log_line(level, before + error.what());
    if (!error.hint().empty())
        log_line(level, "hint: " + error.hint());
}

} // namespace umacct
