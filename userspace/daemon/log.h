// SPDX-License-Identifier: GPL-2.0-or-later
/// Lines on standard error; the journal learns from each how much it matters.
#pragma once

#include <string>

#include "lib/error.h"

namespace umacct {

/// The kernel's numbers.
enum class Level { error = 3, warning = 4, notice = 5, info = 6 };

void log_line(Level level, const std::string &text);

/// With its hint.
void log_error(const Error &error, const std::string &before = "");

} // namespace umacct
