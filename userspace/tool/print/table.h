// SPDX-License-Identifier: GPL-2.0-or-later
/// Aligned columns of text. On a terminal a line is never longer than that: text is cut,
/// then columns are left out from the right, those to keep last.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "tool/output.h"

namespace umacct::tool {

enum class Align { left, right };

struct Heading {
    std::string title;
    Align align = Align::left;
    bool keep = false; ///< left out after all others
    bool wrap = false; ///< text that is too long goes on in the next line
};

inline Heading left(std::string title = "") {
    return {std::move(title), Align::left};
}

inline Heading right(std::string title = "") {
    return {std::move(title), Align::right};
}

class Table {
public:
    explicit Table(std::vector<Heading> headings) : headings_(std::move(headings)) {}

    /// One cell for each column.
    void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

    bool empty() const { return rows_.empty(); }

    /// indent: spaces before each line. A table with no titles prints no head.
    void print(const Output &output, int indent = 0, bool header = true) const;

private:
    /// Returns the widths of the columns where nothing is cut.
    std::vector<std::size_t> widths() const;
    /// Returns how far a column of that width may be cut.
    std::size_t least_width(std::size_t column, std::size_t width) const;
    /// Returns those columns that fit into that room; the first always does.
    std::vector<std::size_t> columns_that_fit(std::size_t room,
                                              const std::vector<std::size_t> &widths) const;
    /// Cuts the widest text first, until the line fits.
    void cut(const std::vector<std::size_t> &shown, std::size_t room,
             std::vector<std::size_t> &widths) const;

    std::vector<Heading> headings_;
    std::vector<std::vector<std::string>> rows_;
};

} // namespace umacct::tool
