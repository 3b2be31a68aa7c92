// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/print/table.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/ostream.h>

namespace umacct::tool {

namespace {

/// Code points of UTF-8 text: the columns it takes, but for wide scripts.
std::size_t width_of(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    }));
}

} // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::add(std::vector<std::string> cells) {
    cells.resize(columns_.size());
    rows_.push_back(std::move(cells));
}

void Table::print(std::ostream &out, int indent) const {
    std::vector<std::string> titles;
    std::vector<std::size_t> widths;

    for (std::size_t i = 0; i < columns_.size(); ++i) {
        std::size_t width = width_of(columns_[i].title);

        for (const auto &row : rows_)
            width = std::max(width, width_of(row[i]));
        titles.push_back(columns_[i].title);
        widths.push_back(width);
    }
    if (std::any_of(titles.begin(), titles.end(), [](const auto &t) { return !t.empty(); }))
        print_row(out, indent, titles, widths);
    for (const auto &row : rows_)
        print_row(out, indent, row, widths);
}

void Table::print_row(std::ostream &out, int indent, const std::vector<std::string> &cells,
                      const std::vector<std::size_t> &widths) const {
    std::string line(static_cast<std::size_t>(indent), ' ');

    for (std::size_t i = 0; i < cells.size(); ++i) {
        const std::string padding(widths[i] - width_of(cells[i]), ' ');

        if (i > 0)
            line += "  ";
        line += columns_[i].align == Align::right ? padding + cells[i] : cells[i] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    fmt::print(out, "{}\n", line);
}

} // namespace umacct::tool
