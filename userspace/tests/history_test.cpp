// SPDX-License-Identifier: GPL-2.0-or-later
/// The history: its samples, how long they are kept, and its answers.
#include "lib/history/analysis.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <random>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/history/layout.h"
#include "lib/history/reader.h"
#include "lib/history/steps.h"
#include "tests/history_story.h"

namespace umacct::history {
namespace {

using test::gib;
using test::mib;
using test::Story;

/// 2026-11-25 03:00 UTC
constexpr std::int64_t three = 1'795'575'600'000;

TEST(Difference, GivesBackEveryNumber) {
    std::mt19937_64 random(1); // NOLINT(cert-msc32-c,cert-msc51-cpp): the same each time
    State before;
    State read;

    for (int i = 0; i < 500; ++i) {
        State now = before;

        now.clock_ms += static_cast<std::int64_t>(random() % 3) - 1;
        now.machine[Figure(random() % Figures::size())] = random() >> (random() % 64);
        now.accounts.erase(static_cast<std::uint32_t>(random() % 8));
        Holdings &holdings = now.accounts[static_cast<std::uint32_t>(random() % 8)];
        holdings[Holding(random() % Holdings::size())] += random() % 2 == 0 ? 4096 : random();
        holdings[Holding::hard] = random() % 2 == 0 ? UMACCT_UNLIMITED : holdings[Holding::hard];
        holdings[Holding::soft] -= 1;
        add_difference(read, difference(before, now));
        ASSERT_EQ(read, now) << i;
        before = now;
    }
}

TEST(Difference, OfNothingIsAFewBytes) {
    State state;

    state.accounts[7][Holding::driver] = gib;
    EXPECT_LE(difference(state, state).size(), 3U);
}

TEST(Difference, RefusesWhatIsNone) {
    State state;

    EXPECT_THROW(add_difference(state, ""), Error);
    EXPECT_THROW(add_difference(state, std::string(1, '\xff')), Error);
}

class HistoryTest : public testing::Test {
protected:
    HistoryTest() {
        setenv("TZ", "UTC", 1);
        tzset();
    }

    Reader reader() const { return Reader(sandbox_.root()); }

    Boot last_boot() const { return reader().boots().back(); }

    std::string told_of_end() const {
        Reader reader = this->reader();

        return paragraph(analyse_end(reader, reader.boots().back(), "another"));
    }

    /// Whether the paragraph has it.
    testing::AssertionResult says(const std::string &words) const {
        const std::string text = told_of_end();

        if (text.find(words) != std::string::npos)
            return testing::AssertionSuccess();
        return testing::AssertionFailure() << "not '" << words << "' in: " << text;
    }

    test::Sandbox sandbox_;
};

TEST_F(HistoryTest, WhatWasWrittenIsReadSecondBySecond) {
    Story story(sandbox_, "one", three);
    Holdings &vllm = story.account("/vllm");
    std::vector<std::uint64_t> values;

    // More than one whole sample's way, so that it begins anew in between.
    story.pass(150, [&] { vllm[Holding::driver] += 4097; });
    Reader reader = this->reader();
    reader.for_each(reader.boots().front(), {}, [&](const Moment &moment) {
        EXPECT_EQ(moment.time_ms, three + 1000 * static_cast<std::int64_t>(values.size() + 1));
        values.push_back(moment.state.accounts.begin()->second[Holding::driver]);
    });
    ASSERT_EQ(values.size(), 150U);
    for (std::size_t i = 0; i < values.size(); ++i)
        EXPECT_EQ(values[i], 4097 * (i + 1));

    const auto at = reader.at(reader.boots().front(), three + 77'500);
    ASSERT_TRUE(at);
    EXPECT_EQ(at->time_ms, three + 77'000);
    EXPECT_EQ(at->state.accounts.begin()->second[Holding::driver], 4097U * 77);
}

TEST_F(HistoryTest, AnAccountThatIsGoneIsGone) {
    Story story(sandbox_, "one", three);

    story.account("/a")[Holding::driver] = gib;
    story.pass(5);
    story.sample.count = 0;
    story.pass(1);
    Reader reader = this->reader();
    EXPECT_TRUE(reader.at(reader.boots().front(), INT64_MAX)->state.accounts.empty());
}

TEST_F(HistoryTest, WhatIsOldIsThereAtEverCoarserResolution) {
    Bounds bounds;

    bounds.rows = {120, 120, 120, 120};
    Story story(sandbox_, "one", three, bounds);
    story.pass(3 * 3600);
    std::map<std::int64_t, int> samples;
    std::int64_t last = 0;
    Reader reader = this->reader();
    reader.for_each(reader.boots().front(), {}, [&](const Moment &moment) {
        ++samples[moment.interval_ms];
        EXPECT_GT(moment.time_ms, last);
        EXPECT_LE(moment.time_ms - last, last == 0 ? INT64_MAX : moment.interval_ms * 10);
        last = moment.time_ms;
    });
    // A segment of 60 more at the most, until it is forgotten.
    EXPECT_GE(samples[1000], 60);
    EXPECT_LE(samples[1000], 180);
    EXPECT_GE(samples[10'000], 60);
    EXPECT_LE(samples[10'000], 180);
    EXPECT_GE(samples[60'000], 100);
    EXPECT_EQ(last, three + 3L * 3600 * 1000);
    EXPECT_LE(reader.boots().front().first_ms, three + 600'000) << "nothing is lost altogether";
}

TEST_F(HistoryTest, TheFileStaysWithinItsBound) {
    constexpr std::int64_t most = 6LL << 20;
    Bounds bounds;
    std::mt19937_64 random(1); // NOLINT(cert-msc32-c,cert-msc51-cpp): the same each time

    bounds.bytes = most;
    Story story(sandbox_, "one", three, bounds);
    for (int i = 0; i < 150; ++i)
        story.account("/a/cgroup/with/quite/a/name/" + std::to_string(i));
    std::uintmax_t biggest = 0;
    for (int minute = 0; minute < 30; ++minute) {
        story.pass(60, [&] {
            for (std::size_t i = 0; i < story.sample.count; ++i)
                story.sample.accounts[i].holdings[Holding::driver] = random();
        });
        std::uintmax_t bytes = std::filesystem::file_size(story.file());
        bytes += std::filesystem::file_size(story.file().string() + "-wal");
        biggest = std::max(biggest, bytes);
    }
    EXPECT_LE(biggest, static_cast<std::uintmax_t>(most));
    EXPECT_GE(biggest, static_cast<std::uintmax_t>(most / 4)) << "the bound was not reached";
    EXPECT_TRUE(story.told.empty());
    EXPECT_EQ(last_boot().last_ms, three + 1'800'000) << "the newest are kept";
}

TEST_F(HistoryTest, AnHourOfFiftyAccountsIsLessThanAMegabyte) {
    std::mt19937_64 random(1); // NOLINT(cert-msc32-c,cert-msc51-cpp): the same each time
    Story story(sandbox_, "one", three);

    // Three that load and unload, ten whose services work, the others idle.
    for (int i = 0; i < 50; ++i)
        story.account("/system.slice/service-" + std::to_string(i))[Holding::current] = 50 * mib;
    const auto hour = [&] {
        story.pass(3600, [&] {
            for (std::size_t i = 0; i < 50; ++i) {
                Holdings &account = story.sample.accounts[i].holdings;

                if (i < 3)
                    account[Holding::driver] = random() % 1000 * 2 * mib;
                if (i < 13)
                    account[Holding::current] = 100 * mib + random() % 4096 * 4096;
                else
                    account[Holding::current] = 50 * mib + random() % 8 * 4096;
            }
            story.set_available(90 * gib + random() % 100'000 * 4096);
            story.sample.machine[Figure::cached] += random() % 100 * 4096;
            story.sample.machine[Figure::some_us] += random() % 1000;
        });
        return std::filesystem::file_size(story.file());
    };
    const auto first = hour();
    const auto second = hour();
    RecordProperty("bytes_per_hour", static_cast<int>(second - first));
    EXPECT_LT(second - first, 1'000'000U);
}

TEST_F(HistoryTest, NobodyElseMayReadIt) {
    Story story(sandbox_, "one", three);

    story.pass(1);
    for (const char *suffix : {"", "-wal", "-shm"})
        EXPECT_EQ(std::filesystem::status(story.file().string() + suffix).permissions() &
                      (std::filesystem::perms::group_all | std::filesystem::perms::others_all),
                  std::filesystem::perms::none)
            << suffix;
}

/// Reads in a child that may read everything and write nothing: the folder is closed to a user, and
/// root becomes another user.
void expect_readable(const std::filesystem::path &root, std::int64_t last_ms) {
    const std::filesystem::path file = root / folder / file_name;

    for (const char *suffix : {"", "-wal", "-shm"}) {
        if (std::filesystem::exists(file.string() + suffix))
            std::filesystem::permissions(file.string() + suffix, std::filesystem::perms(0444));
    }
    std::filesystem::permissions(file.parent_path(), std::filesystem::perms(0555));
    EXPECT_EXIT(
        {
            if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0)
                std::exit(2);
            try {
                std::exit(Reader(root).boots().back().last_ms == last_ms ? 0 : 1);
            } catch (const Error &error) {
                std::cerr << error.what() << '\n';
                std::exit(3);
            }
        },
        testing::ExitedWithCode(0), "");
    std::filesystem::permissions(file.parent_path(), std::filesystem::perms(0755));
}

TEST_F(HistoryTest, WhoMayWriteNothingReadsItWhileItIsWritten) {
    Story story(sandbox_, "one", three);

    story.pass(5);
    story.pass(5);
    expect_readable(sandbox_.root(), three + 10'000);
}

TEST_F(HistoryTest, WhoMayWriteNothingReadsItWhenNobodyWrites) {
    { Story(sandbox_, "one", three).pass(5); }
    expect_readable(sandbox_.root(), three + 5000);
}

TEST_F(HistoryTest, ADamagedFileIsSetAsideAndTheRecordingGoesOn) {
    { Story(sandbox_, "one", three).pass(100); }
    const auto file = sandbox_.root() / folder / file_name;
    {
        std::fstream damage(file, std::ios::in | std::ios::out | std::ios::binary);
        const std::string garbage(3UL * 4096, 'x');

        damage.seekp(4096);
        damage.write(garbage.data(), static_cast<std::streamsize>(garbage.size()));
    }
    Story story(sandbox_, "two", three + 1'000'000);
    story.pass(3);
    ASSERT_EQ(story.told.size(), 1U);
    EXPECT_NE(story.told[0].find("history.db is set aside as"), std::string::npos) << story.told[0];
    EXPECT_TRUE(std::filesystem::exists(file.string() + ".damaged"));
    EXPECT_EQ(last_boot().boot_id, "two");
    EXPECT_EQ(reader().boots().size(), 1U);
}

TEST_F(HistoryTest, AFileThatIsNoneIsSetAside) {
    sandbox_.write("var/lib/umacctd/history.db", std::string(10'000, 'x'));
    Story story(sandbox_, "one", three);
    story.pass(1);
    EXPECT_EQ(story.told.size(), 1U);
    EXPECT_EQ(last_boot().boot_id, "one");
}

TEST_F(HistoryTest, WhatWasCommittedIsThereThoughNobodyClosedTheFile) {
    Story story(sandbox_, "one", three);
    test::Sandbox after_the_cut;

    story.pass(90);
    // The disk's state at a power cut: the file, and the log beside it.
    std::filesystem::create_directories(after_the_cut.root() / folder);
    for (const char *suffix : {"", "-wal"})
        std::filesystem::copy_file(story.file().string() + suffix,
                                   after_the_cut.root() / folder /
                                       (std::string(file_name) + suffix));
    Story next(after_the_cut, "two", three + 1'000'000);
    next.pass(1);
    EXPECT_TRUE(next.told.empty());
    Reader reader(after_the_cut.root());
    ASSERT_EQ(reader.boots().size(), 2U);
    EXPECT_EQ(reader.boots()[0].last_ms, three + 90'000);
    EXPECT_FALSE(reader.boots()[0].ended_ms);
}

TEST_F(HistoryTest, AnotherUmacctdOfTheSameStartGoesOnWithItsAccounts) {
    {
        Story story(sandbox_, "one", three);

        story.account("/a")[Holding::driver] = gib;
        story.pass(10);
        story.writer().end();
    }
    Story story(sandbox_, "one", three);
    story.sample.uptime_ms = 20'000;
    story.account("/a")[Holding::driver] = gib;
    story.pass(10);
    EXPECT_EQ(reader().accounts(last_boot()).size(), 1U);
    EXPECT_EQ(reader().boots().size(), 1U);
    EXPECT_FALSE(last_boot().ended_ms);
    EXPECT_TRUE(reader().happenings(last_boot(), {}).empty()) << "no limit changed";
}

TEST_F(HistoryTest, ALimitThatIsChangedIsAnEvent) {
    Story story(sandbox_, "one", three);
    Holdings &a = story.account("/a");

    story.pass(2);
    a[Holding::hard] = 40 * gib;
    story.pass(2);
    story.sample.machine[Figure::reserve] = 4 * gib;
    story.pass(2);
    const auto events = reader().happenings(last_boot(), {});
    ASSERT_EQ(events.size(), 2U);
    EXPECT_EQ(events[0].path, "/a");
    EXPECT_EQ(events[0].text, "hard limit: max -> 40.00 GiB");
    EXPECT_EQ(events[0].time_ms, three + 3000);
    EXPECT_EQ(events[1].text, "reserve: 0 B -> 4.00 GiB");
}

TEST_F(HistoryTest, EventsAreKeptAndOnlySoMany) {
    Bounds bounds;

    bounds.events = 50;
    Story story(sandbox_, "one", three, bounds);
    story.pass(200, [&] {
        story.happenings.push_back(
            {.time_ms = story.sample.time_ms, .type = "hard_refused", .path = "/a"});
    });
    const auto events = reader().happenings(last_boot(), {});
    EXPECT_GE(events.size(), 50U);
    EXPECT_LE(events.size(), 110U);
    EXPECT_EQ(events.back().time_ms, three + 199'000);
}

TEST_F(HistoryTest, ATenantsFloodLeavesStepsOfTheGuardAndNamesOfOthers) {
    Bounds bounds;

    bounds.events = 50;
    Story story(sandbox_, "one", three, bounds);
    story.happenings.push_back(
        {.time_ms = three, .type = "guard", .path = "/victim", .text = "freeze /victim"});
    story.account("/victim")[Holding::driver] = gib;
    story.account("/flood")[Holding::driver] = gib;
    story.pass(300, [&] {
        auto &flood = story.sample.accounts[1];

        flood.path = "/flood/" + std::to_string(++flood.id);
        for (int i = 0; i < 3; ++i)
            story.happenings.push_back(
                {.time_ms = story.sample.time_ms, .type = "hard_refused", .path = "/flood"});
    });
    const auto events = reader().happenings(last_boot(), {});
    EXPECT_EQ(events.front().text, "freeze /victim");
    EXPECT_LE(events.size(), 2U * 300);
    std::set<std::string> names;
    for (const auto &[key, named] : reader().accounts(last_boot()))
        names.insert(named.path);
    EXPECT_TRUE(names.contains("/victim"));
    EXPECT_LE(names.size(), 200U) << "not all of those that came and went";
}

TEST_F(HistoryTest, NamesOfContainersAreAskedForALittleLater) {
    Story story(sandbox_, "one", three);
    int asked = 0;
    const auto name = [&](const std::string & /*path*/) -> std::string {
        return ++asked == 2 ? "docker vllm" : "";
    };

    story.account("/docker-1.scope");
    for (int i = 0; i < 30; ++i) {
        story.pass(1);
        story.writer().name_accounts(name);
    }
    EXPECT_EQ(asked, 2);
    EXPECT_EQ(reader().accounts(last_boot()).begin()->second.name(), "docker vllm");
}

// --- how it ended ------------------------------------------------------------------

/// A machine that is well for ten minutes, with a server that holds 20 GiB.
class EndTest : public HistoryTest {
protected:
    EndTest() {
        story_.account("/system.slice")[Holding::driver] = 20 * gib;
        story_.account("/system.slice/ollama.service")[Holding::driver] = 20 * gib;
        story_.sample.machine[Figure::usage] = 20 * gib;
        story_.pass(600);
    }

    void take_from_available(std::uint64_t bytes) {
        const std::uint64_t left = story_.sample.machine[Figure::available];

        story_.set_available(left - std::min(left, bytes));
    }

    void stall() {
        // Nine tenths of each second.
        story_.sample.machine[Figure::full_us] += 900'000;
    }

    Story story_{sandbox_, "one", three};
};

TEST_F(EndTest, ALeakThroughTheDriver) {
    Holdings &vllm = story_.account("/vllm");

    // 100 GiB at 128 MiB/s are gone after 800 s.
    story_.pass(790, [&] {
        vllm[Holding::driver] += 128 * mib;
        story_.sample.machine[Figure::usage] += 128 * mib;
        take_from_available(128 * mib);
        if (obtainable(story_.sample.machine) < 3 * gib)
            stall();
    });
    EXPECT_TRUE(says("The recording ends at 2026-11-25 03:23:10 without an orderly stop"));
    EXPECT_TRUE(says("/vllm took 98.75 GiB through the driver within 12 min, little by little"));
    EXPECT_TRUE(says("100.00 GiB of 128.00 GiB was available at 03:10:00, and 1.25 GiB"));
    EXPECT_TRUE(says("all tasks waited for memory 90 %"));
    EXPECT_TRUE(says("umacct did nothing; the reserve was off"));
    // Tasks began to wait with 3 GiB left; less than 4 were left from the 769th second on.
    EXPECT_TRUE(says("A reserve of 4.00 GiB would have refused /vllm at 03:22:49"));
    EXPECT_TRUE(says("before it took 2.75 GiB more; set it with `umacct reserve 4G`"));
}

TEST_F(EndTest, ASuddenLoad) {
    Holdings &vllm = story_.account("/vllm");

    story_.pass(12, [&] {
        vllm[Holding::driver] += 8 * gib;
        story_.sample.machine[Figure::usage] += 8 * gib;
        take_from_available(8 * gib);
    });
    story_.pass(20, [&] { stall(); });
    EXPECT_TRUE(says("/vllm took 96.00 GiB through the driver within 12 s, a sudden load"));
    EXPECT_TRUE(says("would have refused /vllm at 03:10:12"));
}

TEST_F(EndTest, ALeakOfPrograms) {
    Holdings &trainer = story_.account("/trainer");

    story_.pass(395, [&] {
        trainer[Holding::current] += 256 * mib;
        take_from_available(256 * mib);
        if (obtainable(story_.sample.machine) < 2 * gib)
            stall();
    });
    EXPECT_TRUE(says("Programs in /trainer took 98.75 GiB within 6 min, not through the driver"));
    EXPECT_TRUE(says("No limit of umacct's would have"));
    EXPECT_TRUE(says("A limit of the kernel's of 96.00 GiB"));
    EXPECT_TRUE(says("would have stopped /trainer at 03:16:25"));
}

TEST_F(EndTest, PageCacheBesideALockedDriver) {
    Holdings &ollama = story_.account("/system.slice/ollama.service");
    Holdings &backup = story_.account("/backup");

    // It is all the driver's but for 20 GiB, which it has had for long.
    ollama[Holding::driver] = 100 * gib;
    story_.account("/system.slice")[Holding::driver] = 100 * gib;
    story_.sample.machine[Figure::usage] = 100 * gib;
    story_.set_available(20 * gib);
    story_.pass(600);
    story_.pass(195, [&] {
        backup[Holding::current] += 100 * mib;
        backup[Holding::cache] += 100 * mib;
        story_.sample.machine[Figure::cached] += 100 * mib;
        story_.sample.machine[Figure::free] -= 100 * mib;
        if (story_.sample.machine[Figure::free] < 2 * gib)
            stall();
    });
    EXPECT_TRUE(says("The page cache grew by 19.04 GiB"));
    EXPECT_TRUE(says("19.04 GiB of it read or written by /backup"));
    EXPECT_TRUE(says("while the driver held 100.00 GiB that the kernel cannot take back"));
    EXPECT_TRUE(says("`umacct headroom 4G` would have given page cache back from 03:22:44 on"));
}

TEST_F(EndTest, WhereMemoryWasNotShortItIsNotBlamed) {
    story_.pass(60);
    EXPECT_TRUE(says("Memory was not short"));
    EXPECT_TRUE(says("The data do not show what ended it"));
    EXPECT_FALSE(says("would have"));
}

TEST_F(EndTest, WhereNobodyTookItNobodyIsBlamed) {
    story_.pass(100, [&] { take_from_available(gib); });
    EXPECT_TRUE(says("Memory ran short, and no account took what is gone"));
    EXPECT_TRUE(says("The data do not show what would have prevented it"));
}

TEST_F(EndTest, AReserveThatWasInForceIsNotAdvised) {
    Holdings &vllm = story_.account("/vllm");

    story_.sample.machine[Figure::reserve] = 8 * gib;
    story_.pass(99, [&] {
        vllm[Holding::driver] += gib;
        take_from_available(gib);
    });
    EXPECT_TRUE(says("a reserve of 8.00 GiB was in force"));
    EXPECT_FALSE(says("umacct reserve"));
}

TEST_F(EndTest, WhatUmacctDidIsSaid) {
    Holdings &vllm = story_.account("/vllm");

    story_.pass(99, [&] {
        vllm[Holding::driver] += gib;
        take_from_available(gib);
    });
    story_.happenings = {
        {.time_ms = three + 699'000, .type = "hard_refused", .path = "/vllm", .count = 3},
        {.time_ms = three + 699'500, .type = "guard", .path = "/vllm", .text = "freeze /vllm"}};
    story_.pass(1);
    EXPECT_TRUE(says("umacct refused 3 allocations, the last one, of /vllm, at 03:11:39"));
    EXPECT_TRUE(says("The guard took 1 step, the last one at 03:11:39: freeze /vllm"));
}

TEST_F(EndTest, ACleanEndIsOne) {
    story_.writer().end();
    EXPECT_TRUE(says("The recording ended cleanly"));
}

// --- leaks -------------------------------------------------------------------------

class LeakTest : public HistoryTest {
protected:
    std::vector<Leak> leaks() const {
        Reader reader = this->reader();

        return find_leaks(reader, reader.boots().back(), {});
    }

    Story story_{sandbox_, "one", three};
};

TEST_F(LeakTest, OneThatGrowsWithoutFallingIsFoundWithItsSlope) {
    std::mt19937 random(1); // NOLINT(cert-msc32-c,cert-msc51-cpp): the same each time
    Holdings &leaker = story_.account("/leaker");
    std::uint64_t steady = gib;

    // 360 MiB/h, in lumps, with some noise.
    story_.pass(3600, [&] {
        steady += mib / 10;
        leaker[Holding::driver] = steady / (4 * mib) * (4 * mib) + random() % 8 * 64 * 1024;
    });
    const auto found = leaks();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].named.path, "/leaker");
    EXPECT_NEAR(found[0].bytes_per_hour / static_cast<double>(mib), 360, 36);
    EXPECT_NEAR(static_cast<double>(found[0].until_ms - found[0].since_ms), 3'590'000, 20'000);
    EXPECT_TRUE(found[0].driver);
}

TEST_F(LeakTest, OneOfProgramsIsToldApart) {
    Holdings &leaker = story_.account("/leaker");

    story_.pass(1200, [&] { leaker[Holding::current] += mib; });
    const auto found = leaks();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_FALSE(found[0].driver);
}

TEST_F(LeakTest, OneThatHidesInSwapIsFound) {
    Holdings &leaker = story_.account("/leaker");

    leaker[Holding::current] = 100 * mib;
    story_.pass(1200, [&] { leaker[Holding::swap] += mib; });
    const auto found = leaks();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].named.path, "/leaker");
    EXPECT_FALSE(found[0].driver);
}

TEST_F(LeakTest, OthersAreNone) {
    Holdings &steady = story_.account("/steady");
    Holdings &loads = story_.account("/loads");
    Holdings &breathes = story_.account("/breathes");
    Holdings &settles = story_.account("/settles");
    Holdings &reads = story_.account("/reads");
    int second = 0;

    steady[Holding::driver] = 8 * gib;
    story_.pass(3600, [&] {
        ++second;
        loads[Holding::driver] = second > 100 ? 20 * gib : 0;
        breathes[Holding::driver] = gib + static_cast<std::uint64_t>(second % 600) * mib;
        settles[Holding::driver] = std::min(second, 1500) * mib;
        reads[Holding::current] += mib;
        reads[Holding::cache] += mib;
    });
    for (const Leak &leak : leaks())
        ADD_FAILURE() << leak.named.path;
}

TEST_F(LeakTest, OfOneInsideAnotherTheInnerOneIsNamed) {
    Holdings &outer = story_.account("/outer");
    Holdings &inner = story_.account("/outer/inner");

    story_.pass(1200, [&] {
        outer[Holding::driver] += mib;
        inner[Holding::driver] += mib;
    });
    const auto found = leaks();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].named.path, "/outer/inner");
}

/// A machine of 128 GiB, a sample each second.
class StepsTest : public testing::Test {
protected:
    StepsTest() {
        sample_.accounts.reserve(300); // references to them stay good
        begin();
    }

    void begin(KnownSteps known = {}) {
        watch_.emplace(std::move(known));
        sample_.machine[Figure::total] = 128 * gib;
        sample_.machine[Figure::obtainable] = 100 * gib;
    }

    Holdings &account(const std::string &path) {
        for (Sample::Account &each : sample_.accounts) {
            if (each.path == path)
                return each.holdings;
        }
        sample_.accounts.push_back({.id = ++ids_, .path = path, .holdings = {}});
        sample_.count = sample_.accounts.size();
        return sample_.accounts.back().holdings;
    }

    /// Lets that many seconds pass. Returns the steps that were told to be ahead.
    std::vector<NextStep> pass(int seconds, const std::function<void()> &each = {}) {
        std::vector<NextStep> told;

        for (int i = 0; i < seconds; ++i) {
            if (each)
                each();
            sample_.uptime_ms += 1000;
            sample_.time_ms += 1000;
            watch_->take(sample_);
            if (auto next = watch_->ahead(sample_))
                told.push_back(std::move(*next));
        }
        return told;
    }

    /// Returns them in GiB, for 1, 3 and 10 seconds.
    std::string steps_of(const std::string &path) {
        // Changed or not.
        watch_->set_floor(known_.floor + 1);
        known_ = *watch_->changes();
        for (const Steps &each : known_.accounts) {
            if (each.path == path)
                return fmt::format("{} {} {}", each.largest[0].bytes / gib,
                                   each.largest[1].bytes / gib, each.largest[2].bytes / gib);
        }
        return "none";
    }

    std::optional<StepWatch> watch_;
    KnownSteps known_;
    Sample sample_;
    std::uint64_t ids_ = 100;
};

/// Case 1.5 of the reports: steps of 4.5 GiB in 3 s and 7.4 in 5 s, long after the start.
TEST_F(StepsTest, TheLargestAreKnownForOneThreeAndTenSeconds) {
    Holdings &vllm = account("/vllm");
    Holdings &creeps = account("/creeps");
    int second = 0;

    vllm[Holding::driver] = 50 * gib;
    creeps[Holding::current] = gib;
    pass(600, [&] {
        ++second;
        creeps[Holding::current] += mib;
        if (second > 300 && second <= 303)
            vllm[Holding::driver] += 3 * gib / 2;
        if (second > 400 && second <= 405)
            vllm[Holding::driver] += 3 * gib / 2;
        if (second == 500)
            vllm[Holding::driver] += 2 * gib;
    });
    EXPECT_EQ(steps_of("/vllm"), "2 4 7");
    EXPECT_EQ(steps_of("/creeps"), "none") << "that is no step";
}

TEST_F(StepsTest, AStartIsNone) {
    Holdings &first = account("/first");

    pass(20);
    first[Holding::driver] = gib;
    pass(30, [&] { first[Holding::driver] += 2 * gib; }); // a model is loaded
    pass(20);
    EXPECT_EQ(steps_of("/first"), "none");
    account("/second")[Holding::current] = 20 * gib;
    pass(20);
    EXPECT_EQ(steps_of("/second"), "none");
    first[Holding::driver] += 5 * gib;
    pass(1);
    EXPECT_EQ(steps_of("/first"), "5 5 5");
}

TEST_F(StepsTest, OneThatNoLongerFitsIsToldOnceBeforeIt) {
    Holdings &vllm = account("/vllm");
    auto &available = sample_.machine[Figure::obtainable];

    watch_->set_floor(4 * gib);
    sample_.machine[Figure::reserve] = gib;
    vllm[Holding::driver] = 50 * gib;
    pass(20);
    vllm[Holding::driver] += 12 * gib;
    EXPECT_TRUE(pass(20).empty()) << "enough is available";
    available = 17 * gib;
    EXPECT_TRUE(pass(20).empty());
    available = 16 * gib;
    const auto told = pass(20);
    ASSERT_EQ(told.size(), 1U) << "once";
    EXPECT_EQ(told[0].steps.path, "/vllm");
    EXPECT_EQ(told[0].left, 11 * gib);
    EXPECT_EQ(told[0].text(), "grew by 12.00 GiB within 10 s before; 11.00 GiB is available above "
                              "the reserve and the guard's floor");
    available = 17 * gib; // it fits, by nothing
    pass(5);
    available = 16 * gib;
    EXPECT_TRUE(pass(5).empty());
    for (int i = 0; i < 100; ++i) {
        available = 30 * gib;
        pass(1);
        available = 16 * gib;
        EXPECT_TRUE(pass(1).empty()) << "who makes it fit and not fit by turns floods no log";
    }
    available = 30 * gib;
    pass(600);
    available = 16 * gib;
    EXPECT_EQ(pass(5).size(), 1U) << "it fitted meanwhile, for long";
    sample_.count = 0;
    available = gib;
    EXPECT_TRUE(pass(5).empty()) << "there is no such account any more";
}

TEST_F(StepsTest, TheInnermostIsNamed) {
    for (const char *path : {"/", "/a.slice", "/a.slice/vllm.service", "/a.slice/other.service"})
        account(path)[Holding::driver] = 50 * gib;
    pass(20);
    for (const char *path : {"/", "/a.slice", "/a.slice/vllm.service"})
        account(path)[Holding::driver] += 12 * gib;
    account("/a.slice")[Holding::driver] += gib;
    account("/a.slice/other.service")[Holding::driver] += gib;
    sample_.machine[Figure::obtainable] = 2 * gib;
    const auto told = pass(1);
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0].steps.path, "/a.slice/vllm.service");
}

TEST_F(StepsTest, TheyAreKeptAcrossStarts) {
    test::Sandbox sandbox;
    Holdings &vllm = account("/vllm");

    vllm[Holding::driver] = 50 * gib;
    pass(20);
    vllm[Holding::driver] += 12 * gib;
    pass(1);
    EXPECT_EQ(KnownSteps::read(sandbox.root()).accounts.size(), 0U) << "there is no file";
    sandbox.write(steps_file, watch_->changes().value().text());
    EXPECT_FALSE(watch_->changes()) << "nothing changed";
    begin(KnownSteps::read(sandbox.root()));
    sample_.uptime_ms = 0; // the machine started anew
    sample_.machine[Figure::obtainable] = 2 * gib;
    EXPECT_EQ(pass(1).size(), 1U) << "before it made a step";
    EXPECT_EQ(steps_of("/vllm"), "12 12 12");
    for (const char *damaged :
         {"", "{", "[]", R"({"accounts":5})", R"({"accounts":[1,{"path":2}]})",
          R"({"accounts":[{"path":"/a","steps":[{"seconds":"x"},7]}]})"}) {
        sandbox.write(steps_file, damaged);
        EXPECT_EQ(KnownSteps::read(sandbox.root()).accounts.size(), 0U) << damaged;
    }
}

TEST_F(StepsTest, WhatIsGoneIsForgottenBeforeWhatIsThere) {
    test::Sandbox sandbox;
    Holdings &live = account("/live");

    live[Holding::driver] = 50 * gib;
    for (int i = 0; i < 256; ++i)
        account(fmt::format("/docker/{}", i))[Holding::driver] = 50 * gib;
    pass(20);
    for (int i = 0; i < 256; ++i)
        account(fmt::format("/docker/{}", i))[Holding::driver] += 8 * gib;
    pass(1);
    sample_.accounts.resize(1);
    sample_.count = 1;
    live[Holding::driver] += gib;
    pass(1);
    Holdings &next = account("/docker/next");
    next[Holding::driver] = 50 * gib;
    pass(20);
    next[Holding::driver] += 8 * gib;
    pass(1);
    EXPECT_EQ(steps_of("/docker/next"), "8 8 8");
    EXPECT_EQ(steps_of("/live"), "1 1 1") << "smaller than those of all that are gone";
    EXPECT_EQ(known_.accounts.size(), 256U);
    sandbox.write(steps_file, known_.text());
    begin(KnownSteps::read(sandbox.root()));
    EXPECT_EQ(steps_of("/live"), "1 1 1");
}

TEST_F(StepsTest, ATenantHasAQuarterOfThem) {
    const auto of_tenant = [](int i) { return fmt::format("/user.slice/user-1000.slice/{}", i); };

    account("/live")[Holding::driver] = 50 * gib;
    for (int i = 0; i < 100; ++i)
        account(of_tenant(i))[Holding::driver] = 50 * gib;
    pass(20);
    for (int i = 0; i < 100; ++i)
        account(of_tenant(i))[Holding::driver] += 8 * gib;
    account("/live")[Holding::driver] += gib;
    pass(1);
    EXPECT_EQ(steps_of("/live"), "1 1 1");
    EXPECT_EQ(known_.accounts.size(), 65U);
    pass(1);
    EXPECT_FALSE(watch_->changes()) << "none pushes an equal one out";
    account(of_tenant(99))[Holding::driver] += gib;
    pass(1);
    EXPECT_EQ(steps_of(of_tenant(99)), "1 9 9");
    EXPECT_EQ(known_.accounts.size(), 65U);
}

} // namespace
} // namespace umacct::history
