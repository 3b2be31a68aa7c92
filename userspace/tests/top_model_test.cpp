// SPDX-License-Identifier: GPL-2.0-or-later
/// Readings of top become rates, histories, orders, filters, folds, notices.
#include <gtest/gtest.h>

#include "lib/error.h"
#include "tool/top/model.h"

namespace umacct::tool {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t mib = 1ULL << 20;

class TopModelTest : public testing::Test {
protected:
    TopModelTest() {
        add("/", 1, {}, 0);
        add("/a", 2, 1, 24 * mib);
        add("/a/one", 3, 2, 16 * mib);
        add("/a/two", 4, 2, 8 * mib);
        add("/idle", 5, 1, 0);
        sample_.accounts[0].usage = 24 * mib;
        sample_.accounts[3].effective = sample_.accounts[3].hard = 32 * mib;
        sample_.memory[3].current = 2 * mib;
        sample_.memory[4].current = 3 * mib;
        add_client(10, "alpha", 3, "/a/one", 16 * mib);
        add_client(11, "Beta", 4, "/a/two", 8 * mib);
    }

    void add(const std::string &path, std::uint64_t id, std::optional<std::uint64_t> parent,
             std::uint64_t usage) {
        Account account;

        account.id = id;
        account.parent_id = parent;
        account.path = path;
        account.usage = account.peak = usage;
        sample_.accounts.push_back(account);
    }

    void add_client(std::uint32_t pid, const std::string &comm, std::uint64_t account,
                    const std::string &path, std::uint64_t usage) {
        Client client;

        client.pid = pid;
        client.comm = comm;
        client.account_id = account;
        client.path = path;
        client.usage = client.peak = usage;
        sample_.clients.push_back(client);
    }

    /// Reads again, that much later.
    void take(std::chrono::milliseconds later = 1000ms) {
        sample_.time += later;
        model_.take(sample_);
    }

    std::string names() {
        std::string names;

        for (const TopRow &row : model_.rows())
            names += (names.empty() ? "" : " ") + row.name;
        return names;
    }

    void sort(const char *name) { model_.sort = &column(name, Of::both, ""); }

    TopRow row(std::uint64_t id) {
        for (const TopRow &row : model_.rows()) {
            if (row.key.account == id)
                return row;
        }
        ADD_FAILURE() << "no row of " << id;
        return {};
    }

    TopSample sample_;
    Owners owners_{"/nowhere"};
    TopModel model_{owners_};
};

TEST_F(TopModelTest, IsATreeOfWhatHoldsMemory) {
    take();
    EXPECT_EQ(names(), "/ a one two");
    EXPECT_EQ(row(3).depth, 2);
    EXPECT_TRUE(row(2).parent);
    EXPECT_FALSE(row(3).parent);
    EXPECT_EQ(row(3).memory.current, 2 * mib);
    EXPECT_EQ(row(2).memory.current, std::nullopt);
    EXPECT_EQ(row(4).account->effective, 32 * mib);
    model_.all = true;
    EXPECT_EQ(names(), "/ a one two idle");
}

TEST_F(TopModelTest, BeforeTheFirstReadingThereIsNothing) {
    EXPECT_EQ(names(), "");
    EXPECT_EQ(model_.selected(model_.rows()), 0U);
    EXPECT_EQ(model_.account(3), nullptr);
    model_.processes = true;
    EXPECT_EQ(names(), "");
}

TEST_F(TopModelTest, TheRateIsTheChangePerSecond) {
    take();
    EXPECT_EQ(row(3).rate, std::nullopt);
    sample_.accounts[2].usage += 6 * mib;
    sample_.clients[0].usage += 6 * mib;
    take(2000ms);
    EXPECT_EQ(row(3).rate, 3LL << 20);
    EXPECT_EQ(row(4).rate, 0);
    model_.processes = true;
    EXPECT_EQ(row(3).rate, 3LL << 20);
    model_.processes = false;
    sample_.accounts[2].usage -= mib;
    take(500ms);
    EXPECT_EQ(row(3).rate, -(2LL << 20));
    EXPECT_EQ(row(3).history, (std::vector<std::uint64_t>{16 * mib, 22 * mib, 21 * mib}));
}

TEST_F(TopModelTest, WhatAppearsLaterCameFromNothing) {
    take();
    add("/b", 6, 1, 4 * mib);
    take();
    EXPECT_EQ(row(6).rate, 4LL << 20);
}

TEST_F(TopModelTest, AHistoryDoesNotGrowForEver) {
    for (int i = 0; i < 1000; ++i)
        take();
    EXPECT_EQ(row(3).history.size(), 120U);
}

TEST_F(TopModelTest, SiblingsAreSortedByAnyColumn) {
    const std::vector<std::pair<const char *, const char *>> wanted{
        {"usage", "/ a one two"},     {"peak", "/ a two one"},           {"limit", "/ a one two"},
        {"rate", "/ a two one"},      {"memory.current", "/ a two one"}, {"name", "/ a one two"},
        {"uncharged", "/ a two one"},
    };

    sample_.accounts[2].charged = 12 * mib;
    sample_.accounts[3].peak = 100 * mib;
    take();
    sample_.accounts[2].usage -= mib;
    take();
    for (const auto &[name, order] : wanted) {
        sort(name);
        model_.reversed = false;
        EXPECT_EQ(names(), order) << name;
        model_.reversed = true;
        EXPECT_NE(names(), order) << name;
    }
}

TEST_F(TopModelTest, ProcessesAreSortedByAnyColumn) {
    model_.processes = true;
    sample_.clients[1].peak = 100 * mib;
    take();
    EXPECT_EQ(names(), "alpha Beta");
    for (const char *name : {"peak", "memory.current", "name"}) {
        sort(name);
        EXPECT_EQ(names(), "Beta alpha") << name;
    }
    model_.reversed = true;
    EXPECT_EQ(names(), "alpha Beta");
    sort("limit");
    EXPECT_EQ(names(), "Beta alpha");
    EXPECT_EQ(row(4).account->effective, 32 * mib);
}

TEST_F(TopModelTest, EveryColumnHasANameThatFindsIt) {
    for (const Column &each : columns())
        EXPECT_EQ(&column(each.name, Of::both, ""), &each);
    EXPECT_THROW(column("colour", Of::both, "--sort"), Error);
    EXPECT_THROW(column("pid", Of::accounts, "--sort"), Error);
}

TEST_F(TopModelTest, AFilterKeepsMatchesAndWhatIsAboveThem) {
    take();
    model_.filter = "TWO";
    EXPECT_EQ(names(), "/ a two");
    model_.filter = "/a/o";
    EXPECT_EQ(names(), "/ a one");
    model_.filter = "nothing";
    EXPECT_EQ(names(), "");
    model_.processes = true;
    model_.filter = "beta";
    EXPECT_EQ(names(), "Beta");
    model_.filter = "10";
    EXPECT_EQ(names(), "alpha");
    model_.filter = "/a/";
    EXPECT_EQ(names(), "alpha Beta");
}

TEST_F(TopModelTest, AFoldHidesWhatIsBelowUnlessItIsSearched) {
    take();
    model_.fold(2);
    EXPECT_EQ(names(), "/ a");
    EXPECT_FALSE(row(2).open);
    model_.filter = "two";
    EXPECT_EQ(names(), "/ a two");
    model_.filter = "";
    model_.fold(1);
    EXPECT_EQ(names(), "/");
    model_.unfold(1);
    EXPECT_EQ(names(), "/ a");
    model_.unfold_all();
    EXPECT_EQ(names(), "/ a one two");
}

TEST_F(TopModelTest, TheChosenRowStaysChosenWhereverItMoves) {
    sort("usage");
    take();
    model_.select(row(4));
    EXPECT_EQ(model_.selected(model_.rows()), 3U);
    sample_.accounts[3].usage = 20 * mib;
    take();
    EXPECT_EQ(model_.selected(model_.rows()), 2U);
    model_.filter = "one"; // it is hidden: the row in its place
    EXPECT_EQ(model_.selected(model_.rows()), 2U);
    EXPECT_EQ(model_.rows()[2].name, "one");
    model_.filter = "none";
    EXPECT_EQ(model_.selected(model_.rows()), 0U);
}

TEST_F(TopModelTest, ARefusalIsToldOnceOfTheLowestAccountAndShownForAWhile) {
    sample_.accounts[0].refusals = sample_.accounts[1].refusals = 7;
    take();
    EXPECT_TRUE(model_.notices().empty());
    for (const std::size_t i : {0U, 1U, 2U})
        sample_.accounts[i].refusals += 2;
    take();
    ASSERT_EQ(model_.notices().size(), 1U);
    EXPECT_TRUE(model_.notices()[0].refusal);
    EXPECT_EQ(model_.notices()[0].text, "2 allocations refused: /a/one");
    EXPECT_TRUE(row(3).refused);
    EXPECT_FALSE(row(4).refused);
    take();
    EXPECT_TRUE(model_.notices().empty());
    EXPECT_TRUE(row(3).refused);
    take(10s);
    EXPECT_FALSE(row(3).refused);
}

TEST_F(TopModelTest, BeingAboveTheSoftLimitShows) {
    sample_.accounts[3].soft = 4 * mib;
    take();
    EXPECT_TRUE(row(4).over_soft());
    EXPECT_FALSE(row(3).over_soft());
    model_.processes = true;
    EXPECT_TRUE(row(4).over_soft());
}

TEST_F(TopModelTest, ARemovedCgroupIsToldUnlessItWasIdle) {
    take();
    sample_.accounts.pop_back();
    sample_.accounts.pop_back();
    take();
    ASSERT_EQ(model_.notices().size(), 1U);
    EXPECT_EQ(model_.notices()[0].text, "cgroup removed: /a/two");
    EXPECT_EQ(names(), "/ a one");
}

TEST_F(TopModelTest, WhatBecameIdleStaysForAWhile) {
    take();
    sample_.accounts[3].usage = 0;
    take();
    EXPECT_EQ(names(), "/ a one two");
    EXPECT_EQ(row(4).rate, -(8LL << 20));
    sample_.accounts[3].hard.reset();
    for (int i = 0; i < 200; ++i)
        take();
    EXPECT_EQ(names(), "/ a one");
}

TEST_F(TopModelTest, WithoutTheModuleThereAreNoFiguresAndThenNoFalseRates) {
    take();
    model_.lose("it is gone");
    EXPECT_EQ(model_.problem(), "it is gone");
    EXPECT_EQ(names(), "");
    EXPECT_EQ(model_.sample(), nullptr);
    sample_.accounts[2].usage = mib;
    take();
    EXPECT_EQ(model_.problem(), "");
    EXPECT_EQ(row(3).rate, std::nullopt);
    EXPECT_TRUE(model_.notices().empty());
}

TEST_F(TopModelTest, NamesThatOthersChoseArePrintable) {
    sample_.accounts[3].path = "/a/\x1b[2J\n";
    sample_.clients[1].comm = "\x1b]0;x\x07";
    take();
    EXPECT_EQ(row(4).name, "?[2J?");
    model_.processes = true;
    EXPECT_EQ(row(4).name, "?]0;x?");
}

} // namespace
} // namespace umacct::tool
