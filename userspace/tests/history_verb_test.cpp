// SPDX-License-Identifier: GPL-2.0-or-later
/// The output of "umacct history".
#include <cstdlib>

#include "tests/history_story.h"
#include "tests/tool_fixture.h"
#include "tool/history/times.h"

namespace umacct::test {
namespace {

using history::Figure;
using history::Holding;

/// 2026-11-25 03:00 UTC
constexpr std::int64_t three = 1'795'575'600'000;

class HistoryVerbTest : public ToolFixture {
protected:
    HistoryVerbTest() {
        setenv("TZ", "UTC", 1);
        tzset();
        sandbox_.write("proc/sys/kernel/random/boot_id", "two\n");
    }

    /// A start of the machine that ran out of memory, and the one after it.
    void tell() {
        {
            Story story(sandbox_, "one", three);
            history::Holdings &vllm = story.account("/vllm");

            story.pass(120);
            story.pass(99, [&] {
                vllm[Holding::driver] += gib;
                story.set_available(story.sample.machine[Figure::available] - gib);
            });
            story.happenings.push_back({.time_ms = three + 219'500,
                                        .type = "reserve_refused",
                                        .path = "/vllm",
                                        .comm = "python3",
                                        .pid = 7,
                                        .size = gib});
            story.pass(1);
        }
        Story story(sandbox_, "two", three + 3'600'000);
        story.account("/vllm")[Holding::driver] = gib;
        story.account("/other")[Holding::driver] = 2 * gib;
        story.pass(100);
    }

    static bool has(const std::string &text, const std::string &words) {
        return text.find(words) != std::string::npos;
    }
};

TEST_F(HistoryVerbTest, WithoutAHistoryItSaysWhoRecordsOne) {
    const Ran ran = run({"history"});

    EXPECT_EQ(ran.code, 3);
    EXPECT_TRUE(has(ran.err, "umacctd records it")) << ran.err;
}

TEST_F(HistoryVerbTest, OfTheStartBeforeItBeginsWithWhatHappened) {
    tell();
    const Ran ran = run({"history", "--boot", "-1"});

    EXPECT_EQ(ran.code, 0);
    EXPECT_TRUE(
        ran.out.starts_with("The recording ends at 2026-11-25 03:03:40 without an orderly stop"))
        << ran.out;
    EXPECT_TRUE(has(ran.out, "/vllm took 99.00 GiB through the driver")) << ran.out;
    EXPECT_TRUE(has(ran.out, "would have refused /vllm at 03:03:37")) << ran.out;
    EXPECT_TRUE(has(ran.out, "reserve_refused  /vllm  pid 7 (python3)")) << ran.out;
}

TEST_F(HistoryVerbTest, AFailureIsToldWithWhoHeldMost) {
    {
        Story story(sandbox_, "two", three);

        story.happenings.push_back({.time_ms = three + 500,
                                    .type = "failed",
                                    .path = "/vllm",
                                    .limit_path = "/other",
                                    .size = gib,
                                    .usage = gib / 4,
                                    .limit = 3 * gib});
        story.pass(2);
    }
    EXPECT_TRUE(has(run({"history", "--since", "2026-11-25 03:00"}).out,
                    "no memory for 1.00 GiB: 256.00 MiB available; /other "
                    "holds 3.00 GiB"));
    const auto event =
        run_json({"history", "--json", "--since", "2026-11-25 03:00"})["events"].at(0);
    EXPECT_EQ(event["holder_path"], "/other");
    EXPECT_EQ(event["holder_bytes"], 3 * gib);
    EXPECT_TRUE(event["limit_path"].is_null() && event["limit_bytes"].is_null()) << event;
}

/// Case 1.9 of the reports: the driver's lines in the kernel's log are no shortage by themselves.
TEST_F(HistoryVerbTest, TheDriversComplaintsAreToldWithWhatTheyCameTo) {
    const char *since = "2026-11-25 03:00";
    {
        Story story(sandbox_, "two", three);

        story.pass(2);
        story.sample.machine[Figure::complaints] = 12;
        story.pass(2);
        EXPECT_TRUE(has(run({"history", "--since", since}).out,
                        "logged NV_ERR_NO_MEMORY 12 times, once for each try, and had no memory "
                        "for 0 requests\n"));
        story.happenings.push_back({.time_ms = three + 4500, .type = "failed", .path = "/vllm"});
        story.pass(2);
    }
    EXPECT_TRUE(has(run({"history", "--since", since}).out, "had no memory for 1 request\n"));
    EXPECT_EQ(run_json({"history", "--json", "--since", since})["machine"]["driver_complaints"],
              12);
}

/// The container may be gone since: the history has its name.
TEST_F(HistoryVerbTest, AContainerHasItsNameInEachEvent) {
    const std::string path = "/system.slice/docker-" + std::string(64, 'a') + ".scope";
    {
        Story story(sandbox_, "two", three);

        story.account(path)[Holding::driver] = gib;
        story.happenings = {{.time_ms = three + 500,
                             .type = "guard",
                             .path = path,
                             .text = "guard: freeze " + path + ": 1.00 GiB available"},
                            {.time_ms = three + 600,
                             .type = "killed",
                             .path = "/b",
                             .limit_path = path,
                             .limit = gib}};
        story.pass(10); // names are asked for a little later
        story.writer().name_accounts([](const std::string & /*path*/) { return "docker vllm"; });
        story.pass(2);
    }
    const std::string out = run({"history", "--since", "2026-11-25 03:00"}).out;
    EXPECT_TRUE(has(out, "guard            docker vllm  guard: freeze docker vllm: 1.00 GiB"))
        << out;
    EXPECT_TRUE(has(out, "; docker vllm held 1.00 GiB of the driver's")) << out;
    EXPECT_FALSE(has(out, "aaaaa")) << out;
    const auto events = run_json({"history", "--json", "--since", "2026-11-25 03:00"})["events"];
    EXPECT_EQ(events.at(0)["owner_name"], "docker vllm");
    EXPECT_EQ(events.at(0)["path"], path);
}

TEST_F(HistoryVerbTest, ThisStartHasNoEnd) {
    tell();
    const Ran ran = run({"history", "--since", "2026-11-25 04:00"});

    EXPECT_TRUE(ran.out.starts_with("From 2026-11-25 04:00:01 to 04:01:40")) << ran.out;
    EXPECT_TRUE(has(ran.out, "/other")) << ran.out;
}

TEST_F(HistoryVerbTest, AtATimeItIsAsItWasThen) {
    tell();
    const auto document = run_json({"history", "--boot", "-1", "--at", "03:02:50", "--json"});

    ASSERT_EQ(document["accounts"].size(), 1U);
    EXPECT_EQ(document["accounts"][0]["usage_bytes"], 50 * gib);
    EXPECT_EQ(document["until"], "2026-11-25T03:02:50.000Z");
    EXPECT_EQ(document["accounts"][0]["fastest_bytes_per_s"], gib);
    EXPECT_EQ(document["end"]["kind"], "driver");
    EXPECT_EQ(document["end"]["culprit"]["path"], "/vllm");
    EXPECT_EQ(document["boots"].size(), 2U);
}

TEST_F(HistoryVerbTest, TheCourseAddsUpToTheMachineAtEveryMoment) {
    tell();
    const auto document =
        run_json({"history", "--boot", "-1", "--course", "50", "--since", "100s", "--json"});
    const auto &course = document["course"];
    const std::size_t count = course["times_ms"].size();
    bool found = false;

    EXPECT_EQ(course["total_bytes"], 128 * gib);
    EXPECT_GE(count, 49U);
    EXPECT_LE(count, 52U);
    EXPECT_EQ(course["times_ms"].back(), three + 220'000);
    EXPECT_EQ(course["reserve_bytes"].size(), count);
    for (std::size_t i = 0; i < count; ++i) {
        std::uint64_t sum = 0;

        for (const auto &band : course["bands"])
            sum += band["bytes"].at(i).get<std::uint64_t>();
        EXPECT_EQ(sum, 128 * gib) << i;
    }
    for (const auto &band : course["bands"]) {
        if (band["kind"] != "account")
            continue;
        EXPECT_EQ(band["path"], "/vllm");
        EXPECT_EQ(band["bytes"].back(), 99 * gib);
        found = true;
    }
    EXPECT_TRUE(found);
    // It is of the same samples as the rest.
    EXPECT_EQ(document["accounts"][0]["usage_bytes"], 99 * gib);
    EXPECT_FALSE(run_json({"history", "--boot", "-1", "--json"}).contains("course"));
}

TEST_F(HistoryVerbTest, ACourseOfATimeWithoutSamplesIsNone) {
    tell();
    const auto document = run_json({"history", "--boot", "-1", "--course", "50", "--since",
                                    "2026-11-25 02:00", "--until", "2026-11-25 02:10", "--json"});

    EXPECT_TRUE(document["course"].is_null());
    EXPECT_EQ(run({"history", "--course", "50"}).code, 2) << "it is for programs";
    EXPECT_EQ(run({"history", "--course", "1", "--json"}).code, 2);
    EXPECT_EQ(run({"history", "--course", "2001", "--json"}).code, 2);
    EXPECT_EQ(run({"history", "vllm", "--course", "50", "--json"}).code, 2);
}

TEST_F(HistoryVerbTest, OnlyTheTarget) {
    tell();
    const auto document = run_json({"history", "other", "--since", "2026-11-25 04:00", "--json"});

    ASSERT_EQ(document["accounts"].size(), 1U);
    EXPECT_EQ(document["accounts"][0]["path"], "/other");
}

TEST_F(HistoryVerbTest, AnUnknownTargetIsAnError) {
    tell();
    const Ran ran = run({"history", "nothere"});

    EXPECT_EQ(ran.code, 1);
    EXPECT_TRUE(has(ran.err, "'nothere' is not in the history of this boot")) << ran.err;
}

TEST_F(HistoryVerbTest, TablesOfCommas) {
    tell();
    const Ran machine = run({"history", "--boot", "-1", "--csv"});
    const Ran account = run({"history", "--boot", "-1", "--csv", "vllm", "--since", "03:03:30"});

    EXPECT_TRUE(machine.out.starts_with("time,memory_total_bytes,memory_free_bytes,"));
    EXPECT_EQ(std::count(machine.out.begin(), machine.out.end(), '\n'), 221);
    EXPECT_TRUE(account.out.starts_with("time,path,owner_name,usage_bytes,")) << account.out;
    EXPECT_TRUE(has(account.out, "2026-11-25T03:03:30.000Z,\"/vllm\",\"\",96636764160,0,"))
        << account.out;
}

TEST_F(HistoryVerbTest, WhatIsNoTimeIsRefused) {
    tell();
    EXPECT_EQ(run({"history", "--since", "yesterday"}).code, 2);
    EXPECT_EQ(run({"history", "--since", "2026-11-25 04:30", "--until", "2026-11-25 04:10"}).code,
              2);
    EXPECT_EQ(run({"history", "--boot", "-2"}).code, 1);
    EXPECT_EQ(run({"history", "--boot", "1"}).code, 2);
}

/// Asks as soon as the machine is up again, whatever umacctd has written by then.
TEST_F(HistoryVerbTest, StartsAreCountedFromThisOne) {
    tell();
    sandbox_.write("proc/sys/kernel/random/boot_id", "three\n");
    EXPECT_EQ(run_json({"history", "--boot", "-1", "--json"})["boot"]["boot_id"], "two");
    EXPECT_EQ(run_json({"history", "--boot", "-2", "--json"})["boot"]["boot_id"], "one");
    EXPECT_EQ(run_json({"history", "--json"})["boot"]["boot_id"], "two");
    EXPECT_EQ(run({"history", "--boot", "-3"}).code, 1);
    EXPECT_EQ(run({"history", "--boot", "0"}).code, 3);
}

TEST_F(HistoryVerbTest, MomentsAsPeopleWriteThem) {
    using tool::parse_moment;

    EXPECT_EQ(parse_moment("03:00", three + 60'000), three);
    EXPECT_EQ(parse_moment("03:00:30", three + 60'000), three + 30'000);
    EXPECT_EQ(parse_moment("04:00", three), three - 23 * 3'600'000LL) << "the day before";
    EXPECT_EQ(parse_moment("2026-11-25 03:00", 0), three);
    EXPECT_EQ(parse_moment("2026-11-25T03:00:05", 0), three + 5000);
    EXPECT_EQ(parse_moment("@1795575600", 0), three);
    EXPECT_EQ(parse_moment("@1795575600.25", 0), three + 250);
    EXPECT_EQ(parse_moment("@1795575600.0001", 0), three);
    for (const char *text : {"@", "@-1", "@1.x", "@1 ", "@99999999999999", "@x"})
        EXPECT_THROW(parse_moment(text, three), Error) << text;
    EXPECT_EQ(parse_moment("10min", three), three - 600'000);
    EXPECT_EQ(parse_moment("2h", three), three - 7'200'000);
}

} // namespace
} // namespace umacct::test
