// SPDX-License-Identifier: GPL-2.0-or-later
/// Errors that name the argument they are about.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "lib/error.h"

namespace umacct::tool {

/// Which argument sets which netlink attribute.
using AttributeNames = std::initializer_list<std::pair<std::uint16_t, const char *>>;

/// Calls read(text); what it throws says which argument the text came from.
template <class Read>
auto read_argument(const char *argument, const std::string &text, Read read) {
    try {
        return read(text);
    } catch (const Error &error) {
        throw Error(error.failure(), fmt::format("{}: {}", argument, error.what()), error.hint());
    }
}

/// Calls change(); when the module refuses one attribute, the error names its argument.
template <class Change>
void request_change(const std::string &subject, AttributeNames names, Change change) {
    try {
        change();
    } catch (const RequestError &error) {
        std::string where = subject;

        for (const auto &[attribute, argument] : names) {
            if (attribute == error.attribute())
                where = where.empty() ? argument : fmt::format("{}: {}", where, argument);
        }
        throw Error(error.failure(),
                    where.empty() ? error.what() : fmt::format("{}: {}", where, error.what()),
                    error.hint());
    }
}

} // namespace umacct::tool
