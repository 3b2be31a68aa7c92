// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/replace_file.h"

#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

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

} // namespace
} // namespace umacct
