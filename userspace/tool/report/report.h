// SPDX-License-Identifier: GPL-2.0-or-later
/// "history --html": a time of the history as one file, for a message or a bug's thread.
#pragma once

#include <string>

#include "tool/history/period.h"

namespace umacct::tool {

struct Session;

struct ReportOptions {
    AskedTime time;
    std::string file = "-";
    bool html = false;
    bool svg = false;
    bool redact = false;

    bool is_asked_for() const { return html || svg; }

    const char *format() const { return svg ? "svg" : "html"; }

    bool asks_for_past() const { return time.until || time.at || time.boot.value_or(0) != 0; }
};

/// Writes it, and returns the exit code. Throws Error.
int write_report(Session &session, const ReportOptions &options);

} // namespace umacct::tool
