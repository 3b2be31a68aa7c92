// SPDX-License-Identifier: GPL-2.0-or-later
/// Free memory for the driver, memory that could be free, and making it so.
#include <fstream>
#include <span>
#include <sstream>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <linux/kernel-page-flags.h>
#include <umacct.h>

#include "lib/error.h"
#include "lib/host/umacctd.h"
#include "lib/memory/keeper.h"
#include "lib/memory/preflight.h"
#include "lib/memory/reclaim.h"
#include "lib/memory/survey.h"
#include "lib/memory/zones.h"
#include "tests/sandbox.h"

namespace umacct {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t mib = 1ULL << 20;
constexpr std::uint64_t block = 2 * mib;
constexpr std::size_t order = 9;

/// One zone, as procfs has it.
struct Procfs {
    std::uint64_t free = 0; ///< pages
    std::uint64_t low = 0;
    std::uint64_t cma = 0;
    std::uint64_t cma_free = 0;
    std::uint64_t file = 0;
    std::uint64_t small = 2; ///< free blocks of 2 MiB
    std::uint64_t large = 0; ///< and of 4
    std::string types;       ///< lines of pagetypeinfo

    Zones zones() const {
        std::istringstream zoneinfo(
            "Node 0, zone      DMA\n  per-node stats\n      nr_dirty 5\n"
            "  pages free     100\n        boost    0\n        min      10\n        low      20\n"
            "        managed  100\n        protection: (0, 0, 90, 90)\n"
            "  start_pfn:           1\n"
            "Node 0, zone    DMA32\n  pages free     0\n        managed  0\n"
            "Node 0, zone   Normal\n"
            "  pages free     " +
            std::to_string(free) + "\n        min      1\n        low      " + std::to_string(low) +
            "\n        high     9\n        spanned  262144\n        managed  2000\n        cma     "
            " " +
            std::to_string(cma) + "\n        protection: (0, 0, 0, 7)\n      nr_free_cma  " +
            std::to_string(cma_free) + "\n      nr_zone_inactive_file " + std::to_string(file) +
            "\n      nr_zone_active_file 1\n"
            "  pagesets\n    cpu: 0\n              count:    3\n"
            "    cpu: 1\n              count:    4\n  start_pfn:           4096\n"
            "Node 0, zone  Movable\n  pages free     999999\n        managed  999999\n");
        std::istringstream buddyinfo("Node 0, zone      DMA      4      0      0 \n"
                                     "Node 0, zone   Normal      1 2 3 0 0 0 0 0 0 " +
                                     std::to_string(small) + " " + std::to_string(large) +
                                     " \n"
                                     "Node 0, zone  Movable      0 0 0 0 0 0 0 0 0 0 9 \n");
        std::istringstream pagetypeinfo(types);

        return {zoneinfo, buddyinfo, pagetypeinfo};
    }
};

/// Makes that many free blocks of 2 MiB, and pages in smaller ones.
Zones zones_with(std::uint64_t blocks, std::uint64_t pages, std::uint64_t file = 0) {
    // A hundredth of 2000 pages is kept.
    const Procfs machine{
        .free = blocks * 512 + pages + 20, .file = file, .small = blocks % 2, .large = blocks / 2};

    return machine.zones();
}

const char *const types = "Page block order: 9\n"
                          "Pages per block:  512\n"
                          "\n"
                          "Free pages count per migrate type at order 0 1 2 3 4 5 6 7 8 9 10\n"
                          "Node    0, zone   Normal, type  Unmovable 0 0 0 0 0 0 0 0 0 2 >100000\n"
                          "Node    0, zone   Normal, type HighAtomic 0 0 0 0 0 0 0 0 0 1 0\n"
                          "Node    0, zone   Normal, type        CMA 0 0 0 0 0 0 0 0 0 0 2\n"
                          "\n"
                          "Number of blocks type Unmovable Movable Reclaimable HighAtomic CMA\n"
                          "Node 0, zone   Normal 1 2 3 1 4\n";

TEST(Zones, OnlyWhatTheDriverMayTake) {
    const Zones zones =
        Procfs{.free = 10000, .low = 100, .cma = 4096, .cma_free = 2048, .file = 50, .large = 5}
            .zones();

    // Not the lowest, which is protected; not the movable one.
    EXPECT_EQ(zones.usable(), 10000U - 100 - 2048 - 20);
    EXPECT_EQ(zones.sum(&Zone::file), 51U);
    EXPECT_EQ(zones.sum(&Zone::in_cpu_lists), 7U);
    EXPECT_EQ(zones.sum(&Zone::low), 120U);
    EXPECT_EQ(zones.largest_order(), 10U);
    // The two largest of two blocks and five twice as large are for devices, and
    // one that the rest of a block might be in.
    EXPECT_EQ(zones.usable_blocks(order), 2 + 2 * (5 - 3));
}

TEST(Zones, WhichBlocksAreForOthers) {
    const Zones zones =
        Procfs{.free = 10000, .low = 100, .cma = 4096, .cma_free = 2048, .large = 5, .types = types}
            .zones();

    EXPECT_EQ(zones.usable(), 10000U - 100 - 2048 - 512);
    EXPECT_EQ(zones.usable_blocks(order), (2 - 1) + 2 * (5 - 2));
}

TEST(Zones, BlocksBelowTheWatermarkAreNone) {
    EXPECT_EQ((Procfs{.free = 12 * 512 + 20, .large = 5}.zones().usable_blocks(order)), 12U);
    EXPECT_EQ((Procfs{.free = 12 * 512 + 20, .low = 1, .large = 5}.zones().usable_blocks(order)),
              11U);
    EXPECT_EQ((Procfs{.free = 12 * 512 + 20, .low = 1 << 20, .large = 5}.zones().usable()), 0U);
}

TEST(Zones, WhatIsFreeNowByBuddyinfoAlone) {
    Zones zones = Procfs{.free = 10000, .low = 100, .large = 5}.zones();
    std::istringstream later("Node 0, zone   Normal      2 1 0 0 0 0 0 0 0 1 1 \n");

    zones.refresh(later);
    EXPECT_EQ(zones.usable(), 4U + 512 + 1024 - 100 - 20);
    EXPECT_EQ(zones.usable_blocks(order), 2U);
}

TEST(Zones, AnotherFileIsAnError) {
    std::istringstream text("cpu  1 2 3\n");
    std::istringstream none;

    EXPECT_THROW((Zones{text, text, none}), Error);
}

constexpr std::uint64_t flag(unsigned number) {
    return 1ULL << number;
}

constexpr std::uint64_t free_page = flag(KPF_BUDDY);
constexpr std::uint64_t cache_page = flag(KPF_LRU) | flag(KPF_MMAP);
constexpr std::uint64_t kernel_page = 0;

void add_block(Survey &survey, std::uint64_t odd, std::size_t count = 1) {
    std::vector<std::uint64_t> pages(8, free_page);

    std::fill_n(pages.begin(), count, odd);
    survey.add(pages);
}

TEST(Survey, BlocksByWhatIsInThem) {
    Survey survey;

    add_block(survey, free_page);
    EXPECT_EQ(survey.reclaimable + survey.movable, 0U);
    add_block(survey, cache_page, 3);
    EXPECT_EQ(survey.reclaimable, 1U);
    EXPECT_EQ(survey.clean_pages, 3U);
    for (const std::uint64_t moves :
         {cache_page | flag(KPF_DIRTY), cache_page | flag(KPF_WRITEBACK),
          flag(KPF_LRU) | flag(KPF_ANON), flag(KPF_LRU) | flag(KPF_SWAPBACKED),
          flag(KPF_LRU) | flag(KPF_ANON) | flag(KPF_UNEVICTABLE)}) {
        Survey one;

        add_block(one, moves);
        EXPECT_EQ(one.movable, 1U) << moves;
        EXPECT_EQ(one.reclaimable, 0U) << moves;
    }
    for (const std::uint64_t stays : {kernel_page, flag(KPF_SLAB), flag(KPF_HUGE),
                                      cache_page | flag(KPF_UNEVICTABLE), flag(KPF_NOPAGE)}) {
        Survey one;

        add_block(one, stays);
        EXPECT_EQ(one.obtainable(0), 0U) << stays;
    }
}

TEST(Survey, ABlockWithPageCacheThatMayBeProtectedIsNotReclaimableForCertain) {
    Survey survey;
    std::vector<std::uint64_t> pages{free_page, cache_page, cache_page, kernel_page};

    for (std::uint64_t &flags : std::span(pages).last(2))
        survey.keep(flags);
    EXPECT_EQ(pages.back(), kernel_page);
    EXPECT_EQ(survey.clean_pages, 1U);
    pages.pop_back();
    survey.add(pages);
    EXPECT_EQ(survey.reclaimable, 0U);
    EXPECT_EQ(survey.movable, 1U);
    EXPECT_EQ(survey.clean_pages, 2U) << "it counts as page cache all the same, and once";
}

TEST(Survey, UnknownPagesMayBeFreeOnes) {
    Survey survey;

    add_block(survey, kernel_page, 1);
    add_block(survey, kernel_page, 3);
    add_block(survey, kernel_page, 3);
    EXPECT_EQ(survey.obtainable(0), 0U);
    EXPECT_EQ(survey.obtainable(1), 1U);
    EXPECT_EQ(survey.obtainable(6), 2U);
    EXPECT_EQ(survey.obtainable(7), 3U);
}

TEST(Need, WithWhatTheDriverWritesDown) {
    EXPECT_EQ(need_of(3 * mib, block).blocks, 2U);
    EXPECT_EQ(need_of(3 * mib, block).pages, 1024U);
    EXPECT_EQ(need_of(5000, page_size()).blocks, 2U);
    EXPECT_EQ(need_of_driver(64 * block, block).blocks, 64U + 2);
    EXPECT_EQ(need_of_driver(64 * block, block).pages, 66U * 512);
}

Survey survey_with(std::uint64_t reclaimable, std::uint64_t movable, std::uint64_t pages) {
    Survey survey;

    survey.reclaimable = reclaimable;
    survey.movable = movable;
    survey.clean_pages = pages;
    return survey;
}

/// Room for 16 blocks, and two for the driver's metadata.
Preflight ask(const Zones &zones, const std::optional<Survey> &survey,
              const std::vector<Bound> &bounds = {}) {
    return preflight(16 * block, block, zones, survey, bounds);
}

TEST(Preflight, FourAnswers) {
    EXPECT_EQ(ask(zones_with(18, 0), {}).prospect, Prospect::fits);
    EXPECT_EQ(ask(zones_with(16, 1024), survey_with(0, 0, 0)).prospect, Prospect::none)
        << "no blocks for the rest";
    EXPECT_EQ(ask(zones_with(16, 1024), survey_with(1, 1, 0)).prospect, Prospect::after_compaction);
    EXPECT_EQ(ask(zones_with(16, 1024), {}).prospect, Prospect::after_compaction)
        << "where nobody looked";
    EXPECT_EQ(ask(zones_with(16, 0), survey_with(2, 0, 650)).prospect, Prospect::none)
        << "the kernel keeps some page cache";
    EXPECT_EQ(ask(zones_with(16, 0), survey_with(2, 0, 660)).prospect, Prospect::after_reclaim);
    EXPECT_EQ(ask(zones_with(4, 0, 6), {}).missing, (8832U - 4 * 512 - 4) * page_size());
}

TEST(Preflight, WhatIsToBeGivenBack) {
    const Preflight answer = ask(zones_with(10, 512), survey_with(9, 0, 8UL * 512));

    EXPECT_EQ(answer.prospect, Prospect::after_reclaim);
    EXPECT_EQ(answer.free, 10 * block);
    EXPECT_EQ(answer.to_reclaim, 8 * block);
}

TEST(Preflight, PageCacheInPlacesForDevicesIsOfNoUse) {
    const Procfs machine{.free = 16UL * 512 + 20, .cma = 2UL * 512, .large = 7};

    EXPECT_EQ(ask(machine.zones(), survey_with(3, 0, 2 * 512 + 1100)).prospect, Prospect::none);
    EXPECT_EQ(ask(machine.zones(), survey_with(4, 0, 2 * 512 + 1100)).prospect,
              Prospect::after_reclaim);
    EXPECT_EQ(ask(machine.zones(), survey_with(4, 0, 1100)).prospect, Prospect::none);
}

TEST(Preflight, ProtectedPageCacheIsOfNoUse) {
    const auto with = [](std::uint64_t pages) {
        return preflight(16 * block, block, zones_with(16, 0), survey_with(2, 0, 1320), {},
                         Protection({{.path = "/a",
                                      .usage = pages * page_size(),
                                      .min = UMACCT_UNLIMITED,
                                      .cache = pages * page_size()}},
                                    true));
    };

    EXPECT_EQ(with(660).prospect, Prospect::after_reclaim);
    EXPECT_EQ(with(660).kept, 660 * page_size());
    EXPECT_EQ(with(660).kept_by, "") << "it is not in the way";
    EXPECT_EQ(with(670).prospect, Prospect::none);
    EXPECT_EQ(with(670).kept_by, "/a");
}

TEST(Preflight, LimitsAreInTheWay) {
    const Zones plenty = zones_with(1000, 0);

    EXPECT_EQ(ask(plenty, {}, {{"a", 16 * block, 16 * block}}).prospect, Prospect::fits);
    const Preflight no = ask(plenty, {}, {{"a", 15 * block, 15 * block}, {"b", 0, 14 * block}});
    EXPECT_EQ(no.prospect, Prospect::none);
    EXPECT_EQ(no.missing, 2 * block);
    EXPECT_EQ(no.bound->what, "b");
    const Preflight later = ask(plenty, {}, {{"a", 15 * block, 20 * block}});
    EXPECT_EQ(later.prospect, Prospect::after_reclaim);
    EXPECT_EQ(later.to_reclaim, block);
}

TEST(Refill, NothingMoreThanIsMissing) {
    Refill refill(need_of(20 * block, block));

    EXPECT_EQ(refill.next(zones_with(20, 0)).action, Refill::Action::nothing);
    const Refill::Step much = refill.next(zones_with(2, 0));
    EXPECT_EQ(much.action, Refill::Action::reclaim);
    EXPECT_LE(much.bytes, 18 * block);
    const Refill::Step little = refill.next(zones_with(18, 1000));
    EXPECT_EQ(little.action, Refill::Action::reclaim);
    EXPECT_EQ(little.bytes, 24 * page_size());
}

TEST(Refill, PiecesArePutTogetherThenPageCacheOnceMore) {
    Refill refill(need_of(20 * block, block));
    const Zones pieces = zones_with(18, 1024);

    EXPECT_EQ(refill.next(pieces).action, Refill::Action::compact);
    std::uint64_t bytes = 0;
    int compactions = 0;
    for (Refill::Step step = refill.next(pieces); step.action != Refill::Action::give_up;
         step = refill.next(pieces)) {
        bytes += step.bytes;
        compactions += step.action == Refill::Action::compact ? 1 : 0;
        ASSERT_LT(compactions, 3);
    }
    EXPECT_EQ(bytes, 16 * block) << "of two blocks' worth, perhaps none is whole";
    EXPECT_EQ(compactions, 1);
    EXPECT_EQ(refill.next(zones_with(20, 0)).action, Refill::Action::nothing);
    EXPECT_EQ(refill.next(pieces).action, Refill::Action::compact) << "it begins again";
}

TEST(Refill, WhereFewBlocksAreLeftPageCacheComesFirst) {
    Refill refill(need_of(20 * block, block));
    const Zones pieces = zones_with(4, 17UL * 512);

    EXPECT_EQ(refill.next(pieces).bytes, 16 * block);
    EXPECT_EQ(refill.next(pieces).action, Refill::Action::compact);
    EXPECT_EQ(refill.next(pieces).action, Refill::Action::give_up);
    refill.restart();
    EXPECT_EQ(refill.next(pieces).action, Refill::Action::reclaim);
    refill.reclaimed(false);
    EXPECT_EQ(refill.next(pieces).action, Refill::Action::compact);
    EXPECT_EQ(refill.next(pieces).action, Refill::Action::give_up);
}

TEST(Refill, AsLongAsItGetsFurther) {
    Refill refill(need_of(20 * block, block));
    std::uint64_t missing = 8;
    std::uint64_t bytes = 0;

    // Half of what is given back is whole blocks, until two are missing.
    for (;;) {
        const Refill::Step step = refill.next(zones_with(20 - missing, 10UL * 512));

        if (step.action == Refill::Action::give_up)
            break;
        if (step.action != Refill::Action::reclaim)
            continue;
        bytes += step.bytes;
        missing = std::max<std::uint64_t>(2, missing - step.bytes / block / 2);
    }
    EXPECT_EQ(missing, 2U);
    EXPECT_EQ(bytes, (8 + 4 + 2 + 2 + 16) * block);
}

/// A real case: the first sixth of fragmented memory had no whole block.
TEST(Refill, TheLastBlockIsWorthSomePageCache) {
    Refill refill(need_of(800 * block, block));
    std::uint64_t bytes = 0;

    EXPECT_EQ(refill.next(zones_with(799, 1024)).action, Refill::Action::compact);
    while (bytes < 12 * block) {
        const Refill::Step step = refill.next(zones_with(799, 1024));

        ASSERT_EQ(step.action, Refill::Action::reclaim);
        EXPECT_EQ(step.bytes, block) << "no more than is missing at a time";
        bytes += step.bytes;
    }
    EXPECT_EQ(refill.next(zones_with(800, 1024)).action, Refill::Action::nothing);
}

TEST(Refill, NotForABlockAtATime) {
    Refill refill(need_of(200 * block, block));
    std::uint64_t missing = 20;
    std::uint64_t bytes = 0;

    for (;;) {
        const Refill::Step step = refill.next(zones_with(200 - missing, 30UL * 512));

        if (step.action == Refill::Action::give_up)
            break;
        bytes += step.bytes;
        missing -= step.action == Refill::Action::compact ? 1 : 0;
    }
    EXPECT_LE(bytes, 40 * block);
}

TEST(Refill, WhereNoPageCacheIsLeft) {
    Refill refill(need_of(20 * block, block));

    EXPECT_EQ(refill.next(zones_with(18, 0)).action, Refill::Action::reclaim);
    refill.reclaimed(false);
    EXPECT_EQ(refill.next(zones_with(18, 0)).action, Refill::Action::compact);
    EXPECT_EQ(refill.next(zones_with(18, 0)).action, Refill::Action::give_up);
}

class KeeperTest : public testing::Test {
protected:
    using State = Keeper::State;

    /// 64 blocks are kept, and one more while it fills.
    Keeper::Turn turn(const Zones &zones, std::chrono::milliseconds later = 10ms) {
        time_ += later;
        return keeper_.next(
            {.time = time_, .zones = zones, .stalled = stalled_, .refaults = refaults_});
    }

    Keeper keeper_{64 * block, block};
    Keeper::Clock::time_point time_{};
    std::chrono::microseconds stalled_{1000};
    std::uint64_t refaults_ = 77;
};

TEST_F(KeeperTest, LooksSeldomWhereAllIsWell) {
    turn(zones_with(64, 0));
    EXPECT_EQ(turn(zones_with(64, 0)).state, State::kept);
    EXPECT_EQ(turn(zones_with(64, 0)).wait, 100ms);
    for (int i = 0; i < 5; ++i)
        turn(zones_with(64 + 10240, 0));
    EXPECT_EQ(turn(zones_with(64 + 10240, 0)).wait, 1s);
    EXPECT_LE(turn(zones_with(9000, 0)).wait, 10ms) << "much was taken";
}

TEST_F(KeeperTest, FillsALittleMoreAndNoMore) {
    const Keeper::Turn first = turn(zones_with(63, 0));

    EXPECT_EQ(first.state, State::fills);
    EXPECT_EQ(first.step.action, Refill::Action::reclaim);
    EXPECT_EQ(first.step.bytes, 2 * block);
    EXPECT_EQ(turn(zones_with(64, 0)).step.bytes, block);
    EXPECT_EQ(turn(zones_with(65, 0)).state, State::kept);
    EXPECT_EQ(turn(zones_with(64, 0)).state, State::kept) << "it has what is kept";
}

TEST_F(KeeperTest, YieldsWhereWhatWasGivenBackIsWantedBack) {
    const auto reclaim = [&](std::uint64_t refaulted, std::chrono::milliseconds stalled) {
        turn(zones_with(40, 0));
        keeper_.reclaimed(true, 1000, 100ms);
        refaults_ += refaulted;
        stalled_ += stalled;
        return turn(zones_with(40, 0), 600ms);
    };

    EXPECT_EQ(reclaim(1000, 100ms).state, State::fills) << "that was its own waiting";
    EXPECT_EQ(reclaim(100, 500ms).state, State::fills) << "others wait for something else";
    const Keeper::Turn yields = reclaim(300, 300ms);
    EXPECT_EQ(yields.state, State::yields);
    EXPECT_EQ(yields.step.action, Refill::Action::nothing);
    EXPECT_EQ(yields.wait, 1s);
    EXPECT_EQ(reclaim(300, 300ms).wait, 2s) << "and longer, if it is no better then";
    EXPECT_EQ(reclaim(0, 0ms).state, State::fills);
    EXPECT_EQ(reclaim(300, 300ms).wait, 1s);
}

TEST_F(KeeperTest, TriesAgainWhatCannotBeHad) {
    const Zones pieces = zones_with(60, 5 * 512 + 100);
    const auto until_it_lacks = [&] {
        int compactions = 0;

        for (int i = 0; i < 100; ++i) {
            const Keeper::Turn next = turn(pieces);

            if (next.state == State::lacks)
                break;
            compactions += next.step.action == Refill::Action::compact ? 1 : 0;
        }
        return compactions;
    };

    EXPECT_EQ(until_it_lacks(), 2);
    EXPECT_EQ(turn(pieces).state, State::lacks);
    EXPECT_GT(turn(pieces).wait, 0ms) << "it doesn't spin";
    EXPECT_EQ(turn(zones_with(60, 0)).step.action, Refill::Action::reclaim)
        << "for pages it needn't wait";
    turn(pieces, 1100ms);
    EXPECT_EQ(until_it_lacks(), 2);
    turn(pieces, 1100ms);
    EXPECT_EQ(until_it_lacks(), 0) << "it waits twice as long";
}

TEST_F(KeeperTest, TriesAtOnceWhereMoreIsTaken) {
    const Zones pieces = zones_with(60, 5 * 512 + 100);

    for (int i = 0; i < 10; ++i)
        turn(pieces);
    EXPECT_EQ(turn(pieces).state, State::lacks);
    EXPECT_EQ(turn(zones_with(58, 7 * 512 + 100)).step.action, Refill::Action::nothing);
    EXPECT_EQ(turn(zones_with(58, 7 * 512 + 100)).step.action, Refill::Action::nothing);
    turn(zones_with(50, 15 * 512 + 100));
    EXPECT_EQ(turn(zones_with(50, 15 * 512 + 100)).step.action, Refill::Action::compact);
}

TEST(Instance, IsOne) {
    const test::Sandbox sandbox;
    const auto root = sandbox.proc().parent_path();

    EXPECT_FALSE(Instance::running(root));
    {
        const Instance instance(root);

        // A lock is no obstacle to who holds it: another process has to ask.
        const pid_t child = fork();
        if (child == 0)
            _exit(Instance::running(root) == getppid() ? 0 : 1);
        int status = 1;
        waitpid(child, &status, 0);
        EXPECT_EQ(status, 0);
    }
    EXPECT_FALSE(Instance::running(root));
}

class ReclaimerTest : public testing::Test {
protected:
    static std::string read(const std::filesystem::path &file) {
        std::ifstream in(file);
        std::ostringstream text;

        text << in.rdbuf();
        return text.str();
    }

    std::filesystem::path root() const { return sandbox_.proc().parent_path(); }

    Reclaimer reclaimer(bool anonymous) const {
        return {cgroups_, sandbox_.proc(), root(), anonymous};
    }

    test::Sandbox sandbox_;
    Cgroups cgroups_{sandbox_.proc()};
};

TEST_F(ReclaimerTest, PageCacheAloneUnlessTold) {
    const auto file = sandbox_.cgroup_mount() / "memory.reclaim";

    EXPECT_THROW(reclaimer(false).reclaim(4096), Error);
    sandbox_.write(file, "");
    EXPECT_TRUE(reclaimer(false).reclaim(4096));
    EXPECT_EQ(read(file), "4096 swappiness=0");
    sandbox_.write(file, "");
    EXPECT_TRUE(reclaimer(true).reclaim(8192));
    EXPECT_EQ(read(file), "8192");
}

TEST_F(ReclaimerTest, CompactsEachNode) {
    EXPECT_THROW(reclaimer(false).compact(), Error);
    sandbox_.write("proc/sys/vm/compact_memory", "");
    reclaimer(false).compact();
    EXPECT_EQ(read(sandbox_.proc() / "sys/vm/compact_memory"), "1");
    for (const char *node : {"node0", "node1"})
        sandbox_.write(root() / "sys/devices/system/node" / node / "compact", "");
    reclaimer(false).compact();
    for (const char *node : {"node0", "node1"})
        EXPECT_EQ(read(root() / "sys/devices/system/node" / node / "compact"), "1");
    std::filesystem::create_directories(root() / "sys/devices/system/node/node2/compact");
    EXPECT_THROW(reclaimer(false).compact(), Error);
}

} // namespace
} // namespace umacct
