// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/print/table.h"

#include <clocale>
#include <sstream>

#include <gtest/gtest.h>

namespace umacct::tool {
namespace {

class TableTest : public testing::Test {
protected:
    void SetUp() override { std::setlocale(LC_CTYPE, "C.UTF-8"); }

    void TearDown() override { std::setlocale(LC_CTYPE, "C"); }

    /// Prints one row: the name, and a number to its right.
    static std::string printed(const std::string &name, int width) {
        std::ostringstream out;
        std::ostringstream err;
        Table table({{"A"}, {"B", Align::right}});

        table.add({name, "1234"});
        table.print({.out = out, .err = err, .width = width}, 0, false);
        return out.str();
    }
};

TEST_F(TableTest, LengthsAreColumnsOfTheTerminal) {
    EXPECT_EQ(printed("abcd", 10), "abcd  1234\n");
    EXPECT_EQ(printed("\u00e9\u00e9\u00e9\u00e9", 10), "\u00e9\u00e9\u00e9\u00e9  1234\n");
    EXPECT_EQ(printed("\u63a8\u8ad6", 10), "\u63a8\u8ad6  1234\n");
    EXPECT_EQ(printed("e\u0301e\u0301e\u0301e\u0301", 10), "e\u0301e\u0301e\u0301e\u0301  1234\n");
    EXPECT_EQ(printed("\u63a8\u8ad6", 9), "\u63a8\u8ad6\n") << "one too few";
    EXPECT_EQ(printed("abcd", 9), "abcd\n");
}

TEST_F(TableTest, ALongTextIsCutInItsMiddle) {
    EXPECT_EQ(printed("/system.slice/docker/init", 22), "/system...r/init  1234\n");
    EXPECT_EQ(printed("abcdefghijkl", 16), "abcdefghijkl\n") << "a name needs 16 characters";
    EXPECT_EQ(printed("abcdefghijkl", 18), "abcdefghijkl  1234\n");
}

TEST_F(TableTest, WhatIsToBeKeptGoesLast) {
    for (const bool keep : {false, true}) {
        std::ostringstream out;
        std::ostringstream err;
        Table table({{"NAME"}, {"FIRST", Align::right}, {"VERDICT", Align::left, keep}});

        table.add({"a", "12345", "blind"});
        table.print({.out = out, .err = err, .width = 14});
        EXPECT_EQ(out.str(), keep ? "NAME  VERDICT\na     blind\n" : "NAME  FIRST\na     12345\n");
        EXPECT_EQ(err.str(), keep ? "note: the terminal is too narrow for FIRST\n"
                                  : "note: the terminal is too narrow for VERDICT\n");
    }
}

TEST_F(TableTest, ATextMayGoOnInTheNextLine) {
    std::ostringstream out;
    std::ostringstream err;
    Table table({{"A"}, {"WHY", Align::left, true, true}, {"B", Align::right}});

    table.add({"a", "one two three four-and-five", "1"});
    table.add({"b", "six", "2"});
    table.print({.out = out, .err = err, .width = 16}, 1);
    EXPECT_EQ(out.str(), " A  WHY        B\n"
                         " a  one two    1\n"
                         "    three\n"
                         "    four-and-\n"
                         "    five\n"
                         " b  six        2\n");
}

TEST_F(TableTest, WhereALocaleHasNoSuchCharactersTheyAreWrittenOut) {
    std::setlocale(LC_CTYPE, "C");
    for (int width = 1; width < 30; ++width) {
        std::istringstream lines(printed("\u00e9\u00e9", width));

        for (std::string line; std::getline(lines, line);)
            EXPECT_LE(line.size(), static_cast<std::size_t>(std::max(width, 8))) << width;
    }
}

} // namespace
} // namespace umacct::tool
