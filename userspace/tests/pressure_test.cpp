// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/meminfo.h"

#include <sstream>

#include <gtest/gtest.h>

namespace umacct {
namespace {

std::optional<Pressure> read(const std::string &text) {
    std::istringstream file(text);

    return Pressure::read(file);
}

TEST(Pressure, IsAsTheKernelWritesIt) {
    const auto pressure = read("some avg10=12.34 avg60=5.00 avg300=0.50 total=123456\n"
                               "full avg10=1.00 avg60=0.25 avg300=0.00 total=99\n");

    ASSERT_TRUE(pressure);
    EXPECT_EQ(pressure->some.avg10, 12.34);
    EXPECT_EQ(pressure->some.avg60, 5);
    EXPECT_EQ(pressure->some.total_us, 123456U);
    EXPECT_EQ(pressure->full.avg10, 1);
    EXPECT_EQ(pressure->full.total_us, 99U);
}

TEST(Pressure, AnotherFileIsNone) {
    EXPECT_FALSE(read(""));
    EXPECT_FALSE(read("some avg10=1.00 avg60=1.00 avg300=1.00 total=1\n"));
    EXPECT_FALSE(read("some avg10=x avg60=1.00 avg300=1.00 total=1\nfull\n"));
    EXPECT_FALSE(read("full avg10=1.00 avg60=1.00 avg300=1.00 total=1\n"
                      "some avg10=1.00 avg60=1.00 avg300=1.00 total=1\n"));
}

} // namespace
} // namespace umacct
