// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/replace_file.h"

#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

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

} // namespace
} // namespace umacct
