// SPDX-License-Identifier: GPL-2.0-or-later
/// umacctd's loop, with a module that lives in the test.
#include "daemon/daemon.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "lib/error.h"
#include "lib/host/file_descriptor.h"
#include "tests/fake_announcements.h"
#include "tests/fake_module.h"
#include "tests/sandbox.h"

namespace umacct {
namespace {

using namespace std::chrono_literals;

class DaemonTest : public testing::Test {
protected:
    DaemonTest() {
        sandbox_.write("proc/sys/kernel/random/boot_id", "11111111-1111-1111-1111-111111111111\n");
        sandbox_.write("etc/umacct.toml", "[[rule]]\ncgroup='/a'\nhard='1G'\n");
        sandbox_.add_cgroup("/a");
    }

    void TearDown() override {
        if (thread_.joinable()) {
            tell(SIGTERM);
            thread_.join();
        }
    }

    /// Runs in a thread of its own, to which signals are sent.
    void start() {
        thread_ = std::thread([this] {
            const auto daemon = std::this_thread::get_id();

            Daemon(
                [this, daemon] {
                    // Guard and recorder have threads and connections of their own.
                    if (std::this_thread::get_id() == daemon)
                        ++connected_;
                    if (!loaded_)
                        throw Error(Failure::missing, "the umacct kernel module is not loaded");
                    return fake_.connect();
                },
                announcements_.listen(), sandbox_.proc(), sandbox_.root(),
                {.connect = [this]() -> std::unique_ptr<Transport> {
                     return observes_ ? observer_.connect() : nullptr;
                 },
                 .end =
                     [this] {
                         ++ended_;
                         observes_ = false;
                     }})
                .run();
        });
        ASSERT_TRUE(eventually([this] { return connected_ > 0; }));
    }

    void tell(int signal) { pthread_kill(thread_.native_handle(), signal); }

    static bool eventually(const std::function<bool()> &is_so) {
        const auto until = std::chrono::steady_clock::now() + 10s;

        while (!is_so()) {
            if (std::chrono::steady_clock::now() >= until)
                return false;
            std::this_thread::sleep_for(10ms);
        }
        return true;
    }

    /// How often it connected until all that it does at its start is done.
    int settled() {
        const int before = announcements_.taken();

        announcements_.announce({});
        EXPECT_TRUE(eventually([&] { return announcements_.taken() > before; }));
        return connected_;
    }

    test::Sandbox sandbox_;
    test::FakeModule fake_;
    test::FakeAnnouncements announcements_;
    test::FakeModule observer_;
    std::atomic<bool> observes_ = false;
    std::atomic<int> ended_ = 0; ///< how often the observer was
    std::atomic<bool> loaded_ = true;
    std::atomic<int> connected_ = 0; ///< how often
    std::atomic<int> went_ = 0;      ///< the same
    std::thread thread_;
};

TEST_F(DaemonTest, AModuleThatIsLoadedAnewIsToldEverything) {
    start();
    const int before = settled();
    announcements_.announce({.unloaded = true, .loaded = true});
    EXPECT_TRUE(eventually([&] { return connected_ > before; }));
}

TEST_F(DaemonTest, AnOverrunCostsNothing) {
    start();
    const int before = settled();
    const int taken = announcements_.taken();
    const std::size_t changes = fake_.changes.size();
    for (int i = 1; i <= 3; ++i) {
        announcements_.announce({.overrun = true});
        ASSERT_TRUE(eventually([&] { return announcements_.taken() >= taken + i; }));
    }
    tell(SIGTERM);
    thread_.join();
    EXPECT_EQ(connected_, before);
    EXPECT_EQ(fake_.changes.size(), changes) << "nothing is set again";
}

TEST_F(DaemonTest, OthersCanReadItsPolicyBeforeItSetsAnything) {
    std::atomic<int> set = 0;
    std::atomic<int> too_early = 0;
    std::string before; // changed while umacctd waits

    fake_.on_change = [&] {
        const LastGood last(sandbox_.root());

        if (!last.is_of(read_texts(policy_files(sandbox_.root()))) ||
            policy_mark(sandbox_.root()) == before)
            ++too_early;
        ++set;
    };
    start();
    settled();
    EXPECT_GT(set, 0);
    EXPECT_EQ(too_early, 0) << "at its start";
    const int set_before = set;
    before = policy_mark(sandbox_.root());
    sandbox_.write("etc/umacct.toml", "[[rule]]\ncgroup='/a'\nhard='2G'\n");
    tell(SIGHUP);
    EXPECT_TRUE(eventually([&] { return set > set_before; }));
    tell(SIGTERM);
    thread_.join();
    EXPECT_EQ(too_early, 0) << "when it reads one again";
}

TEST_F(DaemonTest, AStartWithThePolicyThatWasKeptMakesNoContainerBeginAgain) {
    std::string mark;
    const auto run = [&] {
        start();
        settled();
        tell(SIGTERM);
        thread_.join();
        return std::exchange(mark, policy_mark(sandbox_.root()));
    };

    run();
    EXPECT_EQ(run(), mark);
    sandbox_.write("etc/umacct.toml", "[[rule]]\ncgroup='/a'\nhard='2G'\n");
    EXPECT_NE(run(), mark) << "another policy";
}

TEST_F(DaemonTest, WithoutAModuleItWaitsForOneWithoutAskingForIt) {
    loaded_ = false;
    start();
    const int before = settled();
    // It would have been asked for each second.
    std::this_thread::sleep_for(2500ms);
    EXPECT_EQ(connected_, before);
    loaded_ = true;
    announcements_.announce({.loaded = true});
    EXPECT_TRUE(eventually([&] { return connected_ > before; }));
}

TEST_F(DaemonTest, ItOutlivesAModuleThatGoesWhileANameIsAwaited) {
    const std::string id(64, 'a');

    sandbox_.write("etc/umacct.toml", "[[rule]]\ncontainer='llm'\nhard='1G'\n");
    sandbox_.add_cgroup("/machine.slice/libpod-" + id + ".scope");
    fake_.on_change = [this] {
        ++went_;
        throw Error(Failure::missing, "the fake module goes");
    };
    start();
    sandbox_.write("var/lib/containers/storage/overlay-containers/containers.json",
                   R"([{"id":")" + id + R"(","names":["llm"]}])");
    ASSERT_TRUE(eventually([this] { return went_ > 0; }));
    const int before = connected_;
    announcements_.announce({.unloaded = true, .loaded = true});
    EXPECT_TRUE(eventually([&] { return connected_ > before; }));
}

TEST_F(DaemonTest, AStartThatFindsABadPolicyTakesTheLastGoodOne) {
    start();
    settled();
    tell(SIGTERM);
    thread_.join();
    ASSERT_FALSE(fake_.changes.empty());
    fake_.changes.clear();
    connected_ = 0;

    sandbox_.write("etc/umacct.toml", "[[rule]]\ncgroup='/a'\nhrad='1G'\n");
    start();
    settled();
    tell(SIGTERM);
    thread_.join();
    ASSERT_FALSE(fake_.changes.empty());
    EXPECT_EQ(test::attribute(fake_.changes[0].attributes, UMACCT_A_ACCOUNT_HARD), 1ULL << 30);

    // It kept no more than it was given.
    std::filesystem::remove_all(sandbox_.root() / "var/lib/umacctd");
    EXPECT_THROW(Daemon([this] { return fake_.connect(); }, announcements_.listen(),
                        sandbox_.proc(), sandbox_.root()),
                 PolicyError);
}

TEST_F(DaemonTest, AStartRefusesWhatAReloadRefuses) {
    sandbox_.write("proc/meminfo", "MemTotal: 134217728 kB\n");
    start();
    settled();
    tell(SIGTERM);
    thread_.join();

    // More than the machine has.
    sandbox_.write("etc/umacct.toml",
                   "[machine]\nreserve='900G'\n[[rule]]\ncgroup='/a'\nhard='2G'\n");
    for (int i = 0; i < 2; ++i) { // and the good one is still there after the first
        fake_.changes.clear();
        connected_ = 0;
        start();
        settled();
        tell(SIGTERM);
        thread_.join();
        ASSERT_FALSE(fake_.changes.empty());
        for (const auto &change : fake_.changes)
            EXPECT_EQ(test::attribute(change.attributes, UMACCT_A_ACCOUNT_HARD), 1ULL << 30);
    }

    // Settings that can be made are made, without a good policy.
    std::filesystem::remove_all(sandbox_.root() / "var/lib/umacctd");
    connected_ = 0;
    start();
    settled();
    tell(SIGTERM);
    thread_.join();
    EXPECT_EQ(test::attribute(fake_.changes.back().attributes, UMACCT_A_ACCOUNT_HARD), 2ULL << 30);
}

/// The state that systemd shows for the service.
class ToldState : public DaemonTest {
protected:
    ToldState() {
        const std::string path = sandbox_.root() / "notify";
        sockaddr_un address{};

        address.sun_family = AF_UNIX;
        path.copy(address.sun_path, sizeof(address.sun_path) - 1);
        EXPECT_EQ(
            bind(socket_.get(), reinterpret_cast<const sockaddr *>(&address), sizeof(address)), 0);
        setenv("NOTIFY_SOCKET", path.c_str(), 1);
    }

    void TearDown() override {
        DaemonTest::TearDown();
        unsetenv("NOTIFY_SOCKET");
    }

    bool says(const std::string &words) {
        return eventually([&] {
            std::array<char, 4096> text{};
            const ssize_t size = recv(socket_.get(), text.data(), text.size(), MSG_DONTWAIT);

            if (size > 0)
                last_.assign(text.data(), static_cast<std::size_t>(size));
            return last_.starts_with("STATUS=") && last_.find(words) != std::string::npos;
        });
    }

    FileDescriptor socket_{socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    std::string last_;
};

TEST_F(ToldState, WhoCountsWithoutTheModuleAndWhatWaitsForIt) {
    sandbox_.write("etc/umacct.toml", "[machine]\nreserve='2G'\n"
                                      "[[rule]]\ncgroup='/a'\nhard='1G'\n"
                                      "[[rule]]\ncgroup='/b'\nhard='1G'\n");
    observer_.status.flags = UMACCT_STATUS_OBSERVER | UMACCT_STATUS_CGROUP_V2;
    loaded_ = false;
    start();
    EXPECT_TRUE(says("waits: the umacct kernel module is not loaded")) << last_;
    observes_ = true;
    EXPECT_TRUE(says("BPF programs count in the module's place")) << last_;
    EXPECT_NE(last_.find("2 rules and the reserve wait for the module"), std::string::npos)
        << last_;
    EXPECT_TRUE(observer_.changes.empty());
    sandbox_.write("etc/umacct.toml", "[[rule]]\ncgroup='/a'\nhard='2G'\n");
    tell(SIGHUP);
    EXPECT_TRUE(says("; 1 rule waits for the module")) << last_;

    loaded_ = true;
    announcements_.announce({.loaded = true});
    EXPECT_TRUE(says("1 rule in force")) << last_;
    EXPECT_EQ(ended_, 1) << "the observer has no more to do";
    EXPECT_FALSE(fake_.changes.empty());
    EXPECT_TRUE(observer_.changes.empty());

    loaded_ = false;
    announcements_.announce({.unloaded = true});
    observes_ = true;
    EXPECT_TRUE(says("BPF programs count in the module's place")) << last_;
    observes_ = false;
    EXPECT_TRUE(says("the observer was ended")) << last_;
}

TEST_F(ToldState, WhatBecameOfAReload) {
    start();
    EXPECT_TRUE(says("1 rule in force"));

    fake_.refuse_with = EINVAL;
    sandbox_.write("etc/umacct.toml", "[machine]\nreserve='2G'\n[[rule]]\ncgroup='/a'\n"
                                      "hard='1G'\n");
    tell(SIGHUP);
    EXPECT_TRUE(says("1 rule, as before; another policy was refused: the fake module refuses"))
        << last_;

    fake_.refuse_with.reset();
    sandbox_.write("etc/umacct.toml", "[[rule]]\ncgroup='/a'\nsoft='50%'\nhard='2G'\n"
                                      "[[rule]]\ncgroup='/b'\nhrad='1G'\n");
    tell(SIGHUP);
    EXPECT_TRUE(says("umacct.toml:7:1: a rule has no 'hrad'")) << last_;
    EXPECT_EQ(last_.find("umacct.toml:5"), std::string::npos) << "it is one line";

    sandbox_.write("etc/umacct.toml", "[[rule]]\ncgroup='/a'\nsoft='50%'\nhard='2G'\n");
    tell(SIGHUP);
    EXPECT_TRUE(says("soft is above hard on this machine")) << last_;

    sandbox_.write("etc/umacct.toml", "");
    tell(SIGHUP);
    EXPECT_TRUE(says("it is empty, and was not")) << last_;

    std::filesystem::remove(sandbox_.root() / "etc/umacct.toml");
    tell(SIGHUP);
    EXPECT_TRUE(says("0 rules in force")) << last_;
}

} // namespace
} // namespace umacct
