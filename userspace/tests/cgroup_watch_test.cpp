// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/cgroup_watch.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "tests/sandbox.h"

namespace umacct {
namespace {

using Paths = std::vector<std::string>;

class CgroupWatchTest : public testing::Test {
protected:
    void remove(const std::string &path) {
        std::filesystem::remove_all(sandbox_.cgroup_mount() / path.substr(1));
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
    EXPECT_EQ(watch.take().gone, Paths{"/a"});
    sandbox_.add_cgroup("/a");
    EXPECT_EQ(watch.take().appeared, Paths{"/a"});
    remove("/a");
    sandbox_.add_cgroup("/a");
    const CgroupWatch::Changes both = watch.take();
    EXPECT_EQ(both.gone, Paths{"/a"});
    EXPECT_EQ(both.appeared, Paths{"/a"});
}

} // namespace
} // namespace umacct
