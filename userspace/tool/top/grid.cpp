// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/top/grid.h"

#include <algorithm>
#include <cwchar>

#include <fmt/format.h>

#include "lib/text.h"

namespace umacct::tool {

namespace {

struct Character {
    std::string text;
    int width;
};

/// What is shown for the text's next character, which is taken off it.
Character next_character(std::string_view &text, bool unicode) {
    const std::string_view before = text;
    const auto code = take_character(text);

    if (code && *code >= ' ' && *code < 0x7F)
        return {std::string(1, before.front()), 1};

    const int width = unicode && code ? wcwidth(static_cast<wchar_t>(*code)) : -1;
    if (width == 0 && *code != 0) // it changes the character before, and is left out
        return {"", 0};
    if (width < 1)
        return {"?", 1};
    return {std::string(before.substr(0, before.size() - text.size())), width};
}

} // namespace

Grid::Grid(Size size, bool unicode)
    : size_{std::max(size.rows, 0), std::max(size.columns, 0)},
      unicode_(unicode),
      rows_(static_cast<std::size_t>(size_.rows),
            std::vector<Cell>(static_cast<std::size_t>(size_.columns))) {}

int Grid::put(int row, int column, std::string_view text, Tone tone) {
    while (!text.empty()) {
        const Character character = next_character(text, unicode_);

        if (character.width == 0)
            continue;
        if (row >= 0 && row < size_.rows && column >= 0 &&
            column + character.width <= size_.columns) {
            auto &cells = rows_[static_cast<std::size_t>(row)];

            for (int at = column; at < column + character.width; ++at) {
                Cell &cell = cells[static_cast<std::size_t>(at)];

                cell.text = at == column ? character.text : "";
                cell.tone = tone;
            }
        }
        column += character.width;
    }
    return column;
}

void Grid::mark(int row) {
    if (row < 0 || row >= size_.rows)
        return;
    for (Cell &cell : rows_[static_cast<std::size_t>(row)])
        cell.marked = true;
}

std::string Grid::line(int row) const {
    std::string line;

    for (const Cell &cell : rows_.at(static_cast<std::size_t>(row)))
        line += cell.text;
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
}

std::string Grid::text() const {
    std::string text;

    for (int row = 0; row < size_.rows; ++row)
        text += line(row) + '\n';
    return text;
}

int width_of(std::string_view text, bool unicode) {
    int width = 0;

    while (!text.empty())
        width += next_character(text, unicode).width;
    return width;
}

std::string fitted(std::string_view text, int columns, bool unicode) {
    const std::string_view ellipsis = unicode ? "\u2026" : "~";
    std::string result;
    int width = 0;

    if (width_of(text, unicode) <= columns)
        return std::string(text);
    while (!text.empty()) {
        const Character character = next_character(text, unicode);

        if (width + character.width + 1 > columns)
            break;
        result += character.text;
        width += character.width;
    }
    return columns > 0 ? result + std::string(ellipsis) : "";
}

std::string fitted_end(std::string_view text, int columns, bool unicode) {
    int width = width_of(text, unicode);

    if (width <= columns)
        return std::string(text);
    if (columns <= 0)
        return "";
    while (width + 1 > columns)
        width -= next_character(text, unicode).width;
    return fmt::format("{}{}", unicode ? "\u2026" : "~", text);
}

} // namespace umacct::tool
