// SPDX-License-Identifier: GPL-2.0-or-later
/// umacctd's loop, with a module that lives in the test.
#include "daemon/daemon.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <functional>
#include <thread>

#include <gtest/gtest.h>
#include <pthread.h>

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
    EXPECT_TRUE(eventually([this] { return connected_ > 1; }));
}

TEST_F(DaemonTest, WhereEventsWereLostItIsAskedAnew) {
    fake_.to_receive = {{.overrun = true}, {.none = true}, {.none = true}, {.none = true},
                        {.none = true},    {.none = true}, {.none = true}, {.none = true},
                        {.none = true},    {.none = true}, {.none = true}, {.none = true}};
    start();
    EXPECT_TRUE(eventually([this] { return connected_ > 1; }));
}

} // namespace
} // namespace umacct
