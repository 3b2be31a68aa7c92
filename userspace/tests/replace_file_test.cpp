// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/replace_file.h"

#include <atomic>
#include <fstream>
#include <iterator>
#include <thread>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "lib/host/process.h"
#include "tests/sandbox.h"

namespace umacct {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path &file) {
    std::ifstream in(file);

    return {std::istreambuf_iterator<char>(in), {}};
}

TEST(ReplaceFile, WhoHasTheOldOneOpenSeesNoneOfTheNew) {
    const test::Sandbox sandbox;
    const fs::path file = sandbox.root() / "a/b/state";
    const fs::path old = sandbox.root() / "old";

    ASSERT_EQ(replace_file(file, "one"), 0) << "makes its folders";
    fs::create_hard_link(file, old);
    ASSERT_EQ(replace_file(file, "two"), 0);
    EXPECT_EQ(read(file), "two");
    EXPECT_EQ(read(old), "one");
    EXPECT_EQ(std::distance(fs::directory_iterator(file.parent_path()), {}), 1);
}

TEST(ReplaceFile, WhereItCannotBeWritten) {
    const test::Sandbox sandbox;

    sandbox.write("state", "");
    EXPECT_EQ(replace_file(sandbox.root() / "state/file", "text"), ENOTDIR);
    fs::create_directory(sandbox.root() / "folder");
    EXPECT_EQ(replace_file(sandbox.root() / "folder", "text"), EISDIR);
    EXPECT_TRUE(fs::is_directory(sandbox.root() / "folder"));
}

TEST(ReplaceFile, SaysWhyItsFolderCannotBeMade) {
    const test::Sandbox sandbox;
    const fs::path file = sandbox.root() / "closed/new/state";

    fs::create_directory(sandbox.root() / "closed");
    fs::permissions(sandbox.root() / "closed", fs::perms(0555));
    if (geteuid() == 0 && seteuid(nobody) != 0)
        GTEST_SKIP() << "root may write anywhere";
    EXPECT_EQ(replace_file(file, "text"), EACCES);
    if (getuid() == 0) {
        ASSERT_EQ(seteuid(0), 0);
    }
}

mode_t mode_of(const fs::path &file) {
    struct stat found {};

    return stat(file.c_str(), &found) == 0 ? found.st_mode & 07777 : 0;
}

TEST(ReplaceFile, ASecretIsNeverReadableByOthers) {
    const test::Sandbox sandbox;
    const fs::path file = sandbox.root() / "secret";
    const fs::path next = sandbox.root() / "secret.new";
    std::atomic<bool> is_done = false;
    mode_t seen = 0;

    sandbox.write("secret", "");
    fs::permissions(file, fs::perms(0600));
    // What was left by one that was killed, as somebody may have it open.
    sandbox.write("secret.new", "left");
    std::ifstream left(next);
    fs::permissions(next, fs::perms(0600));
    std::thread watcher([&] {
        while (!is_done)
            seen |= mode_of(next);
    });
    const int code = replace_file_of_others(file, std::string(64 << 20, 'x'));
    is_done = true;
    watcher.join();
    ASSERT_EQ(code, 0);
    EXPECT_EQ(seen & 0077, 0U);
    EXPECT_EQ(mode_of(file), 0600U);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(left), {}), "left");
}

TEST(ReplaceFile, AModeIsKeptOrByWhatItIs) {
    const test::Sandbox sandbox;
    const fs::path file = sandbox.root() / "file";
    const mode_t mask = umask(0022);

    EXPECT_EQ(replace_file_of_others(file, "one"), 0);
    EXPECT_EQ(mode_of(file), 0644U) << "there was none";
    EXPECT_EQ(replace_private_file(file, "two"), 0);
    EXPECT_EQ(mode_of(file), 0600U);
    EXPECT_EQ(replace_file(file, "three"), 0);
    EXPECT_EQ(mode_of(file), 0644U);
    fs::permissions(file, fs::perms(0640));
    EXPECT_EQ(replace_file_of_others(file, "four"), 0);
    EXPECT_EQ(mode_of(file), 0640U);
    EXPECT_EQ(read(file), "four");
    umask(mask);
}

} // namespace
} // namespace umacct
