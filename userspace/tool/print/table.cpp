// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/print/table.h"

#include <algorithm>
#include <cstdlib>
#include <cwchar>
#include <memory>
#include <sstream>

#include <fmt/ostream.h>
#include <libsmartcols.h>

#include "lib/text.h"

namespace umacct::tool {

namespace {

constexpr std::size_t least_text = 8; ///< what a column of text is not cut below

struct Free {
    void operator()(libscols_table *table) const { scols_unref_table(table); }

    void operator()(char *text) const { std::free(text); }
};

template <class T>
T *made(T *pointer) {
    if (pointer == nullptr)
        throw std::bad_alloc();
    return pointer;
}

/// How many of a terminal's columns libsmartcols takes for a text that is safe to print.
std::size_t columns_of(std::string_view text) {
    constexpr std::size_t written_out = 4; // "\\xc3", a byte that the locale has no character for
    std::size_t columns = 0;

    while (!text.empty()) {
        const std::size_t before = text.size();
        const auto code = take_character(text);
        const int width = code ? wcwidth(static_cast<wchar_t>(*code)) : -1;

        columns +=
            width < 0 ? (before - text.size()) * written_out : static_cast<std::size_t>(width);
    }
    return columns;
}

} // namespace

std::size_t Table::columns_that_fit(int width) const {
    std::size_t used = 0;

    for (std::size_t i = 0; i < headings_.size(); ++i) {
        const std::size_t title = columns_of(headings_[i].title);
        std::size_t wide = title;

        for (const auto &row : rows_)
            wide = std::max(wide, row.size() > i ? columns_of(row[i]) : 0);
        used += (headings_[i].align == Align::left ? std::min(wide, std::max(least_text, title))
                                                   : wide) +
                (i == 0 ? 0 : 2);
        if (i > 0 && used > static_cast<std::size_t>(width))
            return i;
    }
    return headings_.size();
}

void Table::print(const Output &output, int indent, bool header) const {
    const std::unique_ptr<libscols_table, Free> table(made(scols_new_table()));
    const int width = output.width > 0 ? std::max(output.width - indent, 1) : 0;
    const std::size_t columns = width > 0 ? columns_that_fit(width) : headings_.size();

    scols_table_enable_noheadings(
        table.get(),
        static_cast<int>(!header || std::ranges::all_of(headings_, [](const auto &each) {
            return each.title.empty();
        })));
    scols_table_set_column_separator(table.get(), "  ");
    scols_table_set_termforce(table.get(),
                              width > 0 ? SCOLS_TERMFORCE_ALWAYS : SCOLS_TERMFORCE_NEVER);
    if (width > 0)
        scols_table_set_termwidth(table.get(), static_cast<std::size_t>(width));
    for (std::size_t i = 0; i < columns; ++i)
        made(scols_table_new_column(table.get(), headings_[i].title.c_str(), 0,
                                    headings_[i].align == Align::right ? SCOLS_FL_RIGHT
                                                                       : SCOLS_FL_TRUNC));
    for (const auto &row : rows_) {
        libscols_line *line = made(scols_table_new_line(table.get(), nullptr));

        for (std::size_t i = 0; i < std::min(columns, row.size()); ++i)
            scols_line_set_data(line, i, row[i].c_str());
    }

    char *printed = nullptr;
    if (rows_.empty() || scols_print_table_to_string(table.get(), &printed) != 0)
        return;
    const std::unique_ptr<char, Free> owned(printed);
    std::istringstream lines(printed);
    for (std::string line; std::getline(lines, line);) {
        line.erase(line.find_last_not_of(' ') + 1);
        fmt::print(output.out, "{:{}}{}\n", "", indent, line);
    }
    if (columns < headings_.size() && header) {
        std::string left_out;

        for (std::size_t i = columns; i < headings_.size(); ++i)
            left_out += (left_out.empty() ? "" : ", ") + headings_[i].title;
        output.note("the terminal is too narrow for " + left_out);
    }
}

} // namespace umacct::tool
