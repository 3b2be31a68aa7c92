// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/top/grid.h"

#include <algorithm>
#include <cwchar>
#include <utility>

#include <langinfo.h>

#include "lib/text.h"

namespace umacct::tool {

namespace {

struct Character {
    std::string text;
    int width;
};

/// Takes the next character off the text, as it is shown.
Character next_character(std::string_view &text) {
    const std::string_view before = text;
    const auto code = take_character(text);

    if (code && *code >= ' ' && *code < 0x7F)
        return {std::string(1, before.front()), 1};

    const int width = code && shows_unicode() ? wcwidth(static_cast<wchar_t>(*code)) : -1;
    if (width == 0 && *code != 0) // it changes the character before, and is left out
        return {"", 0};
    if (width < 1)
        return {"?", 1};
    return {std::string(before.substr(0, before.size() - text.size())), width};
}

std::string ellipsis() {
    return shows_unicode() ? "\u2026" : "~";
}

} // namespace

bool shows_unicode() {
    return std::string_view(nl_langinfo(CODESET)) == "UTF-8";
}

Grid::Grid(Size size)
    : size_{std::max(size.rows, 0), std::max(size.columns, 0)},
      rows_(static_cast<std::size_t>(size_.rows),
            std::vector<Cell>(static_cast<std::size_t>(size_.columns))) {}

int Grid::put(int row, int column, std::string_view text, Tone tone) {
    while (!text.empty()) {
        Character character = next_character(text);

        const int end = column + character.width;
        if (row >= 0 && row < size_.rows && column >= 0 && end <= size_.columns) {
            for (int at = column; at < end; ++at) {
                Cell &cell = rows_[static_cast<std::size_t>(row)][static_cast<std::size_t>(at)];

                cell.text = std::exchange(character.text, "");
                cell.tone = tone;
            }
        }
        column = end;
    }
    return column;
}

void Grid::mark(int row) {
    if (row < 0 || row >= size_.rows)
        return;
    for (Cell &cell : rows_[static_cast<std::size_t>(row)])
        cell.marked = true;
}

int width_of(std::string_view text) {
    int width = 0;

    while (!text.empty())
        width += next_character(text).width;
    return width;
}

std::string fitted(std::string_view text, int columns) {
    std::string result;
    int room = columns - 1;

    if (width_of(text) <= columns)
        return std::string(text);
    if (columns <= 0)
        return "";
    while (true) {
        const Character character = next_character(text);

        room -= character.width;
        if (room < 0)
            return result + ellipsis();
        result += character.text;
    }
}

std::string fitted_end(std::string_view text, int columns) {
    int width = width_of(text);

    if (width <= columns)
        return std::string(text);
    if (columns <= 0)
        return "";
    while (width + 1 > columns)
        width -= next_character(text).width;
    return ellipsis() + std::string(text);
}

std::vector<std::string> wrapped(std::string_view text, int columns) {
    std::vector<std::string> lines(1);
    int width = 0;

    while (!text.empty()) {
        const Character character = next_character(text);

        if (width + character.width > columns && width > 0) {
            lines.emplace_back();
            width = 0;
        }
        lines.back() += character.text;
        width += character.width;
    }
    return lines;
}

int draw_items(Grid &grid, int row, int rows, const std::vector<DrawnItem> &items) {
    int column = 0;
    int used = 0;

    for (const DrawnItem &item : items) {
        const int width = width_of(item.text);

        if (used == 0 || (column > 0 && column + width > grid.size().columns)) {
            if (used == rows)
                break;
            ++used;
            column = 0;
        }
        column =
            grid.put(row + used - 1, column, fitted(item.text, grid.size().columns), item.tone) + 3;
    }
    return used;
}

} // namespace umacct::tool
