// SPDX-License-Identifier: GPL-2.0-or-later
/// Each hierarchy was worked out by hand, from mm/page_counter.c and what reclaim does by it.
#include "lib/memory/protection.h"

#include <gtest/gtest.h>

#include <umacct.h>

#include "tests/sandbox.h"

namespace umacct {
namespace {

std::uint64_t kept_of(const Protection &protection, const std::string &path) {
    for (const ProtectedCache &each : protection.list()) {
        if (each.path == path)
            return each.bytes;
    }
    return 0;
}

TEST(Protection, NoneWithoutSettings) {
    EXPECT_EQ(Protection().total(), 0U);
    EXPECT_EQ(Protection().most(), "");
    EXPECT_EQ(Protection({{.path = "/a", .usage = 100, .cache = 80}}, true).total(), 0U);
}

TEST(Protection, WhatIsNotPageCacheIsProtectedFirst) {
    const auto kept = [](std::uint64_t usage, std::uint64_t min, std::uint64_t cache) {
        return Protection({{.path = "/a", .usage = usage, .min = min, .cache = cache}}, false)
            .total();
    };

    EXPECT_EQ(kept(181, 200, 181), 181U) << "all of it is within memory.min";
    EXPECT_EQ(kept(200, 200, 181), 181U);
    EXPECT_EQ(kept(300, 200, 181), 81U) << "a hundred may go";
    EXPECT_EQ(kept(600, 200, 181), 0U) << "what else it has uses its protection up";
    EXPECT_EQ(kept(600, UMACCT_UNLIMITED, 181), 181U);
}

TEST(Protection, NobodyHasMoreThanHeIsGiven) {
    const Protection none({{.path = "/a", .usage = 100, .cache = 100},
                           {.path = "/a/b", .usage = 100, .min = 100, .cache = 100}},
                          true);
    const Protection shared({{.path = "/a", .usage = 300, .min = 100, .cache = 300},
                             {.path = "/a/b", .usage = 100, .min = 100, .cache = 100},
                             {.path = "/a/c", .usage = 200, .min = 300, .cache = 200}},
                            false);

    EXPECT_EQ(none.total(), 0U);
    // 300 are claimed, and 100 are there: a third each.
    EXPECT_EQ(kept_of(shared, "/a/b"), 33U);
    EXPECT_EQ(kept_of(shared, "/a/c"), 66U);
}

const std::vector<MemoryUse> part_claimed{
    {.path = "/a", .usage = 300, .min = 100, .cache = 300},
    {.path = "/a/b", .usage = 100, .cache = 100},
    {.path = "/a/c", .usage = 200, .min = 50, .cache = 200},
    {.path = "/other", .usage = 1000, .cache = 1000},
};

TEST(Protection, WhatIsNotClaimedBelowIsLostWithoutRecursiveprot) {
    const Protection protection(part_claimed, false);

    EXPECT_EQ(kept_of(protection, "/a/b"), 0U);
    EXPECT_EQ(kept_of(protection, "/a/c"), 50U);
    EXPECT_EQ(protection.total(), 50U);
}

TEST(Protection, WithRecursiveprotItIsSharedByUse) {
    const Protection protection(part_claimed, true);

    // Splits 50 unclaimed by unprotected usage: 100 and 150 of 250.
    EXPECT_EQ(kept_of(protection, "/a/b"), 20U);
    EXPECT_EQ(kept_of(protection, "/a/c"), 80U);
    EXPECT_EQ(protection.total(), 100U);
    EXPECT_EQ(protection.list().size(), 2U);
    EXPECT_EQ(protection.most(), "/a/c");
}

TEST(Protection, OfACgroupItselfAndOfThoseBelowIt) {
    const std::vector<MemoryUse> cgroups{{.path = "/a", .usage = 400, .min = 200, .cache = 400},
                                         {.path = "/a/b", .usage = 100, .cache = 100},
                                         {.path = "/a/b/c", .usage = 100, .cache = 100}};
    const Protection plain(cgroups, false);
    const Protection recursive(cgroups, true);

    // Those below give back all, and what is left is 300.
    EXPECT_EQ(kept_of(plain, "/a"), 200U);
    EXPECT_EQ(plain.total(), 200U);
    EXPECT_EQ(kept_of(recursive, "/a"), 150U);
    EXPECT_EQ(kept_of(recursive, "/a/b/c"), 50U);
    EXPECT_EQ(recursive.total(), 200U);
    EXPECT_EQ(recursive.below("/a"), 50U);
    EXPECT_EQ(recursive.below("/a/b/c"), 0U);
    EXPECT_EQ(recursive.below("/a/"), 0U);
    EXPECT_EQ(recursive.most(), "/a") << "though most of it is a child's";
}

TEST(Protection, AsTheKernelTellsIt) {
    const test::Sandbox sandbox;
    const auto write = [&](const std::string &path, const char *usage, const char *min) {
        sandbox.add_cgroup(path);
        const auto directory = sandbox.cgroup_mount() / path.substr(1);
        sandbox.write(directory / "memory.current", usage);
        sandbox.write(directory / "memory.min", min);
        sandbox.write(directory / "memory.stat", "anon 30\nactive_file 50\ninactive_file 20\n");
    };

    write("/a", "100\n", "0\n");
    write("/a/b", "100\n", "max\n");
    EXPECT_EQ(Protection::read(Cgroups(sandbox.proc())).total(), 0U);
    write("/a", "100\n", "90\n");
    EXPECT_EQ(kept_of(Protection::read(Cgroups(sandbox.proc())), "/a/b"), 60U);
    sandbox.add_cgroup("/without");
    EXPECT_EQ(Protection::read(Cgroups(sandbox.proc())).total(), 60U);
}

} // namespace
} // namespace umacct
