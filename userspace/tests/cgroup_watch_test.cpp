// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/cgroup_watch.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/host/file_descriptor.h"

#include "tests/sandbox.h"

namespace {

/// Fails as if the kernel had no room for another watch.
bool full = false;                   // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
std::set<std::pair<int, int>> there; // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

} // namespace

/// The library's, which is found here first. What is watched already needs no room.
extern "C" int inotify_add_watch(int fd, const char *name, std::uint32_t mask) noexcept {
    const auto watch = static_cast<int>(syscall(SYS_inotify_add_watch, fd, name, mask));

    if (watch < 0 || there.contains({fd, watch}))
        return watch;
    if (full) {
        inotify_rm_watch(fd, watch);
        errno = ENOSPC;
        return -1;
    }
    there.emplace(fd, watch);
    return watch;
}

namespace umacct {
namespace {

using Paths = std::vector<std::string>;

Paths paths(const std::vector<CgroupWatch::Gone> &gone) {
    Paths paths;

    for (const CgroupWatch::Gone &each : gone)
        paths.push_back(each.path);
    return paths;
}

class CgroupWatchTest : public testing::Test {
protected:
    CgroupWatchTest() {
        full = false;
        there.clear();
    }

    std::filesystem::path folder(const std::string &path) const {
        return sandbox_.cgroup_mount() / path.substr(1);
    }

    void remove(const std::string &path) const { std::filesystem::remove_all(folder(path)); }

    /// Acts as a program that looks into it.
    FileDescriptor held_open(const std::string &path) const {
        return FileDescriptor(open(folder(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    }

    /// More than the kernel keeps for a reader.
    void overflow(const std::string &path) const {
        int most = 0;

        std::ifstream("/proc/sys/fs/inotify/max_queued_events") >> most;
        // Two of the same after each other would be one.
        for (int i = 0; i <= most; ++i) {
            const std::filesystem::path link = folder(path) / (i % 2 == 0 ? "even" : "odd");

            ASSERT_EQ(symlink("nowhere", link.c_str()), 0);
            ASSERT_EQ(unlink(link.c_str()), 0);
        }
    }

    test::Sandbox sandbox_;
    Cgroups cgroups_{sandbox_.proc()};
};

TEST_F(CgroupWatchTest, WhatIsThereAndWhatComes) {
    sandbox_.add_cgroup("/a");
    CgroupWatch watch(cgroups_);

    EXPECT_EQ(watch.take().appeared, (Paths{"/", "/a"}));
    EXPECT_TRUE(watch.take().appeared.empty());
    sandbox_.add_cgroup("/a/b");
    EXPECT_EQ(watch.take().appeared, Paths{"/a/b"});
    // The second was made before anyone could follow the first.
    sandbox_.add_cgroup("/a/b/c/d");
    EXPECT_EQ(watch.take().appeared, (Paths{"/a/b/c", "/a/b/c/d"}));
    sandbox_.write(sandbox_.cgroup_mount() / "a/memory.max", "max\n");
    EXPECT_TRUE(watch.take().appeared.empty()) << "a file is no cgroup";
}

TEST_F(CgroupWatchTest, WhatGoesAndComesAgain) {
    sandbox_.add_cgroup("/a");
    CgroupWatch watch(cgroups_);

    watch.take();
    remove("/a");
    EXPECT_EQ(paths(watch.take().gone), Paths{"/a"});
    sandbox_.add_cgroup("/a");
    EXPECT_EQ(watch.take().appeared, Paths{"/a"});
    remove("/a");
    sandbox_.add_cgroup("/a");
    const CgroupWatch::Changes both = watch.take();
    EXPECT_EQ(paths(both.gone), Paths{"/a"});
    EXPECT_EQ(both.appeared, Paths{"/a"});
}

TEST_F(CgroupWatchTest, WhatGoesLateDoesNotTakeItsSuccessorAlong) {
    sandbox_.add_cgroup("/a");
    CgroupWatch watch(cgroups_);

    watch.take();
    {
        const FileDescriptor held = held_open("/a");

        remove("/a");
        sandbox_.add_cgroup("/a");
        const CgroupWatch::Changes both = watch.take();
        EXPECT_EQ(paths(both.gone), Paths{"/a"});
        EXPECT_EQ(both.appeared, Paths{"/a"});
    }
    EXPECT_TRUE(watch.take().gone.empty()) << "the first was gone before";
    {
        const FileDescriptor held = held_open("/a");

        remove("/a");
        sandbox_.add_cgroup("/a");
    }
    EXPECT_EQ(watch.take().appeared, Paths{"/a"}) << "both in one reading";
    sandbox_.add_cgroup("/a/b");
    EXPECT_EQ(watch.take().appeared, Paths{"/a/b"});
    remove("/a");
    const Paths gone = paths(watch.take().gone);
    EXPECT_EQ(std::set(gone.begin(), gone.end()), (std::set<std::string>{"/a", "/a/b"}));
}

TEST_F(CgroupWatchTest, WhereTheKernelLostEventsEverythingIsLookedAt) {
    for (const char *path : {"/busy", "/goes", "/stays", "/again"})
        sandbox_.add_cgroup(path);
    CgroupWatch watch(cgroups_);

    watch.take();
    overflow("/busy");
    remove("/goes");
    {
        const FileDescriptor held = held_open("/again");

        remove("/again");
        sandbox_.add_cgroup("/again");
        sandbox_.add_cgroup("/comes");
    }
    const CgroupWatch::Changes changes = watch.take();
    const Paths gone = paths(changes.gone);
    EXPECT_EQ(std::set(gone.begin(), gone.end()), (std::set<std::string>{"/again", "/goes"}));
    EXPECT_EQ(std::set(changes.appeared.begin(), changes.appeared.end()),
              (std::set<std::string>{"/again", "/comes"}));
    EXPECT_FALSE(changes.trouble);
    remove("/stays");
    EXPECT_EQ(paths(watch.take().gone), Paths{"/stays"});
}

TEST_F(CgroupWatchTest, OfManyThatGoAtOnceAllIdsAreTold) {
    constexpr std::size_t many = 1000;
    std::set<std::uint64_t> ids;
    std::set<std::uint64_t> told;

    sandbox_.add_cgroup("/busy");
    for (std::size_t i = 0; i < many; ++i)
        ids.insert(sandbox_.add_cgroup("/busy/" + std::to_string(i)));
    CgroupWatch watch(cgroups_);
    do {
        watch.take();
    } while (watch.due());
    overflow("/busy");
    for (std::size_t i = 0; i < many; ++i)
        remove("/busy/" + std::to_string(i));
    do {
        const CgroupWatch::Changes changes = watch.take();

        for (const CgroupWatch::Gone &each : changes.gone)
            told.insert(each.id);
        EXPECT_LE(std::ranges::count_if(changes.gone,
                                        [](const auto &each) { return !each.path.empty(); }),
                  300);
    } while (watch.due());
    EXPECT_EQ(told, ids);
}

TEST_F(CgroupWatchTest, WhereTheKernelHasNoRoomTheyAreLookedForAtIntervals) {
    sandbox_.add_cgroup("/a");
    CgroupWatch watch(cgroups_);

    watch.take();
    EXPECT_FALSE(watch.due());
    full = true;
    sandbox_.add_cgroup("/b/c");
    CgroupWatch::Changes changes = watch.take();
    EXPECT_EQ(changes.appeared, (Paths{"/b", "/b/c"}));
    ASSERT_TRUE(changes.trouble);
    EXPECT_NE(changes.trouble->hint().find("fs.inotify.max_user_watches"), std::string::npos);
    ASSERT_TRUE(watch.due());

    sandbox_.add_cgroup("/d");
    changes = watch.take();
    EXPECT_EQ(changes.appeared, Paths{"/d"}) << "of which the kernel still tells";
    EXPECT_FALSE(changes.trouble) << "once is enough";

    // No event announces these.
    sandbox_.add_cgroup("/b/e");
    remove("/b/c");
    EXPECT_TRUE(watch.take().appeared.empty());
    watch.look_now();
    changes = watch.take();
    EXPECT_EQ(changes.appeared, Paths{"/b/e"});
    EXPECT_EQ(paths(changes.gone), Paths{"/b/c"});
    EXPECT_FALSE(changes.recovered);

    full = false;
    watch.look_now();
    changes = watch.take();
    EXPECT_TRUE(changes.appeared.empty());
    EXPECT_TRUE(changes.gone.empty());
    EXPECT_TRUE(changes.recovered);
    EXPECT_FALSE(watch.due());
    sandbox_.add_cgroup("/b/e/f");
    EXPECT_EQ(watch.take().appeared, Paths{"/b/e/f"});
}

TEST_F(CgroupWatchTest, OnesThatNestTooDeepToBeNamed) {
    const std::string name(200, 'x');
    CgroupWatch watch(cgroups_);
    std::vector<std::unique_ptr<FileDescriptor>> open;

    watch.take();
    open.push_back(std::make_unique<FileDescriptor>(
        ::open(folder("/").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
    for (int i = 0; i < 30; ++i) {
        const int at = open.back()->get();

        ASSERT_EQ(mkdirat(at, name.c_str(), 0755), 0);
        open.push_back(std::make_unique<FileDescriptor>(
            openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
        EXPECT_FALSE(watch.take().trouble) << "their parents' limits hold";
    }
    sandbox_.add_cgroup("/other");
    EXPECT_EQ(watch.take().appeared, Paths{"/other"});
}

/// Private memory of the process, in KiB.
std::uint64_t resident_memory() {
    std::ifstream file("/proc/self/statm");
    std::uint64_t all = 0;
    std::uint64_t resident = 0;

    file >> all >> resident;
    return resident * static_cast<std::uint64_t>(getpagesize()) / 1024;
}

TEST_F(CgroupWatchTest, OfATenantsSoManyAreFollowed) {
    constexpr std::size_t most = 100;
    constexpr std::size_t all = most + 10;
    CgroupWatch watch(cgroups_, most);
    const auto come = [&watch] {
        std::size_t count = 0;
        std::size_t some = 0;

        watch.look_now();
        do {
            some = watch.take().appeared.size();
            count += some;
        } while (some > 0);
        return count;
    };

    sandbox_.add_cgroup("/delegated");
    come();
    // It is given to a user after it was found.
    ASSERT_EQ(chown(folder("/delegated").c_str(), 1000, 1000), 0);
    const std::size_t watches = there.size();
    for (std::size_t i = 0; i < all; ++i) {
        std::filesystem::create_directory(folder("/delegated/" + std::to_string(i)));
        ASSERT_EQ(chown(folder("/delegated/" + std::to_string(i)).c_str(), 1000, 1000), 0);
    }
    EXPECT_EQ(come(), most);
    EXPECT_EQ(there.size(), watches + most) << "the others cause no events";
    sandbox_.add_cgroup("/another.service");
    EXPECT_EQ(come(), 1U) << "others are followed as before";
    for (std::size_t i = 0; i < all; ++i)
        std::filesystem::create_directory(folder("/another.service/" + std::to_string(i)));
    EXPECT_EQ(come(), most) << "root in a container is a tenant, too";
    for (std::size_t i = 0; i < all; ++i)
        remove("/delegated/" + std::to_string(i));
    come();
    sandbox_.add_cgroup("/delegated/new");
    EXPECT_EQ(come(), 1U) << "there is room again";
}

TEST_F(CgroupWatchTest, ManyWithLongPathsTakeLittleAndComeInParts) {
    constexpr int all = 4000;
    std::string top;
    for (int i = 0; i < 12; ++i)
        top += '/' + std::string(250, static_cast<char>('a' + i));
    sandbox_.add_cgroup(top);
    CgroupWatch watch(cgroups_);

    do {
        watch.take();
    } while (watch.due());
    const std::uint64_t before = resident_memory();
    for (int i = 0; i < all; ++i)
        sandbox_.add_cgroup(top + '/' + std::to_string(i) + std::string(240, 'x'));
    std::size_t came = 0;
    std::size_t most = 0;
    // Compares reported cgroups with a full search.
    for (const bool looks : {false, true}) {
        if (looks)
            watch.look_now();
        do {
            const CgroupWatch::Changes changes = watch.take();

            came += changes.appeared.size();
            most = std::max(most, changes.appeared.size());
            if (changes.appeared.empty())
                break;
        } while (true);
    }
    EXPECT_EQ(came, all);
    EXPECT_LT(most, 600U);
    // Each path has 3,262 letters, of which 254 are its own.
    EXPECT_LT(resident_memory() - before, all * 3) << "KiB";
}

} // namespace
} // namespace umacct
