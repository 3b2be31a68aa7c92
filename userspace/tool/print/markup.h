// SPDX-License-Identifier: GPL-2.0-or-later
/// HTML and SVG, into which no name gets as anything but text.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

namespace umacct::tool {

/// Safe between tags and in a quoted attribute. What is not printable() becomes '?'.
std::string escaped(std::string_view text);

/// Writes markup. Tags are this program's own constants, known when it is compiled; what comes
/// from anywhere else is escaped.
class Markup {
    template <class Value>
    using Guarded = std::conditional_t<std::is_arithmetic_v<Value>, Value, std::string>;

public:
    /// A constant of the program's.
    struct Constant {
        // NOLINTNEXTLINE(google-explicit-constructor): a constant is one wherever it is written
        consteval Constant(const char *constant) : text(constant) {}

        const char *text;
    };

    /// out must outlive it.
    explicit Markup(std::ostream &out) : out_(out) {}

    Markup &add(Constant ours);
    Markup &text(std::string_view anybodys);

    /// Numbers as they are, texts escaped.
    template <class... Values>
    Markup &format(fmt::format_string<Guarded<Values>...> ours, const Values &...values) {
        return put(fmt::format(ours, guarded(values)...));
    }

private:
    template <class Value>
    static Guarded<Value> guarded(const Value &value) {
        if constexpr (std::is_arithmetic_v<Value>)
            return value;
        else
            return escaped(std::string_view(value));
    }

    Markup &put(std::string_view markup);

    std::ostream &out_;
};

} // namespace umacct::tool
