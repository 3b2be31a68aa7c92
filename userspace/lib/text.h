// SPDX-License-Identifier: GPL-2.0-or-later
/// Text that others wrote, for people to read.
#pragma once

#include <string>
#include <string_view>

namespace umacct {

/// A name that others chose, safe to print: what could move a terminal's cursor, turn
/// the direction of writing, hide itself or isn't UTF-8 becomes '?'.
std::string printable(std::string_view text);

} // namespace umacct
