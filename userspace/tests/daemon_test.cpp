// SPDX-License-Identifier: GPL-2.0-or-later
/// umacctd's loop, with a module that lives in the test.
#include "daemon/daemon.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <thread>

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "lib/host/file_descriptor.h"
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

    /// In a thread of its own, to which signals are sent.
    void start() {
        thread_ = std::thread([this] {
            Daemon(
                [this] {
                    ++connected_;
                    return fake_.connect();
                },
                sandbox_.proc(), sandbox_.root())
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

    /// It begins by connecting for the cgroups that there are, and then to listen.
    bool connects_anew() {
        return eventually([this] { return connected_ > 2; });
    }

    test::Sandbox sandbox_;
    test::FakeModule fake_;
    std::atomic<int> connected_ = 0; ///< how often
    std::thread thread_;
};

TEST_F(DaemonTest, ThatTheModuleWentIsHeardBehindWhatItToldBefore) {
    // As many as the module tells in two seconds.
    for (std::uint64_t i = 0; i < 100; ++i)
        fake_.to_receive.push_back({.events = {test::encode(Event{.sequence = i})}});
    start();
    EXPECT_TRUE(connects_anew());
}

TEST_F(DaemonTest, WhereEventsWereLostItIsAskedAnew) {
    fake_.to_receive = {{.overrun = true}, {.none = true}, {.none = true}, {.none = true},
                        {.none = true},    {.none = true}, {.none = true}, {.none = true},
                        {.none = true},    {.none = true}, {.none = true}, {.none = true}};
    start();
    EXPECT_TRUE(connects_anew());
}

TEST_F(DaemonTest, ItOutlivesAModuleThatGoesWhileANameIsAwaited) {
    const std::string id(64, 'a');

    sandbox_.write("etc/umacct.toml", "[[rule]]\ncontainer='llm'\nhard='1G'\n");
    sandbox_.add_cgroup("/machine.slice/libpod-" + id + ".scope");
    fake_.to_receive.resize(10000, {.none = true});
    fake_.on_change = [] { throw Error(Failure::missing, "the fake module goes"); };
    start();
    sandbox_.write("var/lib/containers/storage/overlay-containers/containers.json",
                   R"([{"id":")" + id + R"(","names":["llm"]}])");
    EXPECT_TRUE(connects_anew());
}

/// What systemd is told, and shows as the service's state.
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
        // It stays.
        fake_.to_receive.resize(10000, {.none = true});
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

TEST_F(ToldState, WhatBecameOfAReload) {
    start();
    EXPECT_TRUE(says("1 rule in force"));

    fake_.refuse_with = EINVAL;
    sandbox_.write("etc/umacct.toml", "[[rule]]\ncgroup='/a'\nhard='2G'\n");
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
    EXPECT_TRUE(says("0 rules in force")) << last_;
}

} // namespace
} // namespace umacct
