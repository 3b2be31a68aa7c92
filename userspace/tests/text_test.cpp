// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/text.h"

#include <gtest/gtest.h>

namespace umacct {
namespace {

TEST(Text, WhatIsReadableStays) {
    for (const char *text :
         {"", "vllm worker/0", "größe", "推論サーバー", "модель", "a\u00a0b", "🚀"})
        EXPECT_EQ(printable(text), text);
}

TEST(Text, WhatWouldActIsAQuestionMark) {
    EXPECT_EQ(printable("a\x1b[2Jb\n\t\x7f"), "a?[2Jb???");
    EXPECT_EQ(printable("C1: \u009b2J \u0085 \u0080"), "C1: ?2J ? ?");
    EXPECT_EQ(printable("\u202eevil\u202c \u2066x\u2069 \u200f\u061c"), "?evil? ?x? ??");
    EXPECT_EQ(printable("a\u200bb\u200dc\ufeffd\u00ade\u2060"), "a?b?c?d?e?");
    EXPECT_EQ(printable("\u2028\u2029\ufff9\U000e0041\U0010ffff"), "?????");
    EXPECT_EQ(printable(std::string("a\0b", 3)), "a?b");
}

TEST(Text, WhatIsNotUtf8IsAQuestionMarkForEachByte) {
    EXPECT_EQ(printable("\x9b[2J"), "?[2J");
    EXPECT_EQ(printable("a\xff\xfe"), "a??");
    EXPECT_EQ(printable("cut \xe2\x82"), "cut ??");
    EXPECT_EQ(printable("\xe2\x28\xa1"), "?(?");
    EXPECT_EQ(printable("\xc0\xaf \xc1\x9b"), "?? ??") << "longer than it need be";
    EXPECT_EQ(printable("\xe0\x82\x9b \xf0\x80\x80\x9b"), "??? ????") << "the same";
    EXPECT_EQ(printable("\xed\xa0\x80"), "?") << "half a pair";
    EXPECT_EQ(printable("\xf4\x90\x80\x80 \xf5\x80\x80\x80"), "? ????") << "above the last";
}

} // namespace
} // namespace umacct
