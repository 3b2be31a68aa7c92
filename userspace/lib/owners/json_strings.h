// SPDX-License-Identifier: GPL-2.0-or-later
/// The strings of a JSON document, read without building it: what is nested deeply or
/// has many members costs no more than its bytes.
#pragma once

#include <functional>
#include <span>
#include <string>

namespace umacct {

/// Calls visit for each string in order. keys: the way to it from the top, a member's
/// name or an element's number for each level; what is further down than a few levels
/// is left out. Whether the text is JSON; ends at the first mistake.
bool for_each_json_string(
    const std::string &text,
    const std::function<void(std::span<const std::string> keys, const std::string &value)> &visit);

} // namespace umacct
