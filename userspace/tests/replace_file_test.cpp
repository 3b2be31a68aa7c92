// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/replace_file.h"

#include <atomic>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

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
    if (geteuid() == 0 && seteuid(nobodys_uid) != 0)
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
    const fs::path file = sandbox.root() / "folder/secret";
    std::atomic<bool> is_done = false;
    mode_t seen = 0;

    sandbox.write(file, "");
    fs::permissions(file, fs::perms(0600));
    std::thread watcher([&] {
        while (!is_done) {
            for (const auto &each : fs::directory_iterator(file.parent_path()))
                seen |= mode_of(each);
        }
    });
    const int code = replace_file_of_others(file, std::string(64 << 20, 'x'));
    is_done = true;
    watcher.join();
    ASSERT_EQ(code, 0);
    EXPECT_EQ(seen & 0077, 0U);
    EXPECT_EQ(mode_of(file), 0600U);
}

TEST(ReplaceFile, OfTwoAtOnceEachIsWhole) {
    const test::Sandbox sandbox;
    const fs::path file = sandbox.root() / "folder/state";
    const std::string one(1 << 16, '1');
    const std::string other(1 << 16, '2');
    const auto write = [&](const std::string &text) {
        for (int i = 0; i < 20; ++i)
            EXPECT_EQ(replace_file(file, text), 0);
    };

    write(one);
    std::thread writer(write, other);
    std::thread another(write, one);
    for (int i = 0; i < 100; ++i) {
        const std::string now = read(file);
        EXPECT_TRUE(now == one || now == other) << now.size() << " bytes";
    }
    writer.join();
    another.join();
    EXPECT_EQ(std::distance(fs::directory_iterator(file.parent_path()), {}), 1);
}

/// Stands for the cut in the middle of what is done.
struct Cut {};

TEST(ReplaceFile, CutBetweenAnyTwoStepsThereIsTheOldOneOrTheNewOne) {
    const test::Sandbox sandbox;
    const fs::path file = sandbox.root() / "etc/docker/daemon.json";
    const std::string was = "{\"a\": 1}";
    const std::string next = R"({"a": 1, "runtimes": {}})";
    std::vector<std::string> steps;

    on_file_step([&](const char *step, const fs::path &path) {
        const std::string name = path.filename().string();

        steps.push_back(std::string(step) + ' ' + name.substr(0, name.find(".new.")));
    });
    ASSERT_EQ(replace_file(file, was), 0);
    // Each folder that was made is on the disk, and the file is before its name is.
    EXPECT_EQ(steps, (std::vector<std::string>{"sync " + sandbox.root().filename().string(),
                                               "sync etc", "write daemon.json", "sync daemon.json",
                                               "rename daemon.json", "sync docker"}));
    for (std::size_t cut = 0; cut < 4; ++cut) {
        std::size_t at = 0;

        on_file_step([&](const char * /*step*/, const fs::path & /*path*/) {
            if (at++ == cut)
                throw Cut();
        });
        EXPECT_THROW(replace_file(file, next), Cut);
        EXPECT_EQ(read(file), cut < 3 ? was : next) << "cut before step " << cut;
    }
    on_file_step({});
    EXPECT_EQ(replace_file(file, next), 0) << "what a cut left is in nobody's way";
    EXPECT_EQ(read(file), next);
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
