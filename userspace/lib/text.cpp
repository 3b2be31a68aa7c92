// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/text.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace umacct {

namespace {

struct Range {
    char32_t first;
    char32_t last;
};

/// Code points that have no place in a name: they do something, or can't be seen.
constexpr std::array unwanted{
    Range{0x0000, 0x001f},   // C0 controls
    Range{0x007f, 0x009f},   // DEL, C1 controls
    Range{0x00ad, 0x00ad},   // soft hyphen
    Range{0x034f, 0x034f},   // combining grapheme joiner
    Range{0x061c, 0x061c},   // Arabic letter mark
    Range{0x115f, 0x1160},   // Hangul fillers
    Range{0x17b4, 0x17b5},   // Khmer vowels without a form
    Range{0x180b, 0x180f},   // Mongolian selectors and separator
    Range{0x200b, 0x200f},   // zero width, marks of direction
    Range{0x2028, 0x202e},   // separators of lines, embedding and override of direction
    Range{0x2060, 0x206f},   // invisible operators, isolation of direction
    Range{0x3164, 0x3164},   // Hangul filler
    Range{0xd800, 0xdfff},   // halves of UTF-16's pairs
    Range{0xfe00, 0xfe0f},   // variation selectors
    Range{0xfeff, 0xfeff},   // byte order mark
    Range{0xffa0, 0xffa0},   // Hangul filler
    Range{0xfff0, 0xffff},   // annotation, what is no character
    Range{0x1d173, 0x1d17a}, // musical controls
    Range{0xe0000, 0x1fffff} // tags, private use, what is above the last
};

bool is_wanted(char32_t code) {
    return std::ranges::none_of(
        unwanted, [&](const Range &range) { return range.first <= code && code <= range.last; });
}

/// How a character in UTF-8 begins.
struct Lead {
    unsigned char first;
    unsigned char last;
    std::size_t length;
    char32_t least; ///< smaller codes are written shorter
};

constexpr std::array leads{Lead{0x00, 0x7f, 1, 0}, Lead{0xc2, 0xdf, 2, 0x80},
                           Lead{0xe0, 0xef, 3, 0x800}, Lead{0xf0, 0xf4, 4, 0x10000}};

} // namespace

std::optional<char32_t> take_character(std::string_view &text) {
    const auto byte = static_cast<unsigned char>(text.front());
    const auto *lead = std::ranges::find_if(
        leads, [byte](const Lead &each) { return each.first <= byte && byte <= each.last; });
    const std::size_t length = lead == leads.end() ? 1 : lead->length;
    const std::string_view rest = text.substr(1, length - 1);
    char32_t code = length == 1 ? byte : byte & (0x7fU >> length);

    text.remove_prefix(1);
    for (const char c : rest)
        code = code << 6U | (static_cast<unsigned char>(c) & 0x3fU);
    if (lead == leads.end() || rest.size() + 1 != length || code < lead->least ||
        std::ranges::any_of(rest,
                            [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80; }))
        return std::nullopt;
    text.remove_prefix(rest.size());
    return code;
}

std::string printable(std::string_view text) {
    std::string result;

    result.reserve(text.size());
    while (!text.empty()) {
        const std::string_view before = text;
        const auto code = take_character(text);

        if (code && is_wanted(*code))
            result += before.substr(0, before.size() - text.size());
        else
            result += '?';
    }
    return result;
}

} // namespace umacct
