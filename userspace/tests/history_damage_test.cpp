// SPDX-License-Identifier: GPL-2.0-or-later
/// A file of the history in which something is not as it was written, or that an earlier umacct
/// wrote; and a clock that was set.
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <random>

#include <gtest/gtest.h>
#include <sqlite3.h>

#include "lib/error.h"
#include "lib/history/analysis.h"
#include "lib/history/layout.h"
#include "lib/history/reader.h"
#include "tests/history_story.h"

namespace umacct::history {
namespace {

using test::gib;
using test::Story;

constexpr std::int64_t three = 1'795'575'600'000;
constexpr std::uint64_t accounts = 20;
constexpr int seconds = 240;
constexpr std::streamoff page = 4096;

/// Returns the holding of account number that many seconds after a start.
std::uint64_t held_at(std::int64_t second, std::uint64_t number) {
    return (static_cast<std::uint64_t>(second) + number) * 0x9e37'79b9'7f4aU % (1ULL << 40U);
}

/// A start of the machine in which each second and each event is unlike all others.
void live(const test::Sandbox &sandbox, const std::string &boot_id, std::int64_t started_ms) {
    Story story(sandbox, boot_id, started_ms);

    for (int i = 1; i <= seconds; ++i) {
        for (std::uint64_t number = 1; number <= accounts; ++number)
            story.account("/" + std::to_string(number))[Holding::driver] = held_at(i, number);
        story.happenings.push_back({.time_ms = story.sample.time_ms + 1000,
                                    .type = "hard_refused",
                                    .path = "/" + std::to_string(i % 20 + 1),
                                    .size = static_cast<std::uint64_t>(i) * 4096});
        story.pass(1);
    }
    story.writer().end();
}

/// A reader's findings about the two starts.
struct Found {
    std::size_t boots = 0;
    std::size_t moments = 0;
    std::size_t events = 0;
    std::size_t names = 0;
    std::size_t damaged = 0;

    bool is_all() const {
        return boots == 2 && moments == std::size_t{2} * seconds &&
               events == std::size_t{2} * seconds && names == 2 * accounts;
    }
};

/// Reads all of it, and compares each figure with what was written.
Found read_all(const std::filesystem::path &root) {
    Reader reader(root);
    Found found;

    for (const Boot &boot : reader.boots()) {
        const auto names = reader.accounts(boot);
        const std::int64_t started_ms = boot.number == 1 ? three : three + 1'000'000;

        EXPECT_TRUE(boot.number == 1 || boot.number == 2) << boot.number;
        EXPECT_TRUE(boot.boot_id.empty() || boot.boot_id == (boot.number == 1 ? "one" : "two"));
        EXPECT_EQ(boot.started_ms, started_ms);
        found.boots += boot.boot_id.empty() ? 0 : 1;
        for (const auto &[key, named] : names) {
            ++found.names;
            EXPECT_EQ(named.path, "/" + std::to_string((key - 1) % accounts + 1));
            EXPECT_EQ(named.id, 100 + (key - 1) % accounts + 1);
        }
        reader.for_each(boot, {}, [&](const Moment &moment) {
            ++found.moments;
            EXPECT_EQ((moment.time_ms - started_ms) % 1000, 0);
            EXPECT_EQ(moment.state.accounts.size(), accounts);
            EXPECT_EQ(moment.state.machine[Figure::total], 128 * gib);
            for (const auto &[key, holdings] : moment.state.accounts)
                EXPECT_EQ(holdings[Holding::driver],
                          held_at((moment.time_ms - started_ms) / 1000, (key - 1) % accounts + 1));
        });
        for (const Happening &each : reader.happenings(boot, {})) {
            ++found.events;
            EXPECT_EQ(each.type, "hard_refused");
            EXPECT_EQ(each.size,
                      static_cast<std::uint64_t>(each.time_ms - started_ms) / 1000 * 4096);
            EXPECT_EQ(each.path, "/" + std::to_string((each.time_ms - started_ms) / 1000 % 20 + 1));
        }
        find_leaks(reader, boot, {});
        analyse_end(reader, boot, "another");
    }
    found.damaged = reader.damaged();
    return found;
}

class HistoryDamage : public testing::Test {
protected:
    HistoryDamage() {
        setenv("TZ", "UTC", 1);
        tzset();
        live(sandbox_, "one", three);
        live(sandbox_, "two", three + 1'000'000);
    }

    std::filesystem::path file() const { return sandbox_.root() / folder / file_name; }

    /// Changes a byte at that offset into another one.
    void change(std::streamoff at, std::mt19937 &random) const {
        std::fstream all(file(), std::ios::in | std::ios::out | std::ios::binary);

        all.seekg(at);
        const int was = all.get();
        all.seekp(at);
        all.put(static_cast<char>(static_cast<unsigned int>(was) ^ (1 + random() % 255)));
    }

    void run(const char *statements) const {
        sqlite3 *raw = nullptr;
        char *why = nullptr;

        ASSERT_EQ(sqlite3_open(file().c_str(), &raw), SQLITE_OK);
        EXPECT_EQ(sqlite3_exec(raw, statements, nullptr, nullptr, &why), SQLITE_OK)
            << statements << ": " << (why == nullptr ? "" : why);
        sqlite3_free(why);
        sqlite3_close(raw);
    }

    /// The file as the first layout has it.
    void make_first_layout() const {
        run("ALTER TABLE boot DROP COLUMN seal; ALTER TABLE account DROP COLUMN seal;"
            "ALTER TABLE event DROP COLUMN seal; ALTER TABLE event DROP COLUMN uptime_ms;"
            "DROP TABLE unsealed; PRAGMA user_version = 1;");
        for (const Resolution &resolution : resolutions)
            run(("ALTER TABLE " + std::string(resolution.table) + " DROP COLUMN seal").c_str());
    }

    test::Sandbox sandbox_;
};

TEST_F(HistoryDamage, AWholeFileIsReadAsItWasWritten) {
    const Found found = read_all(sandbox_.root());

    EXPECT_TRUE(found.is_all());
    EXPECT_EQ(found.damaged, 0U);
}

TEST_F(HistoryDamage, TwoHundredFilesWithChangedBytesShowNoWrongFigureWithoutAWord) {
    std::mt19937 random(50); // NOLINT(cert-msc32-c,cert-msc51-cpp): the same each time
    const auto size = static_cast<std::streamoff>(std::filesystem::file_size(file()));
    const std::filesystem::path good = sandbox_.root() / "good.db";
    int with_damage = 0;

    std::filesystem::copy_file(file(), good);
    for (int i = 0; i < 200; ++i) {
        SCOPED_TRACE("file " + std::to_string(i));
        std::filesystem::copy_file(good, file(), std::filesystem::copy_options::overwrite_existing);
        // The first page says where the tables are.
        for (auto count = 1 + random() % 3; count > 0; --count)
            change(page + static_cast<std::streamoff>(random() %
                                                      static_cast<std::uint32_t>(size - page)),
                   random);
        const Found found = read_all(sandbox_.root());
        EXPECT_TRUE(found.is_all() || found.damaged > 0) << "what is missing is said";
        EXPECT_GE(found.moments, static_cast<std::size_t>(seconds) / 2)
            << "the rest is still there";
        with_damage += found.damaged > 0 ? 1 : 0;
        if (HasFailure())
            break;
    }
    EXPECT_GT(with_damage, 100);
}

/// Nothing seals the first page, which lists the tables: a whole table may be missing.
TEST_F(HistoryDamage, ADamagedFirstPageIsAnErrorInWordsOrShowsNoWrongFigure) {
    std::mt19937 random(50); // NOLINT(cert-msc32-c,cert-msc51-cpp): the same each time
    const std::filesystem::path good = sandbox_.root() / "good.db";

    std::filesystem::copy_file(file(), good);
    for (int i = 0; i < 100; ++i) {
        SCOPED_TRACE("file " + std::to_string(i));
        std::filesystem::copy_file(good, file(), std::filesystem::copy_options::overwrite_existing);
        change(static_cast<std::streamoff>(random() % page), random);
        try {
            read_all(sandbox_.root());
        } catch (const Error &error) {
            EXPECT_FALSE(std::string(error.what()).empty());
        }
    }
}

TEST_F(HistoryDamage, ABootWhoseLastRecordIsDamagedIsListedWithTheOthers) {
    run("UPDATE sample_1s SET difference = x'00' WHERE id = "
        "(SELECT max(id) FROM sample_1s WHERE id < 2 << 41)");
    const Found found = read_all(sandbox_.root());
    EXPECT_EQ(found.boots, 2U);
    EXPECT_EQ(found.damaged, 1U);
    EXPECT_EQ(found.moments, 2U * seconds - 1);
}

TEST_F(HistoryDamage, ARecordThatIsGoneBreaksItsChainAndNoMore) {
    run("DELETE FROM sample_1s WHERE id = (1 << 41) + 70000");
    const Found found = read_all(sandbox_.root());
    // The 61st record is whole, and so is the 121st.
    EXPECT_EQ(found.moments, 2U * seconds - 51);
    EXPECT_EQ(found.damaged, 50U);
}

TEST_F(HistoryDamage, ARecordWithoutASealIsNoneWhereAllHaveOne) {
    run("UPDATE sample_1s SET seal = NULL WHERE id = (1 << 41) + 120000;"
        "UPDATE event SET seal = NULL, size = 1 WHERE id = 7;"
        "UPDATE account SET seal = NULL, path = '/another' WHERE key = 3;"
        "UPDATE boot SET seal = NULL, started_ms = 1 WHERE number = 1");
    Reader reader(sandbox_.root());
    const auto boots = reader.boots();
    ASSERT_EQ(boots.size(), 2U);
    EXPECT_EQ(boots[0].boot_id, "");
    EXPECT_EQ(boots[0].started_ms, three) << "by its samples";
    EXPECT_EQ(reader.accounts(boots[0]).size(), accounts - 1);
    EXPECT_EQ(reader.happenings(boots[0], {}).size(), seconds - 1U);
}

TEST_F(HistoryDamage, AFileOfTheFirstLayoutIsReadAndGoneOnWith) {
    make_first_layout();
    EXPECT_TRUE(read_all(sandbox_.root()).is_all());
    {
        Story story(sandbox_, "three", three + 2'000'000);

        story.account("/a")[Holding::driver] = gib;
        story.pass(90);
        EXPECT_TRUE(story.told.empty());
    }
    Reader reader(sandbox_.root());
    const auto boots = reader.boots();
    ASSERT_EQ(boots.size(), 3U);
    std::size_t moments = 0;
    for (const Boot &boot : boots)
        reader.for_each(boot, {}, [&](const Moment & /*moment*/) { ++moments; });
    EXPECT_EQ(moments, 2U * seconds + 90);
    EXPECT_EQ(reader.happenings(boots[0], {}).size(), static_cast<std::size_t>(seconds));
    EXPECT_EQ(reader.damaged(), 0U);
    // Rows that were written since then have their seals.
    run("UPDATE sample_1s SET seal = NULL WHERE id = (3 << 41) + 90000");
    Reader again(sandbox_.root());
    EXPECT_EQ(again.boots()[2].last_ms, three + 2'089'000);
    EXPECT_GT(again.damaged(), 0U);
}

TEST_F(HistoryDamage, WhatIsSoundOfAFileThatIsSetAsideIsKept) {
    const auto size = static_cast<std::streamoff>(std::filesystem::file_size(file()));

    {
        std::fstream damage(file(), std::ios::in | std::ios::out | std::ios::binary);
        const std::string garbage(static_cast<std::size_t>(page), 'x');

        damage.seekp(size / page / 2 * page);
        damage.write(garbage.data(), page);
    }
    Story story(sandbox_, "three", three + 2'000'000);
    story.pass(3);
    ASSERT_EQ(story.told.size(), 1U);
    EXPECT_NE(story.told[0].find("of its records are kept"), std::string::npos) << story.told[0];
    Reader reader(sandbox_.root());
    const auto boots = reader.boots();
    std::size_t moments = 0;
    ASSERT_EQ(boots.size(), 3U);
    for (const Boot &boot : boots)
        reader.for_each(boot, {}, [&](const Moment & /*moment*/) { ++moments; });
    EXPECT_GT(moments, static_cast<std::size_t>(seconds));
}

TEST(HistoryClock, SetBackOrOnHidesNothing) {
    for (const std::int64_t jump_ms :
         std::initializer_list<std::int64_t>{-200'000'000'000, 300'000'000'000, -5000}) {
        SCOPED_TRACE(jump_ms);
        test::Sandbox sandbox;
        Story story(sandbox, "one", three);

        story.account("/a");
        story.happenings.push_back(
            {.time_ms = three + 1000, .type = "guard", .path = "/a", .text = "freeze /a"});
        story.pass(100);
        story.set_clock(jump_ms);
        story.pass(100);
        Reader reader(sandbox.root());
        const Boot boot = reader.boots().at(0);
        std::int64_t next_ms = three + jump_ms + 1000;
        EXPECT_EQ(boot.first_ms, three + jump_ms + 1000);
        EXPECT_EQ(boot.last_ms, three + jump_ms + 200'000);
        // The range of "umacct history": from an hour before the last sample on.
        reader.for_each(boot, {.since_ms = boot.last_ms - 3'600'000, .until_ms = boot.last_ms},
                        [&](const Moment &moment) {
                            EXPECT_EQ(moment.time_ms, next_ms);
                            next_ms += 1000;
                        });
        EXPECT_EQ(next_ms, boot.last_ms + 1000) << "every second of it";
        const auto events =
            reader.happenings(boot, {.since_ms = boot.first_ms, .until_ms = boot.last_ms});
        ASSERT_EQ(events.size(), 1U);
        EXPECT_EQ(events[0].time_ms, boot.first_ms);
        EXPECT_EQ(reader.at(boot, boot.first_ms + 50'500)->time_ms, boot.first_ms + 50'000);
    }
}

} // namespace
} // namespace umacct::history
