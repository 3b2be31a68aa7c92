// SPDX-License-Identifier: GPL-2.0-or-later
/// A service's behaviour when its log and its threads fail.
#include <array>
#include <chrono>
#include <new>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "lib/host/file_descriptor.h"
#include "service/log.h"
#include "service/thread.h"

namespace umacct {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

TEST(Log, NobodyWaitsForWhoReadsIt) {
    constexpr int lines = 5000;
    std::array<int, 2> ends{};

    ASSERT_EQ(pipe(ends.data()), 0);
    const FileDescriptor reads(ends[0]);
    const FileDescriptor before(dup(STDERR_FILENO));
    {
        const LogThread log;

        // The pipe takes 64 KiB, and who writes more waits.
        ASSERT_GE(dup2(ends[1], STDERR_FILENO), 0);
        close(ends[1]);
        const auto begin = Clock::now();
        for (int i = 0; i < lines; ++i)
            log_line(Level::info, std::string(200, 'x'));
        log_event(Level::info, "an event", "0123456789abcdef0123456789abcdef", Json{{"a", 1}});
        EXPECT_LT(Clock::now() - begin, 5s);

        // Once it is read, the log says what is missing.
        std::string text;
        std::array<char, 4096> buffer{};
        while (text.find("lines were lost") == std::string::npos) {
            const ssize_t size = read(reads.get(), buffer.data(), buffer.size());

            ASSERT_GT(size, 0);
            text.append(buffer.data(), static_cast<std::size_t>(size));
            if (text.size() > 100'000)
                text.erase(0, text.size() - 1000);
        }
        // The rest of them is nothing to see.
        const FileDescriptor nowhere(open("/dev/null", O_WRONLY));
        dup2(nowhere.get(), STDERR_FILENO);
    }
    dup2(before.get(), STDERR_FILENO);
}

TEST(Log, IsWrittenAtTheEnd) {
    std::array<int, 2> ends{};
    std::array<char, 4096> buffer{};

    ASSERT_EQ(pipe(ends.data()), 0);
    const FileDescriptor reads(ends[0]);
    const FileDescriptor before(dup(STDERR_FILENO));
    ASSERT_GE(dup2(ends[1], STDERR_FILENO), 0);
    close(ends[1]);
    {
        const LogThread log;

        log_line(Level::info, "the last words");
    }
    dup2(before.get(), STDERR_FILENO);
    const ssize_t size = read(reads.get(), buffer.data(), buffer.size());
    ASSERT_GT(size, 0);
    EXPECT_NE(std::string(buffer.data(), static_cast<std::size_t>(size)).find("the last words"),
              std::string::npos);
}

TEST(Thread, BeginsAnewWhateverItsWorkThrows) {
    int times = 0;

    keep_doing("test", [&times] {
        if (++times == 1)
            throw std::bad_alloc();
    });
    EXPECT_EQ(times, 2);
}

TEST(Thread, ThatIsAtOneThingForTooLongIsStuck) {
    Heartbeat heartbeat;

    EXPECT_FALSE(heartbeat.is_stuck(0s));
    heartbeat.begin();
    EXPECT_FALSE(heartbeat.is_stuck(1h));
    while (!heartbeat.is_stuck(1ms)) {
    }
    heartbeat.end();
    EXPECT_FALSE(heartbeat.is_stuck(0s));
}

} // namespace
} // namespace umacct
