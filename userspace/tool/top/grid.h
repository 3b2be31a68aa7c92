// SPDX-License-Identifier: GPL-2.0-or-later
/// A screen of characters that nothing has shown yet: what is drawn can be read by a
/// test as well as by a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace umacct::tool {

/// Rows and columns of a screen.
struct Size {
    int rows = 0;
    int columns = 0;
};

/// Meaning of a text, by which a terminal chooses its look. Colours are for those with a meaning.
enum class Tone {
    plain,
    strong,
    faint,
    head, ///< titles of columns
    head_strong,
    uncharged, ///< the blind spot
    over_soft, ///< an account above its soft limit
    refused,   ///< just refused, and errors
};

struct Cell {
    std::string text = " "; ///< one character in UTF-8; empty for the second half of a wide one
    Tone tone = Tone::plain;
    bool marked = false;
};

class Grid {
public:
    explicit Grid(Size size);

    Size size() const { return size_; }

    /// Writes from there to the right, as far as it goes; what lies outside is left out,
    /// and '?' stands for what can't be shown. Returns the column after the text.
    int put(int row, int column, std::string_view text, Tone tone = Tone::plain);

    /// Shows the whole row as the chosen one.
    void mark(int row);

    /// The cells of one row.
    const std::vector<Cell> &row(int row) const { return rows_.at(static_cast<std::size_t>(row)); }

private:
    Size size_;
    std::vector<std::vector<Cell>> rows_;
};

/// Whether the locale's characters are those of UTF-8; else only ASCII can be shown.
bool shows_unicode();

/// Columns that the text takes in a grid.
int width_of(std::string_view text);

/// The text cut to that many columns, with an ellipsis where it is cut.
std::string fitted(std::string_view text, int columns);
/// The same for what matters at its end, as in a path.
std::string fitted_end(std::string_view text, int columns);
/// All of it, in lines of that many columns; at least one.
std::vector<std::string> wrapped(std::string_view text, int columns);

struct DrawnItem {
    std::string text;
    Tone tone = Tone::plain;
};

/// Side by side, on as many rows as it takes and no more than that; returns how many.
int draw_items(Grid &grid, int row, int rows, const std::vector<DrawnItem> &items);

} // namespace umacct::tool
