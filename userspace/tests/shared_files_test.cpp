// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/shared_files.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/host/task.h"
#include "tests/hung_mount.h"
#include "tests/sandbox.h"

namespace umacct {
namespace {

constexpr std::uint64_t mib = 1ULL << 20;

/// A machine with a tmpfs of its own, which is a folder of the test's.
class SharedFiles : public testing::Test {
protected:
    SharedFiles() {
        sandbox_.write("proc/self/mountinfo", fmt::format("40 1 0:30 / {} rw - tmpfs tmpfs rw\n",
                                                          (sandbox_.root() / "shm").string()));
    }

    std::filesystem::path add(const char *name, std::size_t bytes) const {
        sandbox_.write(std::filesystem::path("shm") / name, std::string(bytes, 'x'));
        return sandbox_.root() / "shm" / name;
    }

    void maps(std::uint32_t pid, const std::filesystem::path &file) const {
        struct stat info {};

        ASSERT_EQ(stat(file.c_str(), &info), 0);
        sandbox_.write(fmt::format("proc/{}/maps", pid),
                       fmt::format("7f00-7f10 rw-s 0 {:02x}:{:02x} {}   {}\n", major(info.st_dev),
                                   minor(info.st_dev), info.st_ino, file.string()));
    }

    void opens(std::uint32_t pid, const std::filesystem::path &file, int mount = 40) const {
        const auto directory = sandbox_.proc() / std::to_string(pid) / "fd";

        std::filesystem::create_directories(directory);
        std::filesystem::create_symlink(file, directory / "3");
        sandbox_.write(fmt::format("proc/{}/fdinfo/3", pid),
                       fmt::format("pos:\t0\nflags:\t02\nmnt_id:\t{}\nino:\t7\n", mount));
    }

    test::Sandbox sandbox_;
};

TEST_F(SharedFiles, NobodysComeFirstThenTheLargest) {
    const auto kept = add("psm_1", 2 * mib);
    const auto held = add("psm_2", 3 * mib);
    const auto open = add("psm_3", mib);

    add("small", 1000);
    maps(412, held);
    opens(412, held);
    opens(413, open);
    const std::vector<SharedFile> files = shared_files(sandbox_.proc(), mib);
    ASSERT_EQ(files.size(), 3U);
    EXPECT_EQ(files[0].path, kept.string());
    EXPECT_GE(files[0].bytes, 2 * mib);
    EXPECT_TRUE(files[0].mapped.empty() && files[0].open.empty());
    EXPECT_FALSE(files[0].deleted);
    EXPECT_EQ(files[1].path, open.string());
    EXPECT_EQ(files[1].open, std::vector<std::uint32_t>{413});
    EXPECT_EQ(files[2].path, held.string());
    EXPECT_EQ(files[2].mapped, std::vector<std::uint32_t>{412});
    EXPECT_TRUE(files[2].open.empty()) << "who maps it isn't listed twice";
}

TEST_F(SharedFiles, OfWhatIsOpenOnlyMountsInMemoryAreAsked) {
    const std::filesystem::path file = sandbox_.root() / "elsewhere";
    const auto count = [this] { return shared_files(sandbox_.proc(), mib).size(); };

    struct stat info {};

    std::ofstream(file) << std::string(2 * mib, 'x');
    ASSERT_EQ(stat(file.c_str(), &info), 0);
    opens(412, file, 41);
    EXPECT_EQ(count(), 0U) << "of that mount nothing is known";
    // Another process has it.
    sandbox_.write("proc/7/mountinfo", fmt::format("41 1 {}:{} / /mnt rw - tmpfs tmpfs rw\n",
                                                   major(info.st_dev), minor(info.st_dev)));
    std::filesystem::create_directories(sandbox_.proc() / "7/ns");
    std::filesystem::create_symlink("mnt:[7]", sandbox_.proc() / "7/ns/mnt");
    EXPECT_EQ(count(), 1U);
}

TEST_F(SharedFiles, NobodyWaitsForAMountThatHangs) {
    const auto place = sandbox_.root() / "hung";
    const auto proc = sandbox_.root() / "procs";

    for (const auto &folder : {place, proc})
        std::filesystem::create_directories(folder);
    const test::HungMount hung(place);
    if (hung.user() == 0)
        GTEST_SKIP() << "no file system of a program can be mounted here";
    std::filesystem::create_symlink("/proc/self", proc / "self");
    std::filesystem::create_symlink(fmt::format("/proc/{}", hung.user()),
                                    proc / std::to_string(hung.user()));

    const pid_t search = fork();
    if (search == 0) {
        const auto user = static_cast<std::uint32_t>(hung.user());
        const auto files = shared_files(proc, mib);

        _exit(std::ranges::any_of(files,
                                  [&](const SharedFile &each) {
                                      return each.path == "/memfd:beside" &&
                                             each.open == std::vector{user};
                                  })
                  ? 0
                  : 1);
    }
    int status = -1;
    for (int i = 0; i < 1000 && waitpid(search, &status, WNOHANG) == 0; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (status == -1) {
        kill(search, SIGKILL);
        waitpid(search, &status, 0);
        FAIL() << "it waits";
    }
    EXPECT_EQ(status, 0) << "the memfd beside it was not found";
}

TEST_F(SharedFiles, WhatIsMountedBelowIsLeftAlone) {
    const auto mount = [this](const std::filesystem::path &place, const char *type) {
        std::ofstream(sandbox_.proc() / "self/mountinfo", std::ios::app)
            << fmt::format("41 40 0:31 / {} rw - {} x rw\n", place.string(), type);
    };
    const auto count = [this] { return shared_files(sandbox_.proc(), mib).size(); };

    add("docs/big", 2 * mib);
    add("big", 2 * mib);
    EXPECT_EQ(count(), 2U);
    mount(sandbox_.root() / "shm/docs", "fuse.portal");
    EXPECT_EQ(count(), 1U);
    mount(sandbox_.root(), "nfs4");
    EXPECT_EQ(count(), 0U) << "a server is asked on the way to it";
}

TEST_F(SharedFiles, SegmentsThatNobodyHasAttached) {
    const std::string head = "key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime "
                             "ctime rss swap\n";

    sandbox_.write("proc/sysvipc/shm", head + "1 7 600 9000000 1 2 0 0 0 0 0 1 1 1 8388608 0\n"
                                              "2 8 600 9000000 1 2 3 0 0 0 0 1 1 1 8388608 0\n");
    const std::vector<SharedFile> files = shared_files(sandbox_.proc(), mib);
    ASSERT_EQ(files.size(), 1U);
    EXPECT_EQ(files[0].path, "System V segment 7");
    EXPECT_EQ(files[0].bytes, 8 * mib);
}

/// As /proc/PID/stat begins.
void add_task(const test::Sandbox &sandbox, int pid, int parent, int group, int session) {
    sandbox.write(fmt::format("proc/{}/stat", pid),
                  fmt::format("{} (x) S {} {} {} 0 0 0 0 0 0 0 0 0 0 0 20 0 1 0 9 0 0\n", pid,
                              parent, group, session));
}

TEST(Orphans, HaveAParentOfAnotherSession) {
    const test::Sandbox sandbox;

    add_task(sandbox, 1, 0, 1, 1);
    add_task(sandbox, 500, 1, 500, 500);
    add_task(sandbox, 501, 500, 500, 500);
    EXPECT_FALSE(is_orphaned(sandbox.proc(), 500)) << "a service begins a session";
    EXPECT_FALSE(is_orphaned(sandbox.proc(), 501));
    EXPECT_FALSE(is_orphaned(sandbox.proc(), 1));
    EXPECT_FALSE(is_orphaned(sandbox.proc(), 502)) << "it is gone itself";
    add_task(sandbox, 501, 1, 500, 500);
    EXPECT_TRUE(is_orphaned(sandbox.proc(), 501));
}

TEST(Orphans, OfAContainerHaveItsFirstProcessForAParent) {
    const test::Sandbox sandbox;

    add_task(sandbox, 700, 600, 700, 700);
    add_task(sandbox, 701, 700, 705, 700);
    sandbox.write("proc/700/status", "Name:\ttini\nNSpid:\t700\t1\n");
    add_task(sandbox, 705, 700, 705, 700);
    EXPECT_FALSE(is_orphaned(sandbox.proc(), 701)) << "the one that began its group is there";
    std::filesystem::remove(sandbox.proc() / "705/stat");
    EXPECT_TRUE(is_orphaned(sandbox.proc(), 701));
    sandbox.write("proc/700/status", "Name:\tbash\nNSpid:\t700\t9\n");
    EXPECT_FALSE(is_orphaned(sandbox.proc(), 701)) << "a shell's pipe whose first program ended";
}

} // namespace
} // namespace umacct
