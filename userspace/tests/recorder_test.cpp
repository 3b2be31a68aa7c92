// SPDX-License-Identifier: GPL-2.0-or-later
/// The recorder's samples, and that they need no further memory.
#include "daemon/recorder.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "lib/history/reader.h"
#include "lib/history/sampler.h"
#include "tests/fake_module.h"
#include "tests/history_story.h"
#include "tests/sandbox.h"

namespace umacct {
namespace {

using namespace std::chrono_literals;
using history::Figure;
using history::Holding;
using test::gib;
using test::mib;

class RecorderTest : public testing::Test {
protected:
    RecorderTest() {
        sandbox_.write("proc/meminfo", "MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 200 kB\n"
                                       "Buffers: 1 kB\nCached: 50 kB\nShmem: 5 kB\n"
                                       "SwapTotal: 10 kB\nSwapFree: 9 kB\n");
        sandbox_.write("proc/pressure/memory",
                       "some avg10=0.00 avg60=0.00 avg300=0.00 total=7000\n"
                       "full avg10=0.00 avg60=0.00 avg300=0.00 total=3000\n");
        sandbox_.write("proc/sys/kernel/random/boot_id", "one\n");
        fake_.status.memory_total = 128 * gib;
        fake_.status.memory_free = 90 * gib;
        fake_.status.memory_available = 100 * gib;
        fake_.status.available = 99 * gib;
        fake_.status.reserve = 4 * gib;
    }

    void add_account(const std::string &path, std::uint64_t usage) {
        fake_.accounts.push_back(
            {.id = sandbox_.add_cgroup(path), .path = path, .usage = usage, .memory_current = mib});
    }

    void add_cgroup(const std::string &path, std::uint64_t current, const std::string &stat = "") {
        sandbox_.add_cgroup(path);
        sandbox_.write(sandbox_.cgroup_mount() / path.substr(1) / "memory.current",
                       std::to_string(current) + "\n");
        sandbox_.write(sandbox_.cgroup_mount() / path.substr(1) / "memory.stat", stat);
    }

    const history::Sample &take() {
        sampler_.take(sample_);
        return sample_;
    }

    const history::Sample::Account *find(const std::string &path) const {
        for (std::size_t i = 0; i < sample_.count; ++i) {
            if (sample_.accounts[i].path == path)
                return &sample_.accounts[i];
        }
        return nullptr;
    }

    test::Sandbox sandbox_;
    test::FakeModule fake_;
    Connection connection_{[this] { return fake_.connect(); }};
    history::Sampler sampler_{connection_, sandbox_.proc(), sandbox_.root()};
    history::Sample sample_ = history::Sampler::with_room();
};

TEST_F(RecorderTest, TheMachinesFiguresAreTheModules) {
    const auto &machine = take().machine;

    EXPECT_EQ(machine[Figure::total], 128 * gib);
    EXPECT_EQ(machine[Figure::free], 90 * gib);
    EXPECT_EQ(machine[Figure::obtainable], 99 * gib);
    EXPECT_EQ(machine[Figure::reserve], 4 * gib);
    EXPECT_EQ(machine[Figure::shared], 5U << 10);
    EXPECT_EQ(machine[Figure::swap_free], 9U << 10);
    EXPECT_EQ(machine[Figure::some_us], 7000U);
    EXPECT_EQ(machine[Figure::full_us], 3000U);
}

TEST_F(RecorderTest, WithoutTheModuleItIsTheKernelsFigures) {
    fake_.fail_with = ENOENT;
    add_cgroup("/trainer", 2 * gib);
    EXPECT_EQ(take().machine[Figure::total], 1000U << 10);
    ASSERT_NE(find("/trainer"), nullptr);
    EXPECT_EQ(find("/trainer")->holdings[Holding::current], 2 * gib);
}

TEST_F(RecorderTest, AccountsAndCgroupsWithoutOneAreRecorded) {
    add_account("/vllm", 40 * gib);
    fake_.accounts.back().hard = 50 * gib;
    add_account("/idle", 0);
    fake_.accounts.back().memory_current = 0;
    add_account("/limited", 0);
    fake_.accounts.back().soft = gib;
    add_cgroup("/trainer", 2 * gib, "anon 5\nactive_file 1048576\ninactive_file 2097152\n");
    take();
    ASSERT_NE(find("/vllm"), nullptr);
    EXPECT_EQ(find("/vllm")->holdings[Holding::driver], 40 * gib);
    EXPECT_EQ(find("/vllm")->holdings[Holding::hard], 50 * gib);
    EXPECT_EQ(find("/vllm")->holdings[Holding::soft], UMACCT_UNLIMITED);
    EXPECT_EQ(find("/idle"), nullptr) << "it holds nothing";
    EXPECT_NE(find("/limited"), nullptr) << "it has a limit";
    ASSERT_NE(find("/trainer"), nullptr);
    EXPECT_EQ(find("/trainer")->holdings[Holding::cache], 3 * mib);
}

TEST_F(RecorderTest, SwapIsReadWhereSomeIsInUse) {
    add_account("/vllm", gib);
    add_cgroup("/leaker", 4096);
    sandbox_.write(sandbox_.cgroup_mount() / "leaker/memory.swap.current", "1073741824\n");
    take();
    ASSERT_NE(find("/leaker"), nullptr) << "it holds 4 KiB, and 1 GiB on swap";
    EXPECT_EQ(find("/leaker")->holdings[Holding::swap], gib);
    EXPECT_EQ(find("/vllm")->holdings[Holding::swap], 0U);
    sandbox_.write("proc/meminfo", "MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 200 kB\n"
                                   "SwapTotal: 10 kB\nSwapFree: 10 kB\n");
    take();
    EXPECT_EQ(find("/leaker"), nullptr) << "no swap is in use";
}

TEST_F(RecorderTest, OfManyThoseWithLimitsTheLargestAndTheGrowingAreTaken) {
    constexpr int many = 1000;

    for (int i = 0; i < many; ++i)
        fake_.accounts.push_back({.id = 10'000U + static_cast<std::uint64_t>(i),
                                  .path = "/many/" + std::to_string(i),
                                  .usage = (2000 + static_cast<std::uint64_t>(i)) * mib,
                                  .memory_current = 0});
    fake_.accounts[7].hard = 4 * gib;
    take();
    fake_.accounts[3].usage +=
        gib / 2; // grows from one of the smallest, and still is none of the largest
    take();
    EXPECT_EQ(sample_.count, history::Sampler::most_accounts);
    EXPECT_NE(find("/many/7"), nullptr);
    EXPECT_NE(find("/many/999"), nullptr);
    EXPECT_NE(find("/many/3"), nullptr);
    EXPECT_EQ(find("/many/4"), nullptr);
}

TEST_F(RecorderTest, OneWithALongPathIsRecordedByThatToo) {
    const std::string path =
        "/a/" + std::string(200, 'b') + '/' + std::string(200, 'c') + '/' + std::string(200, 'd');

    add_account(path, 3 * gib);
    fake_.accounts.back().memory_current = gib;
    take();
    ASSERT_NE(find(path), nullptr);
    EXPECT_EQ(find(path)->holdings[Holding::driver], 3 * gib);
    // The path of an account that vanishes between the list and the question is not known.
    fake_.accounts.back().id += 1'000'000;
    fake_.on_account = [this] { fake_.accounts.clear(); };
    take();
    EXPECT_EQ(find(path), nullptr);
}

TEST_F(RecorderTest, LookingTakesNoNewMemory) {
    rusage before{};
    rusage after{};

    for (int i = 0; i < 50; ++i)
        add_account("/a" + std::to_string(i), gib);
    for (int i = 0; i < 5; ++i)
        take();
    getrusage(RUSAGE_THREAD, &before);
    for (int i = 0; i < 200; ++i)
        take();
    getrusage(RUSAGE_THREAD, &after);
    // A page that is touched for the first time is a fault; a few are the C library's.
    EXPECT_LE(after.ru_minflt - before.ru_minflt, 20);
}

/// The whole of it, with its threads and a real clock.
class RunningTest : public RecorderTest {
protected:
    static bool eventually(const std::function<bool()> &is_so) {
        for (const auto until = std::chrono::steady_clock::now() + 15s; !is_so();) {
            if (std::chrono::steady_clock::now() >= until)
                return false;
            std::this_thread::sleep_for(50ms);
        }
        return true;
    }

    std::size_t samples() {
        try {
            history::Reader reader(sandbox_.root());
            std::size_t count = 0;

            for (const history::Boot &boot : reader.boots())
                reader.for_each(boot, {}, [&](const history::Moment & /*moment*/) { ++count; });
            return count;
        } catch (const Error &) {
            return 0;
        }
    }

    void make_folder() { std::filesystem::create_directories(sandbox_.root() / history::folder); }

    std::vector<std::string> lines_;
    std::mutex mutex_;
    Recorder recorder_{[this] { return fake_.connect(); }, sandbox_.proc(), sandbox_.root(),
                       [this](const std::string &line, bool /*failed*/) {
                           const std::lock_guard lock(mutex_);

                           lines_.push_back(line);
                       },
                       [](const Json & /*event*/, const std::string & /*line*/) {}};
};

TEST_F(RunningTest, ItRecordsWhatHappensAndThatItEnded) {
    make_folder();
    add_account("/vllm", 40 * gib);
    fake_.to_receive = {{.events = {test::encode(Event{
                             .type = UMACCT_EVENT_HARD_REFUSED,
                             .time_ns = 5'000'000'000,
                             .path = "/vllm",
                         })}}};
    fake_.to_receive.resize(100, {.none = true});
    {
        Recorder recorder([this] { return fake_.connect(); }, sandbox_.proc(), sandbox_.root(),
                          [](const std::string & /*line*/, bool /*failed*/) {},
                          [](const Json & /*event*/, const std::string & /*line*/) {});

        recorder.start();
        recorder.add_step("/vllm", "freeze /vllm", false);
        EXPECT_TRUE(eventually([&] { return samples() >= 2; }));
        recorder.stop();
    }
    history::Reader reader(sandbox_.root());
    const auto boots = reader.boots();
    ASSERT_EQ(boots.size(), 1U);
    EXPECT_EQ(boots[0].boot_id, "one");
    EXPECT_TRUE(boots[0].ended_ms);
    const auto events = reader.happenings(boots[0], {});
    ASSERT_EQ(events.size(), 2U);
    EXPECT_EQ(events[0].type == "guard" ? events[1].type : events[0].type, "hard_refused");
    EXPECT_EQ(events[0].text + events[1].text, "freeze /vllm");
}

TEST_F(RunningTest, AStepThatNoLongerFitsIsRecordedAndTold) {
    std::vector<std::string> told;

    make_folder();
    add_account("/vllm", 60 * gib);
    sandbox_.write(history::steps_file, R"({"floor_bytes":0,"accounts":[{"path":"/vllm","steps":)"
                                        R"([{"seconds":10,"bytes":)" +
                                            std::to_string(12 * gib) + R"(,"time_ms":1}]}]})");
    fake_.status.available = 14 * gib; // 4 of which are the reserve
    {
        Recorder recorder([this] { return fake_.connect(); }, sandbox_.proc(), sandbox_.root(),
                          [](const std::string & /*line*/, bool /*failed*/) {},
                          [](const Json & /*event*/, const std::string & /*line*/) {}, {},
                          [&](const Json &event, const std::string &line) {
                              const std::lock_guard lock(mutex_);

                              told.push_back(line);
                              EXPECT_EQ(event.at("size_bytes"), 12 * gib);
                              EXPECT_EQ(event.at("left_bytes"), 6 * gib);
                          });

        recorder.set_floor(4 * gib);
        recorder.start();
        EXPECT_TRUE(eventually([&] { return samples() >= 3; }));
        recorder.stop();
    }
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0],
              "/vllm grew by 12.00 GiB within 10 s before; 6.00 GiB is available above the "
              "reserve and the guard's floor");
    history::Reader reader(sandbox_.root());
    const auto events = reader.happenings(reader.boots().at(0), {});
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].type, "step_ahead");
    EXPECT_EQ(events[0].path, "/vllm");
    EXPECT_EQ(history::KnownSteps::read(sandbox_.root()).floor, 4 * gib) << "for other programs";
}

TEST_F(RunningTest, AFailureIsRecordedAndToldWithWhoHoldsMost) {
    std::vector<std::string> told;

    make_folder();
    add_account("/asks", 30 * gib);
    add_account("/less", 10 * gib);
    add_account("/most", 40 * gib);
    for (Account &account : fake_.accounts)
        account.local = account.usage;
    fake_.to_receive = {{.events = {test::encode(Event{.type = UMACCT_EVENT_FAILED,
                                                       .time_ns = 5'000'000'000,
                                                       .account_id = fake_.accounts[0].id,
                                                       .path = "/asks",
                                                       .pid = 7,
                                                       .comm = "python3",
                                                       .size = gib,
                                                       .usage = mib})}}};
    fake_.to_receive.resize(100, {.none = true});
    {
        Recorder recorder([this] { return fake_.connect(); }, sandbox_.proc(), sandbox_.root(),
                          [](const std::string & /*line*/, bool /*failed*/) {},
                          [&](const Json & /*event*/, const std::string &line) {
                              const std::lock_guard lock(mutex_);

                              told.push_back(line);
                          });

        recorder.start();
        EXPECT_TRUE(eventually([&] { return samples() >= 2; }));
        recorder.stop();
    }
    history::Reader reader(sandbox_.root());
    const auto events = reader.happenings(reader.boots().back(), {}, 10, "failed");
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].limit_path, "/most");
    EXPECT_EQ(events[0].limit, 40 * gib);
    EXPECT_TRUE(reader.happenings(reader.boots().back(), {}, 10, "guard").empty());
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0], "/asks: pid 7 (python3): the driver had no memory for 1.00 GiB: 1.00 MiB "
                       "available; /most holds 40.00 GiB");
}

TEST_F(RunningTest, WhatTheKernelKilledIsRecordedWithWhoHeldMost) {
    const auto log = [&](const std::string &text) {
        std::ofstream(sandbox_.root() / "dev/kmsg", std::ios::app) << text;
    };
    const auto killed = [&](const char *type) {
        return history::Reader(sandbox_.root())
            .happenings(history::Reader(sandbox_.root()).boots().back(), {}, 10, type);
    };

    make_folder();
    sandbox_.write("dev/kmsg", "4,1,1000000,-;oom-kill:constraint=CONSTRAINT_NONE,global_oom,"
                               "task_memcg=/earlier,task=a,pid=1,uid=0\n");
    add_account("/most", 40 * gib);
    fake_.accounts.back().local = 40 * gib;
    fake_.to_receive.resize(10'000, {.none = true});
    recorder_.start();
    EXPECT_TRUE(eventually([&] { return samples() >= 1; }));
    log("4,2,2000000,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=0,2,cpuset=/,mems_allowed=0,"
        "global_oom,task_memcg=/b,task_memcg=/a,task=x,pid=5,task=python3,pid=7,uid=0\n"
        " SUBSYSTEM=memory\n6,3,2000001,-;something else\n"
        "4,4,2000002,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,"
        "mems_allowed=0,oom_memcg=/c,task_memcg=/c/d,task=sh,pid=8,uid=0\n"
        "3,5,2000003,-;NVRM: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051)\n");
    EXPECT_TRUE(eventually([&] { return killed("killed_at_limit").size() == 1; }));
    recorder_.stop();
    const auto all = killed("killed");
    ASSERT_EQ(all.size(), 1U) << "what was there before is another's";
    EXPECT_EQ(all[0].path, "/a,task=x,pid=5") << "a tenant names its cgroups";
    EXPECT_EQ(all[0].comm, "python3");
    EXPECT_EQ(all[0].pid, 7U);
    EXPECT_EQ(all[0].limit_path, "/most");
    EXPECT_EQ(all[0].limit, 40 * gib);
    EXPECT_EQ(killed("killed_at_limit")[0].limit_path, "/c");
    EXPECT_EQ(killed("killed_at_limit")[0].path, "/c/d");
    std::uint64_t complaints = 0;
    history::Reader reader(sandbox_.root());
    reader.for_each(reader.boots().back(), {}, [&](const history::Moment &moment) {
        complaints = moment.state.machine[Figure::complaints];
    });
    EXPECT_EQ(complaints, 1U) << "the driver's line is counted";
}

TEST_F(RunningTest, AFloodOfFailuresAsksOnceWhoHoldsMost) {
    make_folder();
    add_account("/asks", 90 * gib);
    add_account("/most", 40 * gib);
    for (Account &account : fake_.accounts)
        account.local = account.usage;
    // The module sends each by itself.
    fake_.to_receive.resize(100, {.events = {test::encode(Event{.type = UMACCT_EVENT_FAILED,
                                                                .account_id = fake_.accounts[0].id,
                                                                .path = "/asks",
                                                                .size = gib,
                                                                .usage = mib})}});
    fake_.to_receive.resize(10'000, {.none = true});
    recorder_.start();
    EXPECT_TRUE(eventually([&] { return samples() >= 2; }));
    EXPECT_LT(fake_.dumps, 50) << "with those of the samples";
    recorder_.stop();
}

TEST(FailureLogTest, AFloodIsALineEachTenSecondsWithACount) {
    std::vector<std::uint64_t> counts;
    const FailureLog::Clock::time_point start{1h};
    FailureLog log([&](const Json &event, const std::string & /*line*/) {
        counts.push_back(event.at("count").get<std::uint64_t>());
    });

    for (int second = 0; second < 25; ++second) {
        log.take({.type = UMACCT_EVENT_FAILED, .path = "/a", .count = 3}, {}, start + second * 1s);
        log.look(start + second * 1s);
    }
    EXPECT_EQ(counts, (std::vector<std::uint64_t>{3, 30, 30}));
    log.look(start + 29s);
    EXPECT_EQ(counts.size(), 3U);
    log.look(start + 30s);
    EXPECT_EQ(counts.back(), 12U); // counted since the last line
    log.look(start + 60s);
    EXPECT_EQ(counts.size(), 4U);
}

TEST(FailureLogTest, ItKeepsNoMoreThanItMay) {
    std::size_t lines = 0;
    const FailureLog::Clock::time_point start{1h};
    FailureLog log([&](const Json & /*event*/, const std::string & /*line*/) { ++lines; });
    const auto flood = [&](FailureLog::Clock::time_point now) {
        for (int i = 0; i < 1000; ++i)
            log.take({.type = UMACCT_EVENT_FAILED, .path = "/" + std::to_string(i)}, {}, now);
    };

    flood(start);
    EXPECT_EQ(lines, FailureLog::most);
    log.look(start + 11s); // nothing came since: there is room again
    log.take({.type = UMACCT_EVENT_FAILED, .path = "/another"}, {}, start + 12s);
    EXPECT_EQ(lines, FailureLog::most + 1);
}

TEST(FailureLogTest, ATenantOfManyCgroupsHidesNobodyElse) {
    std::vector<std::string> told;
    const FailureLog::Clock::time_point start{1h};
    FailureLog log([&](const Json &event, const std::string & /*line*/) {
        told.push_back(event.at("path").get<std::string>());
    });
    const auto fail = [&](const std::string &path) {
        log.take({.type = UMACCT_EVENT_FAILED, .path = path}, {}, start);
    };

    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < 100; ++i)
            fail("/user.slice/user-1000.slice/user@1000.service/x" + std::to_string(i));
        fail("/system.slice/vllm.service");
        fail("/user.slice/user-1001.slice/session-1.scope");
    }
    EXPECT_EQ(std::ranges::count(told, "/system.slice/vllm.service"), 1);
    EXPECT_EQ(std::ranges::count(told, "/user.slice/user-1001.slice/session-1.scope"), 1);
    EXPECT_EQ(told.size(), FailureLog::most + 2) << "who was pushed out doesn't push back";
}

TEST_F(RunningTest, WhatTheDiskIsTooSlowForWaitsAndIsWritten) {
    const Sqlite lib(history::without_sqlite);
    std::vector<std::int64_t> times;

    make_folder();
    recorder_.start();
    ASSERT_TRUE(eventually([&] { return samples() >= 1; }));
    {
        Database other(lib, sandbox_.root() / history::folder / history::file_name,
                       Database::Mode::write);

        other.run("BEGIN IMMEDIATE");
        recorder_.add_step("/a", "meanwhile", false);
        std::this_thread::sleep_for(4s);
    }
    const std::size_t before = samples();
    EXPECT_TRUE(eventually([&] { return samples() >= before + 4; }));
    history::Reader reader(sandbox_.root());
    reader.for_each(reader.boots().back(), {}, [&](const history::Moment &moment) {
        times.push_back(moment.time_ms);
        EXPECT_EQ(moment.state.machine[Figure::dropped], 0U);
    });
    for (std::size_t i = 1; i < times.size(); ++i)
        EXPECT_LT(times[i] - times[i - 1], 3900) << i; // it was locked for 4 s
    EXPECT_EQ(reader.happenings(reader.boots().back(), {}).size(), 1U);
}

TEST_F(RunningTest, WithoutItsFolderItSaysThatItDoesNotRecord) {
    recorder_.start();
    ASSERT_EQ(lines_.size(), 1U);
    EXPECT_NE(lines_[0].find("not recorded"), std::string::npos);
}

} // namespace
} // namespace umacct
