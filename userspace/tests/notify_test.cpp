// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/notify.h"

#include <fstream>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/sandbox.h"

namespace umacct::tool {
namespace {

using namespace std::chrono_literals;

class NotifierTest : public testing::Test {
protected:
    static Json event(const std::string &path, const std::string &type = "hard_refused") {
        return {{"type", type}, {"path", path}, {"count", 1}};
    }

    /// Paths and counts, as "/a 1\n".
    std::string received() const {
        std::ifstream file(file_);
        std::string all;

        for (std::string line; std::getline(file, line);) {
            const Json got = Json::parse(line);
            all += fmt::format("{} {}\n", got["path"].get<std::string>(), got["count"].get<int>());
        }
        return all;
    }

    /// later: than it is, so that what is quiet is due.
    static bool ends(Notifier &notifier, std::chrono::seconds later = 0s) {
        const auto until = Notifier::Clock::now() + 10s;

        while (!notifier.is_idle() && Notifier::Clock::now() < until) {
            std::this_thread::sleep_for(1ms);
            notifier.look(Notifier::Clock::now() + later);
        }
        return notifier.is_idle();
    }

    Notifier::Log log() {
        return [this](const std::string &line) { logged_.push_back(line); };
    }

    test::Sandbox sandbox_;
    std::string file_ = (sandbox_.root() / "received").string();
    std::string slow_ = "cat >>" + file_ + "; while ! [ -e " + file_ + ".go ]; do sleep 0.01; done";
    std::vector<std::string> logged_;
};

TEST_F(NotifierTest, ACommandGetsEachEventInOrder) {
    Notifier notifier("cat >>" + file_, log());

    for (int i = 0; i < 5; ++i)
        notifier.put(event("/" + std::to_string(i)));
    EXPECT_TRUE(ends(notifier));
    EXPECT_EQ(received(), "/0 1\n/1 1\n/2 1\n/3 1\n/4 1\n");
    EXPECT_TRUE(logged_.empty());
}

TEST_F(NotifierTest, OneThatRepeatsIsOneAndIsQuietForAWhile) {
    Notifier notifier(slow_, log());

    for (int i = 0; i < 1000; ++i) {
        notifier.put(event("/a"));
        if (i == 500)
            notifier.put(event("/b", "guard"));
    }
    notifier.put(event("/c"));
    sandbox_.write("received.go", "");
    const auto until = Notifier::Clock::now() + 10s;
    while (received() != "/a 1\n/b 1\n/c 1\n" && Notifier::Clock::now() < until) {
        std::this_thread::sleep_for(1ms);
        notifier.look();
    }
    EXPECT_EQ(received(), "/a 1\n/b 1\n/c 1\n");
    EXPECT_TRUE(ends(notifier, Notifier::quiet));
    EXPECT_EQ(received(), "/a 1\n/b 1\n/c 1\n/a 999\n");
    EXPECT_TRUE(logged_.empty());
}

TEST_F(NotifierTest, TheQueueKeepsWhatIsOfOthersAndTheNewest) {
    Notifier notifier(slow_, log());

    notifier.put(event("/first"));
    notifier.put(event("/other"));
    for (std::size_t i = 0; i < Notifier::most_waiting; ++i)
        notifier.put(event("/tenant/user/" + std::to_string(i)));
    notifier.put(event("/tenant/user/1", "guard"));
    notifier.put(event("/tenant/user/1", "guard"));
    sandbox_.write("received.go", "");
    EXPECT_TRUE(ends(notifier));
    EXPECT_TRUE(received().starts_with("/first 1\n/tenant/user/1 1\n/tenant/user/1 1\n"
                                       "/other 1\n/tenant/user/3 1\n/tenant/user/4 1\n"))
        << received();
    EXPECT_EQ(logged_,
              std::vector<std::string>{"notify: events dropped: 3; the command is too slow"});
}

TEST_F(NotifierTest, AHangingCommandIsEnded) {
    Notifier notifier("sleep 1000 | sleep 1000", log());

    notifier.put(event("/a"));
    notifier.look(Notifier::Clock::now() + Notifier::patience);
    EXPECT_TRUE(notifier.is_idle());
    EXPECT_EQ(logged_, std::vector<std::string>{"notify: the command was ended: it ran for 30 s"});
}

TEST_F(NotifierTest, AFailureIsReported) {
    Notifier notifier("exit 3", log());

    notifier.put(event("/a"));
    EXPECT_TRUE(ends(notifier));
    EXPECT_EQ(logged_, std::vector<std::string>{"notify: the command failed with exit code 3"});
}

} // namespace
} // namespace umacct::tool
