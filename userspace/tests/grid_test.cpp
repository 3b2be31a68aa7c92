// SPDX-License-Identifier: GPL-2.0-or-later
#include <clocale>

#include <gtest/gtest.h>

#include "tool/top/draw.h"
#include "tool/top/grid.h"

namespace umacct::tool {
namespace {

class GridTest : public testing::Test {
protected:
    void SetUp() override { std::setlocale(LC_CTYPE, "C.UTF-8"); }

    void TearDown() override { std::setlocale(LC_CTYPE, "C"); }
};

TEST_F(GridTest, TextIsCutAtTheEdges) {
    Grid grid({2, 5}, true);

    EXPECT_EQ(grid.put(0, 3, "abc"), 6);
    EXPECT_EQ(grid.put(1, -1, "xyz"), 2);
    grid.put(2, 0, "below");
    grid.put(-1, 0, "above");
    grid.mark(2);
    grid.mark(-1);
    EXPECT_EQ(grid.text(), "   ab\nyz\n");
}

TEST_F(GridTest, NoSizeIsTooSmall) {
    Grid grid({-1, 0}, false);

    grid.put(0, 0, "x");
    EXPECT_EQ(grid.text(), "");
    EXPECT_EQ(grid.size().rows, 0);
}

TEST_F(GridTest, WhatCannotBeShownIsAQuestionMark) {
    Grid grid({1, 20}, true);

    grid.put(0, 0, "a\x1b\x07\u0085\xff\xc3[\xed\xa0\x80.");
    EXPECT_EQ(grid.line(0), "a?????[?.");
    EXPECT_EQ(width_of("\xf8\x80\xc0\x80", true), 4);
}

TEST_F(GridTest, WideAndCombiningCharactersKeepTheColumns) {
    Grid grid({1, 10}, true);

    EXPECT_EQ(grid.put(0, 0, "\u6f22|e\u0301|"), 5);
    EXPECT_EQ(grid.line(0), "\u6f22|e|");
    EXPECT_EQ(grid.row(0)[1].text, "");
    grid.put(0, 9, "\u6f22");
    EXPECT_EQ(grid.row(0)[9].text, " ");
}

TEST_F(GridTest, WithoutUnicodeEverythingIsAscii) {
    Grid grid({1, 10}, false);

    grid.put(0, 0, "\u00e9\u6f22x");
    EXPECT_EQ(grid.line(0), "??x");
}

TEST_F(GridTest, TextIsFittedWithAnEllipsis) {
    EXPECT_EQ(fitted("abcdef", 6, true), "abcdef");
    EXPECT_EQ(fitted("abcdef", 4, true), "abc\u2026");
    EXPECT_EQ(fitted("abcdef", 4, false), "abc~");
    EXPECT_EQ(fitted("\u6f22\u6f22\u6f22", 4, true), "\u6f22\u2026");
    EXPECT_EQ(fitted("abc", 0, true), "");
    EXPECT_EQ(fitted("abc", -3, true), "");
    EXPECT_EQ(fitted_end("abcdef", 6, true), "abcdef");
    EXPECT_EQ(fitted_end("abcdef", 4, true), "\u2026def");
    EXPECT_EQ(fitted_end("abcdef", 4, false), "~def");
    EXPECT_EQ(fitted_end("abc", 0, true), "");
    EXPECT_EQ(fitted_end("abc", 1, true), "\u2026");
}

TEST_F(GridTest, SparklinesEndWithTheNewest) {
    EXPECT_EQ(sparkline({0, 50, 100}, 5, true), "  \u2581\u2585\u2588");
    EXPECT_EQ(sparkline({0, 50, 100}, 5, false), "  _=#");
    EXPECT_EQ(sparkline({1, 2, 3, 4, 8}, 2, true), "\u2585\u2588");
    EXPECT_EQ(sparkline({0, 0}, 3, true), " \u2581\u2581");
    EXPECT_EQ(sparkline({}, 3, true), "   ");
    EXPECT_EQ(sparkline({1}, 0, true), "");
    EXPECT_EQ(sparkline({UINT64_MAX, UINT64_MAX}, 2, false), "##");
}

} // namespace
} // namespace umacct::tool
