// SPDX-License-Identifier: GPL-2.0-or-later
/// The parts of top's screen, drawn into a grid.
#pragma once

#include <string>
#include <vector>

#include "tool/top/grid.h"
#include "tool/top/model.h"

namespace umacct::tool {

/// Draws the machine: a bar of its memory, what the bar's parts are, and what is wrong
/// with the figures. No more rows than that, from the given one; returns how many.
int draw_machine(Grid &grid, int row, int rows, const TopSample &sample, bool kinds);

/// Draws titles and as many rows as fit, from rows[first] on.
void draw_table(Grid &grid, int row, int height, const TopModel &model,
                const std::vector<TopRow> &rows, std::size_t first, std::size_t selected);

/// Draws the explanation of keys and columns, from its given line on.
void draw_help(Grid &grid, int first);
int help_lines();

/// The last values as a line of that many characters, from nothing to their largest.
std::string sparkline(const std::vector<std::uint64_t> &values, int width);

} // namespace umacct::tool
