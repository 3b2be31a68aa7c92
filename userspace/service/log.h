// SPDX-License-Identifier: GPL-2.0-or-later
/// Lines on standard error; the journal learns from each how much it matters.
#pragma once

#include <string>

#include "lib/error.h"
#include "lib/json.h"

namespace umacct {

/// The kernel's numbers.
enum class Level { error = 3, warning = 4, notice = 5, info = 6 };

void log_line(Level level, const std::string &text);

/// A line that programs are to find, too: in the journal, by the id of its kind, with a field
/// UMACCT_KEY for each member of the event.
void log_event(Level level, const std::string &text, const char *message_id, const Json &event);

/// With its hint; of a policy, all that is wrong.
void log_error(const Error &error, const std::string &before = "", Level level = Level::error);

} // namespace umacct
