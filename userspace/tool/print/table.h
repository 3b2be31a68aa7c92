// SPDX-License-Identifier: GPL-2.0-or-later
/// Aligned columns of text. On a terminal a line is never longer than that: text is cut,
/// then columns are left out from the right.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tool/output.h"

namespace umacct::tool {

enum class Align { left, right };

struct Heading {
    std::string title;
    Align align = Align::left;
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
    std::size_t columns_that_fit(int width) const;

    std::vector<Heading> headings_;
    std::vector<std::vector<std::string>> rows_;
};

} // namespace umacct::tool
