// SPDX-License-Identifier: GPL-2.0-or-later
/// JSON that others wrote, read without building it: what is nested deeply or has many members
/// costs no more than its bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace umacct {

/// A value that holds no others.
struct JsonScalar {
    const std::string *text = nullptr;  ///< a string's value; null for other types
    std::optional<std::int64_t> number; ///< a 64-bit integer's value
};

/// The way to a value from the top, a member's name or an element's number for each level.
using JsonKeys = std::span<const std::string>;

/// Calls visit for each scalar of a document in order; what is further down than a few levels is
/// left out. Whether the text is JSON; ends at the first mistake.
bool for_each_json_scalar(const std::string &text,
                          const std::function<void(JsonKeys keys, const JsonScalar &value)> &visit);

/// The same of its strings alone.
bool for_each_json_string(
    const std::string &text,
    const std::function<void(JsonKeys keys, const std::string &value)> &visit);

} // namespace umacct
