// SPDX-License-Identifier: GPL-2.0-or-later
/// Conversion of a grid to text.
#pragma once

#include <string>

#include "tool/top/grid.h"

namespace umacct::test {

/// One row without its trailing spaces.
inline std::string line_of(const tool::Grid &grid, int row) {
    std::string line;

    for (const tool::Cell &cell : grid.row(row))
        line += cell.text;
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
}

/// All rows, each with a newline.
inline std::string text_of(const tool::Grid &grid) {
    std::string text;

    for (int row = 0; row < grid.size().rows; ++row)
        text += line_of(grid, row) + '\n';
    return text;
}

} // namespace umacct::test
