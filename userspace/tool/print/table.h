// SPDX-License-Identifier: GPL-2.0-or-later
/// Aligned columns of text.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace umacct::tool {

enum class Align { left, right };

struct Column {
    std::string title;
    Align align = Align::left;
};

class Table {
public:
    explicit Table(std::vector<Column> columns);

    /// One cell for each column.
    void add(std::vector<std::string> cells);

    bool empty() const { return rows_.empty(); }

    /// indent: spaces before each line. A table with no titles prints no head.
    void print(std::ostream &out, int indent = 0) const;

private:
    void print_row(std::ostream &out, int indent, const std::vector<std::string> &cells,
                   const std::vector<std::size_t> &widths) const;

    std::vector<Column> columns_;
    std::vector<std::vector<std::string>> rows_;
};

} // namespace umacct::tool
