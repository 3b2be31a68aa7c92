// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/units.h"

#include <gtest/gtest.h>

#include "lib/error.h"

namespace umacct {
namespace {

constexpr std::uint64_t gib = 1ULL << 30;

TEST(Units, SizesInEveryNotation) {
    EXPECT_EQ(parse_size("0"), 0U);
    EXPECT_EQ(parse_size("4096"), 4096U);
    EXPECT_EQ(parse_size("4096B"), 4096U);
    EXPECT_EQ(parse_size("40G"), 40 * gib);
    EXPECT_EQ(parse_size("40g"), 40 * gib);
    EXPECT_EQ(parse_size("40Gi"), 40 * gib);
    EXPECT_EQ(parse_size("40GB"), 40 * gib);
    EXPECT_EQ(parse_size("40 GiB"), 40 * gib);
    EXPECT_EQ(parse_size("512M"), 512ULL << 20);
    EXPECT_EQ(parse_size("3K"), 3072U);
    EXPECT_EQ(parse_size("2T"), 2ULL << 40);
    EXPECT_EQ(parse_size("1.5G"), gib + gib / 2);
    EXPECT_EQ(parse_size("0.000000001T"), 1099U);
}

TEST(Units, FractionsAreExactToTheByte) {
    EXPECT_EQ(parse_size("16777215.999999999T"), 18446744073709550516U);
    EXPECT_EQ(parse_size("0.1T"), 109951162777U);
    EXPECT_EQ(parse_size("1.9999B"), 1U);
}

TEST(Units, TheLargestSizeIsBelowNoLimit) {
    EXPECT_EQ(parse_size("18446744073709551614"), UMACCT_UNLIMITED - 1);
    EXPECT_THROW(parse_size("18446744073709551615"), Error);
    EXPECT_THROW(parse_size("18446744073709551616"), Error);
    EXPECT_THROW(parse_size("99999999999999999999999999"), Error);
    EXPECT_THROW(parse_size("16777216T"), Error);
    EXPECT_THROW(parse_size("17179869184G"), Error);
}

class JunkSize : public testing::TestWithParam<const char *> {};

TEST_P(JunkSize, IsAUsageErrorThatRepeatsIt) {
    try {
        parse_limit(GetParam());
        FAIL() << "was taken";
    } catch (const Error &error) {
        EXPECT_EQ(error.failure(), Failure::usage);
        EXPECT_NE(std::string(error.what()).find(GetParam()), std::string::npos);
        EXPECT_FALSE(error.hint().empty());
    }
}

INSTANTIATE_TEST_SUITE_P(Units, JunkSize,
                         testing::Values("", " ", "G", "-1", "+1", "1e3", "0x10", "1.G", ".5G",
                                         "1.2.3G", "1,5G", "40 G B", "40X", "40GiBs", "40Bi",
                                         "40iB", "1G ", " 1G", "1  G", "4 ", "MAX", "unlimited",
                                         "12a", "1.0000000001G", "many"));

TEST(Units, EachWordForNoLimitIsUnderstood) {
    for (const char *word : {"max", "none", "off"}) {
        EXPECT_EQ(parse_limit(word), UMACCT_UNLIMITED) << word;
        EXPECT_EQ(parse_amount(word).bytes, UMACCT_UNLIMITED) << word;
        EXPECT_EQ(parse_time(word), 0U) << word;
    }
    EXPECT_EQ(parse_reserve("none").bytes, 0U);
    EXPECT_EQ(parse_reserve("off").bytes, 0U);
    EXPECT_EQ(parse_limit("1G"), gib);
    EXPECT_THROW(parse_size("max"), Error);
}

TEST(Units, ASmallAmountNeedsAUnit) {
    EXPECT_EQ(parse_limit("0"), 0U);
    EXPECT_EQ(parse_limit("40B"), 40U);
    EXPECT_EQ(parse_limit("1048576"), 1ULL << 20);
    for (const char *text : {"40", "1048575", "4.5"}) {
        EXPECT_THROW(parse_limit(text), Error) << text;
        EXPECT_THROW(parse_amount(text), Error) << text;
        EXPECT_THROW(parse_reserve(text), Error) << text;
    }
}

TEST(Units, SharesAreOfSomething) {
    EXPECT_EQ(parse_size_of("50%", 8 * gib), 4 * gib);
    EXPECT_EQ(parse_size_of("0.5%", 1000), 5U);
    EXPECT_EQ(parse_size_of("1G", 8), gib);
    EXPECT_EQ(parse_share("100%"), 100);
    for (const char *text : {"", "%", "0%", "101%", "50", "50%%", "5%0", "x%", "-1%", "1 %"})
        EXPECT_THROW(parse_share(text), Error) << text;
}

TEST(Units, Times) {
    EXPECT_EQ(parse_time("20ms"), 20'000'000U);
    EXPECT_EQ(parse_time("1.5s"), 1'500'000'000U);
    EXPECT_EQ(parse_time("500us"), 500'000U);
    EXPECT_EQ(parse_time("7ns"), 7U);
    EXPECT_EQ(parse_time("1h"), 3'600'000'000'000U);
    EXPECT_EQ(parse_time("2min"), 120'000'000'000U);
    EXPECT_EQ(parse_time("5m"), 300'000'000'000U);
    EXPECT_EQ(parse_time("1d"), 86'400'000'000'000U);
    EXPECT_EQ(parse_time("off"), 0U);
    EXPECT_EQ(parse_time("0"), 0U);
    EXPECT_THROW(parse_time("20"), Error);
    EXPECT_THROW(parse_time("20w"), Error);
    EXPECT_THROW(parse_time("-1s"), Error);
    EXPECT_THROW(parse_time("999999999999999s"), Error);
}

TEST(Units, SizesAreWrittenInTheLargestUnitUpToTib) {
    EXPECT_EQ(format_size(0), "0 B");
    EXPECT_EQ(format_size(1000), "1000 B");
    EXPECT_EQ(format_size(1024), "1.00 KiB");
    EXPECT_EQ(format_size(1536), "1.50 KiB");
    EXPECT_EQ(format_size(512ULL << 20), "512.00 MiB");
    EXPECT_EQ(format_size(gib), "1.00 GiB");
    EXPECT_EQ(format_size(2048 * gib), "2.00 TiB");
    EXPECT_EQ(format_size(UMACCT_UNLIMITED - 1), "16777216.00 TiB");
}

TEST(Units, RoundingNeverShowsTheNextUnitsFullSize) {
    EXPECT_EQ(format_size(gib - 1), "1.00 GiB");
    EXPECT_EQ(format_size((1ULL << 20) - 1), "1.00 MiB");
    EXPECT_EQ(format_size(gib / 100 * 99), "1013.76 MiB");
}

TEST(Units, ShortSizesHaveFourDigits) {
    EXPECT_EQ(format_short(0), "0 B");
    EXPECT_EQ(format_short(1000), "1000 B");
    EXPECT_EQ(format_short(gib + gib / 2), "1.50 GiB");
    EXPECT_EQ(format_short(240ULL << 20), "240.0 MiB");
    EXPECT_EQ(format_short((99ULL << 20) + 1047000), "100.0 MiB");
    EXPECT_EQ(format_short(1018ULL << 20), "1018 MiB");
    EXPECT_EQ(format_short((1000ULL << 20) - 1024), "1000 MiB");
    EXPECT_EQ(format_short(117 * gib), "117.0 GiB");
    EXPECT_EQ(format_short(9999 * gib), "9.76 TiB");
}

TEST(Units, RatesHaveASign) {
    EXPECT_EQ(format_rate(0), "0 B/s");
    EXPECT_EQ(format_rate(12), "+12 B/s");
    EXPECT_EQ(format_rate(-(3LL << 20)), "-3.00 MiB/s");
    EXPECT_EQ(format_rate(INT64_MIN), "-8388608 TiB/s");
}

TEST(Units, LimitsAndTimesAreWrittenInWords) {
    EXPECT_EQ(format_limit({}), "max");
    EXPECT_EQ(format_limit(gib), "1.00 GiB");
    EXPECT_EQ(format_time(0), "off");
    EXPECT_EQ(format_time(20'000'000), "20 ms");
    EXPECT_EQ(format_time(1'500'000'000), "1.5 s");
    EXPECT_EQ(format_time(2'500), "2.5 us");
}

} // namespace
} // namespace umacct
