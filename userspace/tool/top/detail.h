// SPDX-License-Identifier: GPL-2.0-or-later
/// All about one account, on top's screen.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tool/top/grid.h"
#include "tool/top/model.h"

namespace umacct::tool {

/// Draws the account's usage of that much memory, as a bar of that many characters with marks at
/// its limits: "|" the lowest hard one that applies to it, ":" the soft one.
std::string usage_bar(const Account &account, std::uint64_t total, int width);

/// The last values as lines of that many characters, the highest first. limit: is marked where
/// it is in the picture; 0 for none.
std::vector<std::string> history_lines(const std::vector<std::uint64_t> &values,
                                       std::uint64_t limit, int width, int height);

/// Draws what fits, the most important first.
void draw_detail(Grid &grid, int row, int height, const TopModel &model, const TopRow &chosen);

} // namespace umacct::tool
