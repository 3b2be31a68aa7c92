// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/print/table.h"

#include <algorithm>
#include <cwchar>
#include <numeric>

#include <fmt/ostream.h>

#include "lib/text.h"

namespace umacct::tool {

namespace {

constexpr std::size_t least_text = 8;  ///< minimum width of a text column that is cut
constexpr std::size_t least_name = 16; ///< the same of the first, if others can be left out instead
constexpr std::size_t gap = 2;         ///< spaces between two columns

/// Takes the first character off a text, as it is printed, and its width. A byte that the locale
/// has no character for is written out, as "\\xc3".
std::pair<std::string, std::size_t> take_printed(std::string_view &text) {
    const std::string_view before = text;
    const auto code = take_character(text);
    const std::string_view bytes = before.substr(0, before.size() - text.size());
    const int width = code ? wcwidth(static_cast<wchar_t>(*code)) : -1;

    if (width >= 0)
        return {std::string(bytes), static_cast<std::size_t>(width)};
    std::string written;
    for (const char byte : bytes)
        written += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    return {written, written.size()};
}

std::size_t columns_of(std::string_view text) {
    std::size_t columns = 0;

    while (!text.empty())
        columns += take_printed(text).second;
    return columns;
}

/// Cuts the text to that many columns, in its middle: a path's beginning and end matter.
std::string shortened(std::string_view text, std::size_t columns) {
    constexpr std::string_view dots = "...";
    std::vector<std::string_view> characters;
    std::string tail;

    if (columns_of(text) <= columns || columns < least_text)
        return std::string(text);
    for (std::string_view rest = text; !rest.empty();) {
        const std::string_view before = rest;

        take_character(rest);
        characters.push_back(before.substr(0, before.size() - rest.size()));
    }
    std::string head;
    std::size_t left = columns - dots.size();
    for (std::size_t i = characters.size(); i-- > 0;) {
        if (columns_of(characters[i]) + columns_of(tail) > left / 2)
            break;
        tail.insert(0, characters[i]);
    }
    left -= columns_of(tail);
    for (const std::string_view each : characters) {
        if (columns_of(each) + columns_of(head) > left)
            break;
        head += each;
    }
    return head.append(dots) + tail;
}

/// Takes a line of at most that many columns off a text, up to the end of a word if there is one.
std::string_view take_line(std::string_view &text, std::size_t columns) {
    const std::string_view all = text;
    std::string_view rest = text;
    std::size_t end = 0;

    for (std::size_t used = 0; !rest.empty(); end = all.size() - rest.size()) {
        used += take_printed(rest).second;
        if (used > columns && end > 0)
            break;
    }
    if (end < all.size()) {
        const std::size_t space = all.rfind(' ', end);

        end = space != std::string_view::npos && space > 0 ? space : end;
    }
    text.remove_prefix(std::min(all.find_first_not_of(' ', end), all.size()));
    return all.substr(0, end);
}

/// Returns the text as it is printed, cut or padded to that many columns.
std::string fitted(std::string_view text, std::size_t columns, Align align) {
    std::string printed;
    std::size_t used = 0;

    while (!text.empty()) {
        const auto [character, width] = take_printed(text);

        if (used + width > columns)
            break;
        printed += character;
        used += width;
    }
    const std::string padding(columns - used, ' ');
    return align == Align::right ? padding + printed : printed + padding;
}

/// Returns the titles of the columns that are not shown.
template <class Headings>
std::string titles_without(const Headings &headings, const std::vector<std::size_t> &shown) {
    std::string titles;

    for (std::size_t i = 0; i < headings.size(); ++i) {
        if (std::ranges::find(shown, i) == shown.end())
            titles += (titles.empty() ? "" : ", ") + headings[i].title;
    }
    return titles;
}

} // namespace

std::vector<std::size_t> Table::widths() const {
    std::vector<std::size_t> all;

    for (std::size_t i = 0; i < headings_.size(); ++i) {
        all.push_back(columns_of(headings_[i].title));
        for (const auto &row : rows_)
            all[i] = std::max(all[i], row.size() > i ? columns_of(row[i]) : 0);
    }
    return all;
}

std::size_t Table::least_width(std::size_t column, std::size_t width) const {
    const Heading &heading = headings_[column];

    return heading.align == Align::right
               ? width
               : std::min(width, std::max(least_text, columns_of(heading.title)));
}

std::vector<std::size_t> Table::columns_that_fit(std::size_t room,
                                                 const std::vector<std::size_t> &widths) const {
    std::vector<std::size_t> shown(headings_.size());
    const auto used = [&] {
        std::size_t sum = gap * (shown.size() - 1);

        for (const std::size_t i : shown)
            sum +=
                std::max(least_width(i, widths[i]), i == 0 ? std::min(widths[i], least_name) : 0);
        return sum;
    };

    std::iota(shown.begin(), shown.end(), 0);
    for (const bool keep : {false, true}) {
        for (std::size_t i = shown.size(); i-- > 1 && used() > room;) {
            if (headings_[shown[i]].keep == keep)
                shown.erase(shown.begin() + static_cast<std::ptrdiff_t>(i));
        }
    }
    return shown;
}

void Table::cut(const std::vector<std::size_t> &shown, std::size_t room,
                std::vector<std::size_t> &widths) const {
    std::size_t sum = gap * (shown.size() - 1);

    for (const std::size_t i : shown)
        sum += widths[i];
    for (; sum > room; --sum) {
        std::size_t widest = headings_.size();

        for (const std::size_t i : shown) {
            if (widths[i] > least_width(i, widths[i]) &&
                (widest == headings_.size() || widths[i] > widths[widest]))
                widest = i;
        }
        if (widest == headings_.size())
            break;
        --widths[widest];
    }
    std::size_t &first = widths[shown.front()];
    first -= std::min(std::max(first, std::size_t{1}) - 1, sum - std::min(sum, room));
}

void Table::print(const Output &output, int indent, bool header) const {
    std::vector<std::size_t> width = widths();
    std::vector<std::size_t> shown(headings_.size());

    if (rows_.empty())
        return;
    std::iota(shown.begin(), shown.end(), 0);
    if (output.width > 0) {
        const auto room = static_cast<std::size_t>(std::max(output.width - indent, 1));

        shown = columns_that_fit(room, width);
        cut(shown, room, width);
    }

    const auto print_line = [&](auto &&cell) {
        std::string line;

        for (const std::size_t i : shown) {
            line.append(i == shown.front() ? 0 : gap, ' ');
            line += fitted(cell(i), width[i], headings_[i].align);
        }
        line.erase(line.find_last_not_of(' ') + 1);
        fmt::print(output.out, "{:{}}{}\n", "", indent, line);
    };
    if (header &&
        std::ranges::any_of(headings_, [](const Heading &each) { return !each.title.empty(); }))
        print_line([&](std::size_t i) { return headings_[i].title; });
    for (const auto &row : rows_) {
        std::vector<std::string_view> rest(row.begin(), row.end());

        rest.resize(headings_.size());
        do {
            print_line([&](std::size_t i) {
                return headings_[i].wrap ? std::string(take_line(rest[i], width[i]))
                       : headings_[i].align == Align::left
                           ? shortened(std::exchange(rest[i], {}), width[i])
                           : std::string(std::exchange(rest[i], {}));
            });
        } while (std::ranges::any_of(shown, [&](std::size_t i) { return !rest[i].empty(); }));
    }

    if (shown.size() < headings_.size() && header)
        output.note("the terminal is too narrow for " + titles_without(headings_, shown));
}

} // namespace umacct::tool
