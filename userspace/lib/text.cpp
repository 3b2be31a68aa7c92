// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

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
    Range{0xfe00, 0xfe0f},   // variation selectors
    Range{0xfeff, 0xfeff},   // byte order mark
    Range{0xffa0, 0xffa0},   // Hangul filler
    Range{0xfff0, 0xffff},   // annotation, what is no character
    Range{0x1d173, 0x1d17a}, // musical controls
    Range{0xe0000, 0x10ffff} // tags, private use
};

bool is_wanted(char32_t code) {
    return std::ranges::none_of(
        unwanted, [&](const Range &range) { return range.first <= code && code <= range.last; });
}

/// The bytes of the character that text begins with, 0 where they are none in UTF-8.
std::size_t character(std::string_view text, char32_t &code) {
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
    const std::size_t length = byte(0) < 0x80   ? 1
                               : byte(0) < 0xc2 ? 0
                               : byte(0) < 0xe0 ? 2
                               : byte(0) < 0xf0 ? 3
                               : byte(0) < 0xf5 ? 4
                                                : 0;

    if (length == 0 || length > text.size())
        return 0;
    code = length == 1 ? byte(0) : byte(0) & (0x7fU >> length);
    for (std::size_t at = 1; at < length; ++at) {
        if ((byte(at) & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (byte(at) & 0x3f);
    }
    // Longer than it need be, or half a pair of UTF-16's.
    if ((length == 3 && code < 0x800) || (length == 4 && (code < 0x10000 || code > 0x10ffff)) ||
        (code >= 0xd800 && code <= 0xdfff))
        return 0;
    return length;
}

} // namespace

std::string printable(std::string_view text) {
    std::string result;

    result.reserve(text.size());
    while (!text.empty()) {
        char32_t code = 0;
        const std::size_t length = character(text, code);

        if (length > 0 && is_wanted(code))
            result += text.substr(0, length);
        else
            result += '?';
        text.remove_prefix(length > 0 ? length : 1);
    }
    return result;
}

} // namespace umacct
