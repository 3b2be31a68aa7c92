// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/cgroup.h"

#include <algorithm>
#include <sstream>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lib/error.h"
#include "tests/sandbox.h"

namespace umacct {
namespace {

std::optional<CgroupMount> find_mount(const std::string &text) {
    std::istringstream mountinfo(text);

    return CgroupMount::find(mountinfo);
}

TEST(CgroupMount, OfAUnifiedHost) {
    const auto mount = find_mount(
        "25 30 0:23 / /sys rw,nosuid - sysfs sysfs rw\n"
        "35 25 0:30 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 "
        "rw,nsdelegate,memory_recursiveprot\n");

    ASSERT_TRUE(mount);
    EXPECT_EQ(mount->point, "/sys/fs/cgroup");
    EXPECT_EQ(mount->root, "/");
    EXPECT_TRUE(mount->recursive_protection);
}

TEST(CgroupMount, OfAHybridHost) {
    const auto mount =
        find_mount("33 32 0:28 / /sys/fs/cgroup/memory rw shared:14 - cgroup cgroup rw,memory\n"
                   "34 32 0:29 / /sys/fs/cgroup/unified rw shared:10 - cgroup2 cgroup2 rw\n");

    ASSERT_TRUE(mount);
    EXPECT_EQ(mount->point, "/sys/fs/cgroup/unified");
    EXPECT_FALSE(mount->recursive_protection);
}

TEST(CgroupMount, TheWholeHierarchyIsBetterThanAPart) {
    const auto mount = find_mount("1 0 0:9 /a /mnt/part rw - cgroup2 none rw\n"
                                  "2 0 0:9 / /mnt/whole\\040one rw - cgroup2 none rw\n");

    ASSERT_TRUE(mount);
    EXPECT_EQ(mount->point, "/mnt/whole one");
    EXPECT_EQ(find_mount("1 0 0:9 / /mnt/whole rw - cgroup2 none rw\n"
                         "2 0 0:9 /a /mnt/part rw - cgroup2 none rw\n")
                  ->point,
              "/mnt/whole");
}

TEST(CgroupMount, TheHostsRootInAContainersNamespace) {
    for (const char *root : {"/..", "/../../../.."}) {
        const auto mount =
            find_mount("1 0 0:9 / /sys/fs/cgroup.own ro - cgroup rw\n2 0 0:9 " + std::string(root) +
                       " /sys/fs/cgroup rw - cgroup2 cgroup rw\n");

        ASSERT_TRUE(mount);
        EXPECT_EQ(mount->point, "/sys/fs/cgroup");
        EXPECT_EQ(mount->root, "/");
    }
    EXPECT_EQ(find_mount("1 0 0:9 /../b /mnt rw - cgroup2 none rw\n")->root, "/../b");
    EXPECT_EQ(find_mount("1 0 0:9 /..b /mnt rw - cgroup2 none rw\n")->root, "/..b");
}

TEST(Cgroups, OfAHostThatAContainerHasMounted) {
    test::Sandbox sandbox("/../../..");
    const Cgroups cgroups(sandbox.proc());

    sandbox.add_cgroup("/kubepods.slice/a");
    EXPECT_EQ(cgroups.directory("/kubepods.slice/a"), sandbox.cgroup_mount() / "kubepods.slice/a");
    EXPECT_EQ(cgroups.path_of(sandbox.cgroup_mount() / "kubepods.slice"), "/kubepods.slice");
    std::vector<std::string> seen;
    cgroups.for_each([&](const std::string &path) { seen.push_back(path); });
    EXPECT_EQ(seen, (std::vector<std::string>{"/", "/kubepods.slice", "/kubepods.slice/a"}));
}

TEST(CgroupMount, NoneIsSaid) {
    EXPECT_FALSE(find_mount("33 32 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"));
    EXPECT_FALSE(find_mount("nonsense\n\n"));
}

TEST(Cgroups, PathsAndDirectoriesCorrespond) {
    test::Sandbox sandbox;
    const Cgroups cgroups(sandbox.proc());
    const std::uint64_t id = sandbox.add_cgroup("/a/b");

    EXPECT_EQ(cgroups.directory("/a/b"), sandbox.cgroup_mount() / "a/b");
    EXPECT_EQ(cgroups.path_of(sandbox.cgroup_mount() / "a/./b/"), "/a/b");
    EXPECT_EQ(cgroups.path_of(sandbox.cgroup_mount()), "/");
    EXPECT_FALSE(cgroups.path_of(sandbox.cgroup_mount().string() + "2"));
    EXPECT_FALSE(cgroups.path_of("/etc"));
    EXPECT_EQ(cgroups.id("/a/b"), id);
    EXPECT_THROW(cgroups.id("/a/c"), Error);
    EXPECT_TRUE(cgroups.exists("/a"));
    EXPECT_FALSE(cgroups.exists("/c"));
}

TEST(Cgroups, APartThatIsMountedKeepsItsPath) {
    test::Sandbox sandbox("/docker/x");
    const Cgroups cgroups(sandbox.proc());

    sandbox.add_cgroup("/inner");
    EXPECT_EQ(cgroups.directory("/docker/x/inner"), sandbox.cgroup_mount() / "inner");
    EXPECT_FALSE(cgroups.directory("/docker/xy"));
    EXPECT_FALSE(cgroups.directory("/other"));
    EXPECT_EQ(cgroups.path_of(sandbox.cgroup_mount() / "inner"), "/docker/x/inner");
    EXPECT_EQ(cgroups.path_of(sandbox.cgroup_mount()), "/docker/x");
}

TEST(Cgroups, NumbersFromFiles) {
    test::Sandbox sandbox;
    const Cgroups cgroups(sandbox.proc());

    sandbox.add_cgroup("/a");
    sandbox.write(sandbox.cgroup_mount() / "a/memory.current", "12345\n");
    sandbox.write(sandbox.cgroup_mount() / "a/memory.max", "max\n");
    sandbox.write(sandbox.cgroup_mount() / "a/memory.high", "junk\n");
    EXPECT_EQ(cgroups.number("/a", "memory.current"), 12345U);
    EXPECT_EQ(cgroups.number("/a", "memory.max"), ~0ULL);
    EXPECT_FALSE(cgroups.number("/a", "memory.high"));
    EXPECT_FALSE(cgroups.number("/a", "memory.peak"));
    EXPECT_FALSE(cgroups.number("/b", "memory.current"));
}

TEST(Cgroups, OfAProcess) {
    test::Sandbox sandbox;
    const Cgroups cgroups(sandbox.proc());

    sandbox.add_process(42, "/user.slice/a b");
    EXPECT_EQ(cgroups.of_pid(42), "/user.slice/a b");
    EXPECT_FALSE(cgroups.of_pid(43));
}

TEST(Cgroups, EveryOneIsVisitedOnceParentsFirst) {
    test::Sandbox sandbox;
    const Cgroups cgroups(sandbox.proc());
    std::vector<std::string> seen;

    sandbox.add_cgroup("/a/b/c");
    sandbox.add_cgroup("/d");
    cgroups.for_each([&](const std::string &path) { seen.push_back(path); });
    EXPECT_EQ(seen.front(), "/");
    EXPECT_LT(std::find(seen.begin(), seen.end(), "/a/b"),
              std::find(seen.begin(), seen.end(), "/a/b/c"));
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(seen, (std::vector<std::string>{"/", "/a", "/a/b", "/a/b/c", "/d"}));
}

TEST(Cgroups, OneThatVanishesDuringTheWalkIsLeftOut) {
    test::Sandbox sandbox;
    const Cgroups cgroups(sandbox.proc());
    int seen = 0;

    for (int i = 0; i < 20; ++i)
        sandbox.add_cgroup("/c" + std::to_string(i) + "/child");
    cgroups.for_each([&](const std::string &path) {
        ++seen;
        if (path == "/")
            return;
        for (int i = 0; i < 20; i += 2)
            std::filesystem::remove_all(sandbox.cgroup_mount() / fmt::format("c{}", i));
    });
    EXPECT_GE(seen, 1 + 10 * 2);
}

TEST(Cgroups, WithoutAHierarchyNothingIsReadAndTheReasonIsGiven) {
    test::Sandbox sandbox;
    const Cgroups cgroups(sandbox.proc());

    sandbox.write(sandbox.proc() / "self/mountinfo", "");
    EXPECT_FALSE(cgroups.number("/", "memory.current"));
    EXPECT_FALSE(cgroups.exists("/"));
    EXPECT_THROW(cgroups.mount(), Error);
}

TEST(CgroupPaths, AreTakenApart) {
    EXPECT_EQ(base_name("/a/b"), "b");
    EXPECT_EQ(base_name("/"), "/");
    EXPECT_EQ(parent_path("/a/b"), "/a");
    EXPECT_EQ(parent_path("/a"), "/");
    EXPECT_EQ(parent_path("/"), "/");
    EXPECT_EQ(join_path("/", "a"), "/a");
    EXPECT_EQ(join_path("/a", "b"), "/a/b");
}

} // namespace
} // namespace umacct
