// SPDX-License-Identifier: GPL-2.0-or-later
/// Lines on standard error; the journal learns from each how much it matters.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lib/error.h"

namespace umacct {

/// The kernel's numbers.
enum class Level { error = 3, warning = 4, notice = 5, info = 6 };

void log_line(Level level, const std::string &text);

/// Names and values of an entry in the journal.
using JournalFields = std::vector<std::pair<std::string, std::string>>;

/// A line that programs are to find, too: in the journal, with these fields.
void log_event(Level level, const std::string &text, const JournalFields &fields);

/// With its hint.
void log_error(const Error &error, const std::string &before = "");

} // namespace umacct
