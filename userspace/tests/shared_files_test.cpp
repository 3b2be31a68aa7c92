// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/shared_files.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/host/mountinfo.h"
#include "lib/host/task.h"
#include "tests/hung_mount.h"
#include "tests/sandbox.h"

namespace umacct {
namespace {

constexpr std::uint64_t mib = 1ULL << 20;

/// The id of the mount that a file is in.
int mount_in(const std::filesystem::path &file) {
    struct statx info {};

    return statx(AT_FDCWD, file.c_str(), 0, STATX_MNT_ID, &info) == 0
               ? static_cast<int>(info.stx_mnt_id)
               : -1;
}

/// A line of /proc/PID/mountinfo: the mount of a file, with a type and a place.
std::string mount_line(const std::filesystem::path &file, const char *type,
                       const std::filesystem::path &place) {
    struct stat info {};

    stat(file.c_str(), &info);
    return fmt::format("{} 1 {}:{} / {} rw - {} x rw\n", mount_in(file), major(info.st_dev),
                       minor(info.st_dev), place.string(), type);
}

/// Result of a child that has mounted some more; -1 if it may not. The mounts go with it.
int count_with_mounts(const std::function<bool()> &mount_them, const std::function<int()> &count) {
    const pid_t child = fork();

    if (child == 0)
        _exit(unshare(CLONE_NEWNS) == 0 &&
                      mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 && mount_them()
                  ? count()
                  : 255);
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) != 255 ? WEXITSTATUS(status) : -1;
}

bool mount_tmpfs(const std::filesystem::path &place) {
    return mount("test", place.c_str(), "tmpfs", 0, nullptr) == 0;
}

/// A machine with a tmpfs of its own, which is a folder of the test's.
class SharedFiles : public testing::Test {
protected:
    SharedFiles() {
        const std::filesystem::path shm = sandbox_.root() / "shm";
        std::string mounts;

        std::filesystem::create_directories(shm);
        // Mounts on the way to it; "/" is assumed to answer.
        for (auto above = sandbox_.root(); above != "/"; above = above.parent_path()) {
            if (mount_in(above) != mount_in(shm))
                mounts += mount_line(above, "ramfs", above);
        }
        sandbox_.write("proc/self/mountinfo", mounts + mount_line(shm, "tmpfs", shm));
    }

    /// Another namespace's first process, whose root is the machine's with a folder in place of it.
    void add_container(int pid, const std::string &mounts) const {
        const auto process = sandbox_.proc() / std::to_string(pid);

        sandbox_.write(process / "mountinfo", mounts);
        std::filesystem::create_directories(process / "ns");
        std::filesystem::create_symlink(fmt::format("mnt:[{}]", pid), process / "ns/mnt");
        std::filesystem::create_symlink(sandbox_.root() / "container", process / "root");
    }

    std::size_t count(std::uint64_t least = mib) const {
        return shared_files(sandbox_.proc(), least).size();
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

    /// mount: that fdinfo says it is in, if it isn't the right one.
    void opens(std::uint32_t pid, const std::filesystem::path &file,
               std::optional<int> mount = std::nullopt) const {
        const auto directory = sandbox_.proc() / std::to_string(pid) / "fd";

        std::filesystem::create_directories(directory);
        std::filesystem::create_symlink(file, directory / "3");
        sandbox_.write(fmt::format("proc/{}/fdinfo/3", pid),
                       fmt::format("pos:\t0\nflags:\t02\nmnt_id:\t{}\nino:\t7\n",
                                   mount.value_or(mount_in(file))));
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

    std::ofstream(file) << std::string(2 * mib, 'x');
    sandbox_.write("proc/self/mountinfo", "");
    opens(412, file);
    EXPECT_EQ(count(), 0U) << "of that mount nothing is known";
    add_container(7, mount_line(file, "tmpfs", "/mnt"));
    EXPECT_EQ(count(), 1U) << "another process has it";
}

TEST_F(SharedFiles, AFileThatTakesAnothersPlaceIsLeftAlone) {
    const std::filesystem::path file = sandbox_.root() / "elsewhere";

    std::ofstream(file) << std::string(2 * mib, 'x');
    sandbox_.write("proc/self/mountinfo", "");

    struct stat info {};

    ASSERT_EQ(stat(file.c_str(), &info), 0);
    add_container(7, fmt::format("999999 1 {}:{} / /mnt rw - tmpfs x rw\n", major(info.st_dev),
                                 minor(info.st_dev)));
    opens(412, file, 999999);
    EXPECT_EQ(count(), 0U) << "fdinfo was that of the one before";
}

TEST_F(SharedFiles, NoNameHidesAnOpenFile) {
    const auto place = sandbox_.root() / "dev";
    const int found = count_with_mounts(
        [&] {
            std::filesystem::create_directories(place);
            return mount_tmpfs(place) &&
                   mount(place.c_str(), "/dev", nullptr, MS_BIND, nullptr) == 0;
        },
        [&] {
            std::ofstream("/dev/nvidia9") << std::string(2 * mib, 'x');
            opens(412, "/dev/nvidia9");
            sandbox_.write("proc/self/mountinfo", "");
            add_container(7, mount_line("/dev", "tmpfs", "/dev"));
            return static_cast<int>(count());
        });

    if (found < 0)
        GTEST_SKIP() << "nothing can be mounted here";
    EXPECT_EQ(found, 1);
}

TEST_F(SharedFiles, OfAContainerWhatItsRootLetsBeSeen) {
    const auto shm = sandbox_.root() / "container/dev/shm";
    sandbox_.write(shm / "big", std::string(2 * mib, 'x'));
    const std::string right = mount_line(shm, "tmpfs", "/dev/shm");
    const auto count_with = [&](const std::string &root, const std::string &mount) {
        std::filesystem::remove_all(sandbox_.proc() / "7");
        add_container(7, root + mount);
        return count();
    };

    sandbox_.write("proc/self/mountinfo", "");
    EXPECT_EQ(count_with("9 1 8:1 / / rw - ext4 x rw\n", right), 1U);
    EXPECT_EQ(count_with("", right), 0U) << "its root is a folder of a mount that isn't told of";
    EXPECT_EQ(count_with("9 1 0:9 / / rw - nfs4 x rw\n", right), 0U);
    EXPECT_EQ(count_with("9 1 0:9 / / rw - overlay x rw\n", right), 0U)
        << "in a user namespace, it may lie on a program's";
    EXPECT_EQ(count_with(mount_line(shm, "ramfs", "/"),
                         right + "999999 1 0:9 / /dev/shm rw - tmpfs x rw\n"),
              0U)
        << "another mount is there by now";
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

TEST_F(SharedFiles, WhatIsMountedAboveOrBelowIsLeftAlone) {
    const auto shm = sandbox_.root() / "shm";
    const auto tmpfs = sandbox_.root() / "tmpfs";
    const auto find = [&](const std::filesystem::path &over) {
        std::string line; // ids differ in each namespace

        return count_with_mounts(
            [&] {
                line = mount_line(shm, "tmpfs", shm);
                return over.empty() ||
                       mount(tmpfs.c_str(), over.c_str(), nullptr, MS_BIND, nullptr) == 0;
            },
            [&] {
                sandbox_.write("proc/self/mountinfo", line);
                return static_cast<int>(count());
            });
    };

    add("docs/big", 2 * mib);
    add("big", 2 * mib);
    sandbox_.write("tmpfs/third", std::string(2 * mib, 'x'));
    EXPECT_EQ(count(), 2U);
    std::ofstream(sandbox_.proc() / "self/mountinfo", std::ios::app)
        << "999999 1 0:31 / " << sandbox_.root().string() << " rw - nfs4 x rw\n";
    EXPECT_EQ(count(), 0U) << "a server is asked on the way to it";
    const int alone = find({});
    if (alone < 0)
        GTEST_SKIP() << "nothing can be mounted here";
    EXPECT_EQ(alone, 2);
    EXPECT_EQ(find(shm / "docs"), 1);
    EXPECT_EQ(find(shm), 0) << "the files are those of what hides it";
}

TEST_F(SharedFiles, ADeepTreeHidesNothingBesideIt) {
    const rlimit few{.rlim_cur = 400, .rlim_max = 400};
    std::filesystem::path deep = "shm/a";

    add("big", 2 * mib);
    for (int i = 0; i < 600; ++i)
        deep /= "a";
    std::filesystem::create_directories(sandbox_.root() / deep);
    add("b/big", 2 * mib);
    const pid_t child = fork();
    if (child == 0)
        _exit(setrlimit(RLIMIT_NOFILE, &few) == 0 ? static_cast<int>(count()) : 255);
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 2);
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

TEST(Mounts, ThatAnswer) {
    const auto answers = [](const char *type, int major_number, Trust trust = {}) {
        const Mount mount{.device = makedev(major_number, 1), .point = "/mnt", .type = type};

        return mount.answers(trust);
    };

    EXPECT_TRUE(answers("ext4", 8));
    EXPECT_TRUE(answers("tmpfs", 0));
    EXPECT_FALSE(answers("nfs4", 0));
    EXPECT_FALSE(answers("fuse.sshfs", 0));
    EXPECT_FALSE(answers("fuseblk", 8));
    EXPECT_FALSE(answers("fuseblk.ntfs-3g", 8));
    EXPECT_FALSE(answers("overlay", 0));
    EXPECT_TRUE(answers("overlay", 0, {.root = false, .overlays = true}));
}

/// The beginning of /proc/PID/stat.
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
