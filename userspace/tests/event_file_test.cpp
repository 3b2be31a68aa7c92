// SPDX-License-Identifier: GPL-2.0-or-later
/// The events that umacctd writes for "umacct watch".
#include "lib/host/umacctd.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/sandbox.h"

namespace umacct {
namespace {

using Lines = std::vector<std::string>;

class EventFileTest : public testing::Test {
protected:
    EventFileTest() { sandbox_.write(at_, ""); }

    /// Replaces the file, as umacctd's next start or a rotation does.
    void replace(const std::string &text) const {
        std::filesystem::rename(sandbox_.root() / at_, sandbox_.root() / (at_ + ".old"));
        sandbox_.write(at_, text);
    }

    test::Sandbox sandbox_;
    const std::string at_ = "run/umacctd/events";
    const EventFile events_{sandbox_.root()};
};

TEST_F(EventFileTest, WhatIsAppendedSince) {
    events_.append("before");

    EventTail tail(sandbox_.root());
    EXPECT_EQ(tail.take(), Lines{});
    events_.append("one");
    events_.append("two");
    EXPECT_EQ(tail.take(), (Lines{"one", "two"}));
    EXPECT_EQ(tail.take(), Lines{});
}

TEST_F(EventFileTest, ALineIsTakenWhenItIsWhole) {
    EventTail tail(sandbox_.root());

    replace("ha");
    EXPECT_EQ(tail.take(), Lines{});
    std::ofstream(sandbox_.root() / at_, std::ios::app) << "lf\nan";
    EXPECT_EQ(tail.take(), Lines{"half"});
    // A line cut off in the old file is dropped.
    replace("new\n");
    EXPECT_EQ(tail.take(), Lines{"new"});
}

TEST_F(EventFileTest, NoLineIsTooLong) {
    EventTail tail(sandbox_.root());

    events_.append(std::string(64 << 10, 'x'));
    for (const std::string &line : tail.take())
        EXPECT_LE(line.size(), 32U << 10);
    events_.append("after");
    EXPECT_EQ(tail.take(), Lines{"after"});
}

TEST_F(EventFileTest, TheFileStaysSmall) {
    EventTail tail(sandbox_.root());
    std::size_t taken = 0;

    for (int i = 0; i < 1000; ++i) {
        events_.append(std::string(1023, 'x'));
        taken += tail.take().size();
    }
    EXPECT_EQ(taken, 1000U);
    EXPECT_LE(std::filesystem::file_size(sandbox_.root() / at_), 257U << 10);
}

TEST_F(EventFileTest, WithoutAFileThereIsNothing) {
    std::filesystem::remove(sandbox_.root() / at_);

    EventTail tail(sandbox_.root());
    EXPECT_EQ(tail.take(), Lines{});
    events_.append("the first");
    EXPECT_EQ(tail.take(), Lines{"the first"});
}

} // namespace
} // namespace umacct
