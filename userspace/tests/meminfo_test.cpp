// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/meminfo.h"

#include <sstream>

#include <gtest/gtest.h>

#include "lib/error.h"

namespace umacct {
namespace {

TEST(Meminfo, ReadsKilobytesAsBytesAndSkipsCounts) {
    std::istringstream text("MemTotal:       125829120 kB\n"
                            "MemFree:             1 kB\n"
                            "Active(anon):       10 kB\n"
                            "HugePages_Total:     7\n");
    const Meminfo memory(text);

    EXPECT_EQ(memory.total(), 120ULL << 30);
    EXPECT_EQ(memory.free(), 1024U);
    EXPECT_EQ(memory.bytes("Active(anon)"), 10240U);
    EXPECT_EQ(memory.bytes("HugePages_Total"), 0U);
    EXPECT_EQ(memory.available(), 0U);
}

TEST(Meminfo, AnotherFileIsAnError) {
    std::istringstream text("cpu  1 2 3\n");

    EXPECT_THROW(Meminfo{text}, Error);
}

} // namespace
} // namespace umacct
