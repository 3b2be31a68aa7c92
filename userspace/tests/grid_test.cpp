// SPDX-License-Identifier: GPL-2.0-or-later
#include <clocale>

#include <gtest/gtest.h>

#include "tests/grid_text.h"
#include "tool/top/draw.h"
#include "tool/top/grid.h"

namespace umacct::tool {
namespace {

using test::line_of;
using test::text_of;

class GridTest : public testing::Test {
protected:
    void SetUp() override { std::setlocale(LC_CTYPE, "C.UTF-8"); }

    /// A locale that has ASCII only.
    static void without_unicode() { std::setlocale(LC_CTYPE, "C"); }

    void TearDown() override { std::setlocale(LC_CTYPE, "C"); }
};

TEST_F(GridTest, TextIsCutAtTheEdges) {
    Grid grid({2, 5});

    EXPECT_EQ(grid.put(0, 3, "abc"), 6);
    EXPECT_EQ(grid.put(1, -1, "xyz"), 2);
    grid.put(2, 0, "below");
    grid.put(-1, 0, "above");
    grid.mark(2);
    grid.mark(-1);
    EXPECT_EQ(text_of(grid), "   ab\nyz\n");
}

TEST_F(GridTest, NoSizeIsTooSmall) {
    Grid grid({-1, 0});

    grid.put(0, 0, "x");
    EXPECT_EQ(text_of(grid), "");
    EXPECT_EQ(grid.size().rows, 0);
}

TEST_F(GridTest, WhatCannotBeShownIsAQuestionMark) {
    Grid grid({1, 20});

    grid.put(0, 0, "a\x1b\x07\u0085\xff\xc3[\xed\xa0\x80.");
    EXPECT_EQ(line_of(grid, 0), "a?????[?.");
    EXPECT_EQ(width_of("\xf8\x80\xc0\x80"), 4);
}

TEST_F(GridTest, WideAndCombiningCharactersKeepTheColumns) {
    Grid grid({1, 10});

    EXPECT_EQ(grid.put(0, 0, "\u6f22|e\u0301|"), 5);
    EXPECT_EQ(line_of(grid, 0), "\u6f22|e|");
    EXPECT_EQ(grid.row(0)[1].text, "");
    grid.put(0, 9, "\u6f22");
    EXPECT_EQ(grid.row(0)[9].text, " ");
}

TEST_F(GridTest, WithoutUnicodeEverythingIsAscii) {
    without_unicode();
    Grid grid({1, 10});

    grid.put(0, 0, "\u00e9\u6f22x");
    EXPECT_EQ(line_of(grid, 0), "??x");
}

TEST_F(GridTest, TextIsFittedWithAnEllipsis) {
    EXPECT_EQ(fitted("abcdef", 6), "abcdef");
    EXPECT_EQ(fitted("abcdef", 4), "abc\u2026");
    EXPECT_EQ(fitted("\u6f22\u6f22\u6f22", 4), "\u6f22\u2026");
    EXPECT_EQ(fitted("abc", 0), "");
    EXPECT_EQ(fitted("abc", -3), "");
    EXPECT_EQ(fitted_end("abcdef", 6), "abcdef");
    EXPECT_EQ(fitted_end("abcdef", 4), "\u2026def");
    EXPECT_EQ(fitted_end("abc", 0), "");
    EXPECT_EQ(fitted_end("abc", 1), "\u2026");
    without_unicode();
    EXPECT_EQ(fitted("abcdef", 4), "abc~");
    EXPECT_EQ(fitted_end("abcdef", 4), "~def");
}

TEST_F(GridTest, SparklinesEndWithTheNewest) {
    EXPECT_EQ(sparkline({0, 50, 100}, 5), "  \u2581\u2585\u2588");
    EXPECT_EQ(sparkline({1, 2, 3, 4, 8}, 2), "\u2585\u2588");
    EXPECT_EQ(sparkline({0, 0}, 3), " \u2581\u2581");
    EXPECT_EQ(sparkline({}, 3), "   ");
    EXPECT_EQ(sparkline({1}, 0), "");
    without_unicode();
    EXPECT_EQ(sparkline({0, 50, 100}, 5), "  _=#");
    EXPECT_EQ(sparkline({UINT64_MAX, UINT64_MAX}, 2), "##");
}

} // namespace
} // namespace umacct::tool
