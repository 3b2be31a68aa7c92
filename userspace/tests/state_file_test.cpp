// SPDX-License-Identifier: GPL-2.0-or-later
/// Others' files are read in a child that can do no harm, and not more often than needed.
#include "lib/owners/state_file.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/host/umacctd.h"
#include "tests/sandbox.h"

namespace umacct {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

std::string the_text(const std::string &text) {
    return text;
}

std::string hang(const std::string & /*text*/) {
    while (true)
        pause();
}

class StateFileTest : public testing::Test {
protected:
    StateFileTest() { sandbox_.write(file_, "a\nb\n"); }

    StateFiles::Lines ask(const StateReader &read) { return StateFiles("/").ask(file_, read); }

    test::Sandbox sandbox_;
    std::filesystem::path file_ = sandbox_.proc() / "file";
};

TEST_F(StateFileTest, TheAnswerComesInLines) {
    EXPECT_EQ(ask(the_text), (StateFiles::Lines{"a", "b"}));
    EXPECT_TRUE(ask([](const std::string & /*text*/) { return ""; }).empty());
    EXPECT_EQ(StateFiles("/").ask_line(file_, the_text), "a");
    EXPECT_EQ(StateFiles("/").ask_line(sandbox_.proc() / "gone", the_text), "");
}

TEST_F(StateFileTest, TheChildHasNoPrivilegesAndNoFiles) {
    const auto powers = ask([](const std::string & /*text*/) {
        return std::to_string(geteuid()) + "\n" + std::to_string(getegid()) + "\n" +
               std::to_string(open("/dev/null", O_RDONLY)) + "\n" +
               std::to_string(fcntl(STDOUT_FILENO, F_GETFD)) + "\n" + std::to_string(fork()) + "\n";
    });

    ASSERT_EQ(powers.size(), 5U);
    if (getuid() == 0) {
        EXPECT_EQ(powers[0], "65534");
        EXPECT_EQ(powers[1], "65534");
        EXPECT_EQ(powers[4], "-1") << "it may not fork";
    }
    EXPECT_EQ(powers[2], "-1") << "it may not open";
    EXPECT_EQ(powers[3], "-1") << "it has none of our files";
}

TEST_F(StateFileTest, AChildThatDiesHangsOrSwellsAnswersNothing) {
    const auto start = Clock::now();

    EXPECT_TRUE(ask([](const std::string & /*text*/) -> std::string {
                    raise(SIGSEGV);
                    return "x";
                }).empty());
    EXPECT_TRUE(ask([](const std::string & /*text*/) -> std::string {
                    throw std::runtime_error("x");
                }).empty());
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-cstyle-cast,performance-no-int-to-ptr)
    const void *const failed = MAP_FAILED;

    EXPECT_EQ(ask([&](const std::string & /*text*/) {
                  return mmap(nullptr, 256U << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
                                 failed
                             ? "refused"
                             : "granted";
              }),
              StateFiles::Lines{"refused"})
        << "it has little memory";
    EXPECT_TRUE(
        ask([](const std::string & /*text*/) { return std::string(4U << 20, 'x'); }).empty())
        << "an answer is short";
    EXPECT_TRUE(ask(hang).empty());
    EXPECT_LT(Clock::now() - start, 10s);
}

TEST_F(StateFileTest, WhatGaveNoAnswerIsNotAskedForAgainAtOnce) {
    StateFiles files("/");
    const StateReader dies = [](const std::string & /*text*/) -> std::string {
        raise(SIGKILL);
        return "x";
    };

    for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(files.ask(file_, dies).empty());
        files.refresh();
    }
    EXPECT_EQ(files.children(), 1U);
}

TEST_F(StateFileTest, ASignalMeanwhileTakesNothingAway) {
    std::signal(SIGALRM, [](int /*signal*/) {});
    ualarm(20'000, 20'000);
    EXPECT_EQ(ask([](const std::string &text) {
                  std::this_thread::sleep_for(200ms);
                  return text;
              }),
              (StateFiles::Lines{"a", "b"}));
    ualarm(0, 0);
    std::signal(SIGALRM, SIG_DFL);
}

TEST_F(StateFileTest, IsReadAgainOnlyWhenItChanged) {
    StateFiles files("/");

    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(files.ask_line(file_, the_text), "a");
        files.refresh();
    }
    EXPECT_EQ(files.children(), 1U);
    sandbox_.write(file_, "other");
    EXPECT_EQ(files.ask_line(file_, the_text), "other");
    EXPECT_EQ(files.children(), 2U);
    sandbox_.write(file_, "third one");
    EXPECT_EQ(files.ask_line(file_, the_text), "other") << "before it is asked to look again";
    files.refresh();
    EXPECT_EQ(files.ask_line(file_, the_text), "third one");
    std::filesystem::remove(file_);
    files.refresh();
    EXPECT_EQ(files.ask_line(file_, the_text), "");
    EXPECT_EQ(files.children(), 3U) << "what isn't there needs no child";
}

TEST_F(StateFileTest, WhatNobodyAsksForIsForgotten) {
    const auto other = sandbox_.proc() / "other";
    StateFiles files("/");

    sandbox_.write(other, "x");
    files.ask(other, the_text);
    for (int i = 0; i < 20; ++i) {
        files.ask(file_, the_text);
        files.refresh();
    }
    EXPECT_EQ(files.children(), 2U) << "what is asked for is known";
    files.ask(other, the_text);
    EXPECT_EQ(files.children(), 3U) << "what was of a container long gone is not";
}

TEST_F(StateFileTest, WhatUmacctdReadNoOtherProgramReads) {
    const auto answers = sandbox_.root() / answers_file;
    StateFiles daemon(sandbox_.root());
    StateFiles other(sandbox_.root());

    daemon.share();
    daemon.ask(file_, the_text);
    EXPECT_EQ(other.ask_line(file_, the_text), "a");
    EXPECT_EQ(other.children(), 1U) << "it isn't written down yet";
    daemon.share();
    other.refresh();
    EXPECT_EQ(StateFiles(sandbox_.root()).ask(file_, the_text), (StateFiles::Lines{"a", "b"}));
    StateFiles tool(sandbox_.root());
    EXPECT_EQ(tool.ask(file_, the_text), (StateFiles::Lines{"a", "b"}));
    EXPECT_EQ(tool.children(), 0U);

    StateFiles next(sandbox_.root());
    next.share();
    EXPECT_EQ(next.ask_line(file_, the_text), "a");
    EXPECT_EQ(next.children(), 0U) << "umacctd that starts again reads nothing again";

    sandbox_.write(file_, "another");
    tool.refresh();
    EXPECT_EQ(tool.ask_line(file_, the_text), "another") << "a file that changed is read";
    EXPECT_EQ(tool.children(), 1U);

    // Files of no, or another, version of umacct are not used.
    std::stringstream text;
    text << std::ifstream(answers).rdbuf();
    const auto rest = text.str().find('\n') + 1;
    const std::string first = text.str().substr(0, rest);
    for (const std::string &head : {std::string(), std::string("umacct 0\n"), first + "1 2 3 "}) {
        sandbox_.write(answers, head + text.str().substr(rest));
        StateFiles again(sandbox_.root());
        EXPECT_EQ(again.ask_line(file_, the_text), "another") << head;
        EXPECT_EQ(again.children(), 1U) << head;
    }
}

TEST_F(StateFileTest, AUsersFilesAreReadAsTheUserAndTakeBoundedTime) {
    const uid_t user = getuid() == 0 ? 1000 : getuid();
    StateFiles files("/");

    if (getuid() == 0) {
        EXPECT_TRUE(StateFiles("/").ask(file_, the_text, user).empty()) << "root's, not the user's";
        ASSERT_EQ(chown(file_.c_str(), user, user), 0);
    }
    EXPECT_EQ(
        files.ask_line(
            file_, [](const std::string & /*text*/) { return std::to_string(getuid()); }, user),
        std::to_string(user));
    files.refresh();
    EXPECT_EQ(files.ask_line(file_, the_text, user), std::to_string(user)) << "not looked at yet";

    const auto start = Clock::now();
    for (int i = 0; i < 20; ++i) {
        const auto other = sandbox_.proc() / std::to_string(i);

        sandbox_.write(other, "x");
        ASSERT_TRUE(getuid() != 0 || chown(other.c_str(), user, user) == 0);
        EXPECT_TRUE(files.ask(other, hang, user).empty());
    }
    EXPECT_LT(Clock::now() - start, 10s);
}

TEST_F(StateFileTest, FoldersAreListedAgainWhenTheyChanged) {
    StateFiles files("/");
    const auto folder = sandbox_.proc() / "folder";

    EXPECT_TRUE(files.entries(folder).empty());
    sandbox_.write(folder / "b", "");
    sandbox_.write(folder / "a", "");
    EXPECT_TRUE(files.entries(folder).empty()) << "before it is asked to look again";
    files.refresh();
    EXPECT_EQ(files.entries(folder), (StateFiles::Lines{"a", "b"}));
}

TEST(StateFile, OnlyRegularFilesOfBoundedSizeAreRead) {
    const test::Sandbox sandbox;
    const auto folder = sandbox.proc();

    sandbox.write(folder / "file", "12345");
    EXPECT_EQ(read_state_file(folder / "file"), "12345");
    EXPECT_EQ(read_state_file(folder / "file", getuid()), "12345");
    EXPECT_FALSE(read_state_file(folder / "file", getuid() + 1));
    EXPECT_FALSE(read_state_file(folder / "gone"));
    EXPECT_FALSE(read_state_file(folder));
    EXPECT_FALSE(read_state_file("/dev/zero"));
    ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
    EXPECT_FALSE(read_state_file(folder / "fifo"));
    std::filesystem::create_symlink("file", folder / "link");
    EXPECT_FALSE(read_state_file(folder / "link"));
    std::filesystem::resize_file(folder / "file", (16U << 20) + 1);
    EXPECT_FALSE(read_state_file(folder / "file"));
}

TEST(StateFile, TheHomeOfAUser) {
    const test::Sandbox sandbox;
    const auto root = sandbox.proc().parent_path();

    sandbox.write("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nbroken\nu:x:1000:1000::/home/u:\n");
    EXPECT_EQ(StateFiles(root).home(1000), root / "home/u");
    EXPECT_EQ(StateFiles(root).home(100), "/dev/null");
}

TEST(StateFile, TheHomesOfUsersThatTwoThreadsAskFor) {
    constexpr uid_t users = 40;
    const test::Sandbox sandbox;
    const std::filesystem::path root = sandbox.proc().parent_path();
    std::string text;
    std::atomic<int> wrong = 0;

    for (uid_t user = 0; user < users; ++user)
        text += "u" + std::to_string(user) + ":x:" + std::to_string(user) + ":1::/home/" +
                std::to_string(user) + ":\n";
    sandbox.write("etc/passwd", text);
    const auto ask = [&] {
        for (uid_t i = 0; i < 2000; ++i) {
            const uid_t user = i % users;

            wrong += StateFiles(root).home(user) == root / "home" / std::to_string(user) ? 0 : 1;
        }
    };
    std::thread other(ask);
    ask();
    other.join();
    EXPECT_EQ(wrong, 0);
}

} // namespace
} // namespace umacct
