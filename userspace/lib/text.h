// SPDX-License-Identifier: GPL-2.0-or-later
/// Text that others wrote, for people to read.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace umacct {

/// A name that others chose, safe to print: what could move a terminal's cursor, turn
/// the direction of writing, hide itself or isn't UTF-8 becomes '?'.
std::string printable(std::string_view text);

/// Takes the first character off a text in UTF-8: its code point. Where that is none in
/// UTF-8, takes one byte.
std::optional<char32_t> take_character(std::string_view &text);

} // namespace umacct
