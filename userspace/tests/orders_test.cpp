// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/orders/carry_out.h"

#include <cerrno>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include "lib/error.h"
#include "lib/host/umacctd.h"
#include "lib/owners/identity.h"
#include "tests/fake_module.h"
#include "tests/sandbox.h"

namespace umacct {
namespace {

constexpr std::uint64_t gib = 1ULL << 30;

/// "hard=max" with the number that the kernel has for it.
std::string with_max(std::string text) {
    for (std::size_t at = 0; (at = text.find("max", at)) != std::string::npos;)
        text.replace(at, 3, std::to_string(UMACCT_UNLIMITED));
    return text;
}

Order order(const std::string &text) {
    const auto read = Order::of(with_max(text));

    EXPECT_TRUE(read) << text;
    return read.value_or(Order());
}

/// "hard=4 rule, soft=4 rule lowered"
std::string words(const Settled &settled) {
    std::string text;

    for_each_setting([&](const auto &setting) {
        const auto value = static_cast<std::uint64_t>(*(settled.values.*setting.change));
        const bool lowered = setting.attribute == UMACCT_A_ACCOUNT_SOFT && settled.soft_lowered;

        if (settled.by(setting.attribute) == Author::nobody) {
            EXPECT_EQ(*(settled.values.*setting.change), setting.neutral);
            return;
        }
        text += fmt::format("{}{}={} {}{}", text.empty() ? "" : ", ", setting.policy,
                            value == UMACCT_UNLIMITED ? "max" : std::to_string(value),
                            name_of(settled.by(setting.attribute)), lowered ? " lowered" : "");
    });
    return text;
}

struct Row {
    const char *rule = "";
    const char *container = "";
    const char *person = "";
    const char *settled = "";
    std::uint64_t most_keep = 0;
};

/// The rules of settling.
constexpr Row rows[] = {
    // A setting that no order asks for is neutral.
    {"", "", "", ""},
    {"hard=4", "", "", "hard=4 rule"},
    {"", "hard=4", "", "hard=4 container"},
    {"", "", "hard=4", "hard=4 person"},
    {"soft=4", "", "", "soft=4 rule"},
    {"", "soft=4", "", "soft=4 container"},
    {"", "", "soft=4", "soft=4 person"},
    {"throttle=9", "", "", "throttle=9 rule"},
    {"", "", "throttle=9", "throttle=9 person"},
    {"keep=9", "", "", "keep=9 rule"},
    {"", "", "keep=9", "keep=9 person"},
    {"view=1", "", "", "view=1 rule"},
    {"", "view=1", "", "view=1 container"},
    {"", "", "view=1", "view=1 person"},
    {"charge=2", "", "", "charge=2 rule"},
    {"", "charge=2", "", "charge=2 container"},
    {"", "", "charge=2", "charge=2 person"},
    // The lower limit of a rule and a container holds.
    {"hard=4", "hard=5", "", "hard=4 rule"},
    {"hard=5", "hard=4", "", "hard=4 container"},
    {"hard=4", "hard=4", "", "hard=4 rule"},
    {"hard=5", "hard=0", "", "hard=0 container"},
    {"hard=0", "hard=5", "", "hard=0 rule"},
    {"hard=5", "hard=max", "", "hard=5 rule"},
    {"hard=max", "hard=5", "", "hard=5 container"},
    {"hard=max", "", "", "hard=max rule"},
    {"soft=4", "soft=5", "", "soft=4 rule"},
    {"soft=5", "soft=4", "", "soft=4 container"},
    {"soft=max", "soft=4", "", "soft=4 container"},
    // A container's memory limit stands in for a rule's hard limit.
    {"", "memory=7", "", "hard=7 container"},
    {"", "hard=9 memory=7", "", "hard=7 container"},
    {"", "hard=6 memory=7", "", "hard=6 container"},
    {"", "hard=max memory=7", "", "hard=7 container"},
    {"hard=9", "memory=7", "", "hard=9 rule"},
    {"hard=max", "memory=7", "", "hard=max rule"},
    {"hard=9", "hard=8 memory=7", "", "hard=8 container"},
    {"soft=9", "memory=7", "", "hard=7 container, soft=7 rule lowered"},
    // A soft limit is never above the hard one.
    {"hard=4 soft=6", "", "", "hard=4 rule, soft=4 rule lowered"},
    {"hard=4 soft=3", "", "", "hard=4 rule, soft=3 rule"},
    {"soft=8", "hard=4", "", "hard=4 container, soft=4 rule lowered"},
    {"hard=4", "soft=8", "", "hard=4 rule, soft=4 container lowered"},
    {"hard=4 soft=max", "", "", "hard=4 rule, soft=max rule"},
    {"soft=max", "hard=4", "", "hard=4 container, soft=max rule"},
    {"hard=4", "", "soft=8", "hard=4 rule, soft=4 person lowered"},
    {"", "hard=4", "soft=8", "hard=4 container, soft=4 person lowered"},
    {"soft=8", "", "hard=4", "hard=4 person, soft=4 rule lowered"},
    {"hard=9 soft=8", "", "hard=4", "hard=4 person, soft=4 rule lowered"},
    {"hard=4 soft=3", "", "hard=9", "hard=9 person, soft=3 rule"},
    {"", "", "hard=4 soft=8", "hard=4 person, soft=8 person"}, // the module refuses it
    // A person's order replaces both, setting by setting.
    {"hard=4", "hard=5", "hard=9", "hard=9 person"},
    {"hard=4", "hard=5", "hard=3", "hard=3 person"},
    {"hard=4", "", "hard=max", "hard=max person"},
    {"", "memory=7", "hard=9", "hard=9 person"},
    {"hard=4 view=1", "", "view=0", "hard=4 rule, view=0 person"},
    {"hard=4 view=1", "", "hard=5", "hard=5 person, view=1 rule"},
    {"throttle=9", "", "throttle=0", "throttle=0 person"},
    {"charge=2", "charge=2", "charge=1", "charge=1 person"},
    {"keep=4", "keep=3", "keep=9", "keep=9 person"},
    {"soft=4", "soft=3", "soft=9", "soft=9 person"},
    // A guarantee is the administrator's to give.
    {"", "keep=5", "", ""},
    {"", "keep=5", "", "keep=3 container", 3},
    {"", "keep=2", "", "keep=2 container", 3},
    {"keep=4", "keep=5", "", "keep=4 rule", 9},
    {"keep=5", "keep=4", "", "keep=4 container", 9},
    {"keep=4", "keep=0", "", "keep=0 container", 9},
    {"keep=0", "keep=5", "", "keep=0 rule", 9},
    // A view and charging that a rule or a container has on are on.
    {"view=1", "view=0", "", "view=1 rule"},
    {"view=0", "view=1", "", "view=1 container"},
    {"", "view=0", "", ""},
    {"charge=2", "charge=1", "", "charge=2 rule"},
    {"charge=1", "charge=2", "", "charge=2 container"},
    {"", "charge=1", "", ""},
    {"charge=1", "", "", "charge=1 rule"},
};

TEST(Settle, ByTheRules) {
    static_assert(std::size(rows) >= 60);

    for (const Row &row : rows) {
        Orders orders;

        orders.rule.asked = order(row.rule).asked;
        orders.rule.most_keep = row.most_keep;
        orders.container = order(row.container);
        orders.person = order(row.person);
        EXPECT_EQ(words(settle(orders)), row.settled)
            << "rule " << row.rule << ", container " << row.container << ", person " << row.person;
    }
}

TEST(Settle, SaysWhy) {
    Orders orders;
    const auto hard_and_soft = [&] {
        const Settled settled = settle(orders);
        std::string text;

        for_each_setting([&](const auto &setting) {
            if (setting.kind == SettingKind::limit)
                text += why(orders, settled, setting) + "\n";
        });
        return text;
    };

    EXPECT_EQ(hard_and_soft(), "\n\n");
    orders.rule = {.asked = {.hard = 4 * gib, .soft = 2 * gib},
                   .rule = "rule \"people\", /etc/umacct.toml:12"};
    EXPECT_EQ(hard_and_soft(), "by rule \"people\", /etc/umacct.toml:12\n"
                               "by rule \"people\", /etc/umacct.toml:12\n");
    orders.container.asked.hard = 8 * gib;
    EXPECT_EQ(hard_and_soft(),
              "by rule \"people\", /etc/umacct.toml:12; the container asked for 8.00 GiB\n"
              "by rule \"people\", /etc/umacct.toml:12\n");
    orders.person.asked.hard = gib;
    orders.person.times[UMACCT_A_ACCOUNT_HARD] = 1;
    EXPECT_TRUE(hard_and_soft().starts_with("by a person at 19")) << "and when";
    EXPECT_TRUE(hard_and_soft().ends_with(
        "; rule \"people\", /etc/umacct.toml:12, says 4.00 GiB; the container asked for 8.00 GiB\n"
        "lowered to the hard limit; rule \"people\", /etc/umacct.toml:12, says 2.00 GiB\n"))
        << hard_and_soft();
    orders = {};
    orders.container.memory_limit = gib;
    EXPECT_EQ(hard_and_soft(), "by the container's memory limit\n\n");
    orders.container.asked.hard = gib / 2;
    EXPECT_EQ(hard_and_soft(), "as the container asked\n\n");
}

TEST(Order, TextAndBack) {
    const Order all{.asked = {.hard = UMACCT_UNLIMITED,
                              .soft = gib,
                              .keep = 1,
                              .view = true,
                              .charge = UMACCT_CHARGE_OFF},
                    .memory_limit = 2 * gib,
                    .times = {{UMACCT_A_ACCOUNT_SOFT, 1795840000}}};

    EXPECT_EQ(Order::of(all.text()), all) << all.text();
    EXPECT_EQ(Order().text(), "");
    EXPECT_EQ(Order::of(""), Order());
    EXPECT_EQ(Order::of("hard=5")->asked.hard, 5);
    for (const char *wrong : {"hard", "hard=", "hard=x", "hard=-1", "hard=5x", "nothing=1", "=1",
                              "view=2", "charge=3", "hard=5  soft=4", "hard=5@x"})
        EXPECT_EQ(Order::of(wrong), std::nullopt) << wrong;
}

class OrdersTest : public testing::Test {
protected:
    OrdersTest() {
        sandbox_.add_cgroup("/a");
        sandbox_.add_cgroup("/");
    }

    /// Whether a file system has such attributes, for this process.
    bool has_attributes() const {
        return book_.keep_container("/a", {.asked = {.view = true}}) == 0;
    }

    test::Sandbox sandbox_;
    test::FakeModule fake_;
    Machine machine_{sandbox_.proc(), sandbox_.root()};
    OrderBook book_{machine_.cgroups(), sandbox_.root()};
};

TEST_F(OrdersTest, AContainersGoesWithItsCgroup) {
    const Order order{.asked = {.hard = gib}};

    EXPECT_EQ(book_.container("/a"), Order());
    EXPECT_EQ(book_.container("/b"), Order());
    EXPECT_EQ(book_.keep_container("/b", order), ENOENT);
    if (!has_attributes())
        GTEST_SKIP() << "trusted attributes take CAP_SYS_ADMIN and a file system that has them";
    EXPECT_EQ(book_.keep_container("/a", order), 0);
    EXPECT_EQ(book_.container("/a"), order);
    EXPECT_EQ(book_.keep_container("/a", {.asked = {.view = true}}), 0);
    EXPECT_EQ(book_.container("/a").asked.hard, std::nullopt);
    std::filesystem::remove_all(sandbox_.cgroup_mount() / "a");
    sandbox_.add_cgroup("/a");
    EXPECT_EQ(book_.container("/a"), Order());
}

TEST_F(OrdersTest, APersonsIsKeptWhereNoAttributeCanBe) {
    const Order order{.asked = {.hard = gib}, .times = {{UMACCT_A_ACCOUNT_HARD, 7}}};

    for (const char *path : {"/a", "/"}) {
        EXPECT_EQ(book_.keep_person(path, order), 0) << path;
        EXPECT_EQ(book_.person(path), order) << path;
    }
    EXPECT_EQ(book_.keep_person("/b", order), ENOENT);
    EXPECT_EQ(book_.keep_person("/a", Order()), 0);
    EXPECT_EQ(book_.person("/a"), Order());
    EXPECT_EQ(book_.person("/"), order);
    // An order that was written while the file system was read-only comes first.
    sandbox_.write("run/umacctd/persons",
                   std::to_string(machine_.cgroups().id("/a")) + " hard=5@6\n");
    EXPECT_EQ(book_.person("/a").asked.hard, 5);
    EXPECT_EQ(book_.keep_person("/a", Order()), 0);
    EXPECT_EQ(book_.person("/a"), Order());
}

TEST_F(OrdersTest, WhatTheModuleRefusesIsNoOrder) {
    Module module(fake_.connect());
    const auto ask = [&](const PersonChange &change) {
        return carry_out(machine_, module,
                         {.path = "/a",
                          .id = machine_.cgroups().id("/a"),
                          .rule = {.asked = {.hard = 4 * gib}},
                          .person = change,
                          .extent = Extent::named});
    };

    EXPECT_EQ(ask({.asked = {.hard = 2 * gib}}).set.hard, 2 * gib);
    fake_.refuse_with = EINVAL;
    EXPECT_THROW(ask({.asked = {.hard = gib}}), Error);
    EXPECT_EQ(book_.person("/a").asked.hard, 2 * gib);
    fake_.refuse_with.reset();
    EXPECT_EQ(ask({.taken_back = {UMACCT_A_ACCOUNT_HARD}}).set.hard, 4 * gib) << "the rule's";
    EXPECT_TRUE(book_.person("/a").empty());
    EXPECT_EQ(ask({.asked = {.view = false}}).set.view, std::nullopt);
    EXPECT_TRUE(book_.person("/a").empty()) << "as nobody asks for a view";
    ask({.asked = {.hard = UMACCT_UNLIMITED}});
    EXPECT_EQ(book_.person("/a").asked.hard, UMACCT_UNLIMITED) << "against a rule";
}

TEST_F(OrdersTest, ASoftLimitThatWasLoweredComesBackWithTheHardOne) {
    Module module(fake_.connect());
    Account account;
    const auto ask = [&](const PersonChange &change) {
        return carry_out(machine_, module,
                         {.path = "/a",
                          .id = machine_.cgroups().id("/a"),
                          .rule = {.asked = {.hard = 4 * gib, .soft = 3 * gib}},
                          .person = change,
                          .extent = Extent::named})
            .set;
    };

    account.id = machine_.cgroups().id("/a");
    account.path = "/a";
    account.hard = 4 * gib;
    account.soft = 3 * gib;
    fake_.accounts = {account};
    EXPECT_EQ(ask({.asked = {.hard = 2 * gib}}).soft, 2 * gib);
    fake_.accounts.front().hard = fake_.accounts.front().soft = 2 * gib;
    const AccountChange back = ask({.taken_back = {UMACCT_A_ACCOUNT_HARD}});
    EXPECT_EQ(back.hard, 4 * gib);
    EXPECT_EQ(back.soft, 3 * gib);
}

TEST_F(OrdersTest, ARuleThatWasChosenBeforeTheHookNamedItIsNotSet) {
    Module module(fake_.connect());
    const auto set = [&](bool is_named) {
        carry_out(machine_, module,
                  {.path = "/a",
                   .id = machine_.cgroups().id("/a"),
                   .rule = {.asked = {.hard = gib}},
                   .is_named = is_named,
                   .setter = OrderLock::Setter::daemon});
    };

    if (!has_attributes())
        GTEST_SKIP() << "trusted attributes take CAP_SYS_ADMIN and a file system that has them";
    ASSERT_EQ(keep_owner(machine_.cgroups(), "/a", {.kind = OwnerKind::container, .name = "vllm"}),
              0);
    EXPECT_THROW(set(false), OwnerChanged);
    EXPECT_TRUE(fake_.changes.empty());
    set(true);
    EXPECT_EQ(fake_.changes.size(), 1U);
}

TEST_F(OrdersTest, OfTheReserveTheHigherOneHolds) {
    Module module(fake_.connect());
    const auto reserve = [&](std::optional<std::uint64_t> policy) {
        MachineOrder order;

        order.asked.reserve = policy;
        return carry_out(machine_, module, order, false).set.reserve;
    };

    fake_.status.reserve = gib;
    EXPECT_EQ(reserve(gib), std::nullopt) << "it is so";
    EXPECT_EQ(reserve({}), 0U);
    sandbox_.write("run/umacctd/guard", "reserve 4294967296\nfrozen /a\n");
    EXPECT_EQ(reserve(2 * gib), 4 * gib);
    EXPECT_EQ(reserve(8 * gib), 8 * gib);
    EXPECT_EQ(reserve({}), 4 * gib);
}

TEST_F(OrdersTest, ARuleOfAnOlderPolicyIsNotSet) {
    Module module(fake_.connect());
    const auto set = [&](const std::optional<std::string> &mark) {
        carry_out(machine_, module,
                  {.path = "/a",
                   .id = machine_.cgroups().id("/a"),
                   .rule = {.asked = {.hard = gib}},
                   .mark = mark});
        return std::exchange(fake_.changes, {}).size();
    };

    EXPECT_EQ(set(policy_mark(sandbox_.root())), 1U) << "umacctd never ran";
    const std::string none = policy_mark(sandbox_.root());
    sandbox_.write(std::filesystem::path(kept_policy) / "0000-umacct.toml", "");
    EXPECT_THROW(set(none), PolicyChanged);
    EXPECT_TRUE(fake_.changes.empty());
    EXPECT_EQ(set(policy_mark(sandbox_.root())), 1U);
    EXPECT_EQ(set({}), 1U) << "umacctd's own is never old";
}

TEST_F(OrdersTest, UmacctdLearnsThatAnotherHangsWithTheLock) {
    const OrderLock hangs(sandbox_.root(), OrderLock::Setter::other);

    EXPECT_FALSE(OrderLock(sandbox_.root(), OrderLock::Setter::daemon).is_held());
}

TEST_F(OrdersTest, OneAtATime) {
    const std::filesystem::path file = sandbox_.root() / order_lock_file;
    const auto is_free = [&] {
        const FileDescriptor other(open(file.c_str(), O_RDWR | O_CLOEXEC));

        return other.get() >= 0 && flock(other.get(), LOCK_EX | LOCK_NB) == 0;
    };

    for (const auto setter : {OrderLock::Setter::daemon, OrderLock::Setter::other}) {
        {
            const OrderLock lock(sandbox_.root(), setter);
            EXPECT_FALSE(is_free());
        }
        EXPECT_TRUE(is_free());
    }
}

} // namespace
} // namespace umacct
