// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/module/module.h"

#include <cerrno>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "lib/error.h"
#include "lib/module/stand_in.h"
#include "tests/fake_module.h"

namespace umacct {
namespace {

TEST(Module, DecodesAStatus) {
    test::FakeModule fake;

    fake.status.usage = 100;
    fake.status.charged = 30;
    fake.status.reason = "because";
    fake.status.hooks.push_back({.name = "view",
                                 .symbol = "si_meminfo",
                                 .state = UMACCT_HOOK_FAILED,
                                 .required = false,
                                 .reason = "no such symbol",
                                 .calls = 0,
                                 .missed = 3});

    const Status status = Module(fake.connect()).status();
    EXPECT_EQ(status.module_version, "0.1.0");
    EXPECT_EQ(status.driver_state, UMACCT_DRIVER_HOOKED);
    EXPECT_EQ(status.uncharged(), 70U);
    EXPECT_EQ(status.reason, "because");
    ASSERT_EQ(status.hooks.size(), 2U);
    EXPECT_TRUE(status.hooks[0].required);
    EXPECT_EQ(status.hooks[0].calls, 12U);
    EXPECT_EQ(status.hooks[1].state, UMACCT_HOOK_FAILED);
    EXPECT_EQ(status.hooks[1].missed, 3U);
    EXPECT_FALSE(status.hooks[1].required);
}

TEST(Module, ALimitOfAllOnesIsNoLimit) {
    test::FakeModule fake;
    Account limited;

    limited.id = 7;
    limited.path = "/a";
    limited.hard = 4096;
    fake.accounts = {limited};

    const auto account = Module(fake.connect()).account(7);
    ASSERT_TRUE(account);
    EXPECT_EQ(account->hard, 4096U);
    EXPECT_FALSE(account->soft);
    EXPECT_FALSE(account->effective);
    EXPECT_FALSE(account->parent_id);
    EXPECT_TRUE(account->configured());
}

TEST(Module, AnAccountThatIsNotThereIsNoError) {
    test::FakeModule fake;

    EXPECT_FALSE(Module(fake.connect()).account(7));
}

TEST(Module, AnInterruptedDumpIsReadAgain) {
    test::FakeModule fake;

    fake.accounts.resize(2);
    fake.interruptions = 3;
    EXPECT_EQ(Module(fake.connect()).accounts().size(), 2U);
    EXPECT_EQ(fake.dumps, 4);
}

TEST(Module, WhoInterruptsEveryDumpKeepsNobodyFromReading) {
    test::FakeModule fake;

    fake.accounts.resize(2);
    fake.interruptions = 1000;
    EXPECT_EQ(Module(fake.connect()).accounts().size(), 2U);
    EXPECT_LT(fake.dumps, 100);
}

TEST(Module, SendsOnlyWhatIsToChange) {
    test::FakeModule fake;
    AccountChange change;

    change.hard = UMACCT_UNLIMITED;
    change.view = false;
    Module(fake.connect()).set_account(9, change);
    ASSERT_EQ(fake.changes.size(), 1U);
    EXPECT_EQ(fake.changes[0].command, UMACCT_CMD_ACCOUNT_SET);

    const Payload &sent = fake.changes[0].attributes;
    EXPECT_EQ(test::attribute(sent, UMACCT_A_ACCOUNT_ID), 9U);
    EXPECT_EQ(test::attribute(sent, UMACCT_A_ACCOUNT_HARD), UMACCT_UNLIMITED);
    EXPECT_EQ(test::attribute(sent, UMACCT_A_ACCOUNT_VIEW), 0U);
    EXPECT_FALSE(test::attribute(sent, UMACCT_A_ACCOUNT_SOFT));
    EXPECT_FALSE(test::attribute(sent, UMACCT_A_ACCOUNT_THROTTLE));
    EXPECT_FALSE(test::attribute(sent, UMACCT_A_ACCOUNT_CHARGE));

    Module(fake.connect())
        .set_account(9, {.soft = 1, .throttle_ns = 2, .charge = UMACCT_CHARGE_ON});
    const Payload &others = fake.changes[1].attributes;
    EXPECT_EQ(test::attribute(others, UMACCT_A_ACCOUNT_SOFT), 1U);
    EXPECT_EQ(test::attribute(others, UMACCT_A_ACCOUNT_THROTTLE), 2U);
    EXPECT_EQ(test::attribute(others, UMACCT_A_ACCOUNT_CHARGE), UMACCT_CHARGE_ON);
    EXPECT_FALSE(test::attribute(others, UMACCT_A_ACCOUNT_HARD));
    EXPECT_FALSE(test::attribute(others, UMACCT_A_ACCOUNT_VIEW));
}

TEST(Module, SaysWhatBecomesOfAChange) {
    test::FakeModule fake;
    Module module(fake.connect());

    fake.enforcement = {.driver_state = UMACCT_DRIVER_UNKNOWN, .reason = "no such version"};
    for (const Enforcement &made : {module.set_account(9, {.hard = 1}), module.set_reserve(1),
                                    module.set_charge_default(UMACCT_CHARGE_ON)}) {
        EXPECT_EQ(made.driver_state, UMACCT_DRIVER_UNKNOWN);
        EXPECT_EQ(made.reason, "no such version");
    }
}

TEST(Module, SetsWhatHoldsForTheMachine) {
    test::FakeModule fake;

    Module(fake.connect()).set_reserve(4096);
    Module(fake.connect()).set_charge_default(UMACCT_CHARGE_OFF);
    ASSERT_EQ(fake.changes.size(), 2U);
    EXPECT_EQ(fake.changes[0].command, UMACCT_CMD_CONFIG_SET);
    EXPECT_EQ(test::attribute(fake.changes[0].attributes, UMACCT_A_STATUS_RESERVE), 4096U);
    EXPECT_FALSE(test::attribute(fake.changes[0].attributes, UMACCT_A_STATUS_CHARGE_DEFAULT));
    EXPECT_EQ(test::attribute(fake.changes[1].attributes, UMACCT_A_STATUS_CHARGE_DEFAULT),
              UMACCT_CHARGE_OFF);
    EXPECT_FALSE(test::attribute(fake.changes[1].attributes, UMACCT_A_STATUS_RESERVE));
}

TEST(Module, ASubtreeIsAskedForByItsId) {
    test::FakeModule fake;
    const auto add = [&fake](std::uint64_t id, const std::string &path) {
        fake.accounts.push_back({.id = id, .path = path});
        fake.clients.push_back({.pid = static_cast<std::uint32_t>(id), .path = path});
    };

    add(1, "/");
    add(2, "/a");
    add(3, "/a/b");
    add(4, "/ab");

    Module module(fake.connect());
    EXPECT_EQ(module.accounts().size(), 4U);
    EXPECT_EQ(module.clients().size(), 4U);
    EXPECT_EQ(module.accounts(1).size(), 4U);
    ASSERT_EQ(module.accounts(2).size(), 2U);
    EXPECT_EQ(module.accounts(2)[1].id, 3U);
    ASSERT_EQ(module.clients(2).size(), 2U);
    EXPECT_EQ(module.clients(2)[1].pid, 3U);
}

TEST(Module, TellsEventsAndWhatHappenedToThem) {
    test::FakeModule fake;

    fake.to_receive = {{.events = {encode(Event{.sequence = 1}), encode(Event{.sequence = 2})}},
                       {.events = {}, .overrun = true}};
    Module module(fake.connect());
    EXPECT_FALSE(fake.subscribed);
    module.subscribe();
    EXPECT_TRUE(fake.subscribed);

    const Received<Event> first = module.receive(std::chrono::seconds(1));
    ASSERT_EQ(first.events.size(), 2U);
    EXPECT_EQ(first.events[1].sequence, 2U);
    EXPECT_FALSE(first.overrun || first.gone);
    EXPECT_TRUE(module.receive(std::chrono::seconds(1)).overrun);
    EXPECT_TRUE(module.receive(std::chrono::seconds(1)).gone);
}

TEST(Module, OtherRefusalsThanOfAnUnknownAccountAreErrors) {
    test::FakeModule fake;

    fake.fail_with = EPERM;
    EXPECT_THROW(Module(fake.connect()).account(7), RequestError);
}

TEST(Connection, ConnectsOnFirstUseAndAnewWhenAsked) {
    test::FakeModule fake;
    int connects = 0;
    Connection connection([&] {
        ++connects;
        return fake.connect();
    });

    EXPECT_EQ(connects, 0);
    connection.module().status();
    connection.module().status();
    EXPECT_EQ(connects, 1);
    connection.reset();
    connection.module().status();
    EXPECT_EQ(connects, 2);
}

TEST(Module, ARefusalSaysWhichAttributeAndWhetherPrivilegeIsMissing) {
    const RequestError denied(EPERM, "", 0);
    const RequestError invalid(EINVAL, "too much", UMACCT_A_ACCOUNT_SOFT);

    EXPECT_EQ(denied.failure(), Failure::permission);
    EXPECT_STREQ(denied.what(), "permission denied");
    EXPECT_FALSE(denied.hint().empty());
    EXPECT_EQ(invalid.failure(), Failure::failed);
    EXPECT_STREQ(invalid.what(), "too much");
    EXPECT_EQ(invalid.attribute(), UMACCT_A_ACCOUNT_SOFT);
    EXPECT_STREQ(RequestError(ERANGE, "", 0).what(), "Numerical result out of range");
}

TEST(Module, ValuesHaveTheWordsOfTheAbi) {
    EXPECT_EQ(name_of(UMACCT_DRIVER_ABSENT), "absent");
    EXPECT_EQ(name_of(UMACCT_DRIVER_HOOKED), "hooked");
    EXPECT_EQ(name_of(UMACCT_DRIVER_UNKNOWN), "unknown");
    EXPECT_EQ(name_of(UMACCT_DRIVER_BROKEN), "broken");
    EXPECT_EQ(name_of(UMACCT_HOOK_IDLE), "idle");
    EXPECT_EQ(name_of(UMACCT_HOOK_ARMED), "armed");
    EXPECT_EQ(name_of(UMACCT_HOOK_OFF), "off");
    EXPECT_EQ(name_of(UMACCT_HOOK_FAILED), "failed");
    EXPECT_EQ(name_of(UMACCT_CHARGE_INHERIT), "inherit");
    EXPECT_EQ(name_of(UMACCT_CHARGE_OFF), "off");
    EXPECT_EQ(name_of(UMACCT_CHARGE_ON), "on");
    EXPECT_EQ(name_of(UMACCT_EVENT_SOFT_CROSSED), "soft_crossed");
    EXPECT_EQ(name_of(UMACCT_EVENT_SOFT_RECOVERED), "soft_recovered");
    EXPECT_EQ(name_of(UMACCT_EVENT_HARD_REFUSED), "hard_refused");
    EXPECT_EQ(name_of(UMACCT_EVENT_RESERVE_REFUSED), "reserve_refused");
}

TEST(Module, ValuesOfANewerModuleHaveAName) {
    EXPECT_EQ(name_of(static_cast<umacct_driver_state>(99)), "unknown");
    EXPECT_EQ(name_of(static_cast<umacct_event_type>(99)), "unknown");
}

TEST(Connection, AsksAnotherWhereTheModuleIsNotLoaded) {
    test::FakeModule other;
    const auto missing = []() -> std::unique_ptr<Transport> {
        throw Error(Failure::missing, "not loaded");
    };
    const auto refused = []() -> std::unique_ptr<Transport> {
        throw Error(Failure::permission, "not for you");
    };
    const auto otherwise = [&other] { return other.connect(); };

    other.status.usage = 7;
    EXPECT_EQ(Connection(missing, otherwise).module().status().usage, 7U);
    EXPECT_THROW(Connection(missing, otherwise).loaded(), Error);
    EXPECT_THROW(Connection(missing).module(), Error);
    EXPECT_THROW(Connection(refused, otherwise).module(), Error);
    try {
        Connection(missing, [] { return std::unique_ptr<Transport>(); }).module();
        ADD_FAILURE() << "nothing answers";
    } catch (const Error &error) {
        EXPECT_NE(error.hint().find("'umacct setup observer on' counts"), std::string::npos);
    }
}

TEST(StandIn, AnswersUntilTheModuleIsThere) {
    test::FakeModule module;
    test::FakeModule other;
    bool loaded = false;
    int asked = 0;
    const auto connect = [&]() -> std::unique_ptr<Transport> {
        ++asked;
        if (!loaded)
            throw Error(Failure::missing, "not loaded");
        return module.connect();
    };
    Module answers(until_loaded(other.connect(), connect));
    const auto usage_is = [&](std::uint64_t usage) {
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);

        while (answers.status().usage != usage && std::chrono::steady_clock::now() < until)
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        return answers.status().usage == usage;
    };

    module.status.usage = 1;
    other.status.usage = 2;
    EXPECT_TRUE(usage_is(2));
    EXPECT_EQ(asked, 0) << "who made it has just asked";
    loaded = true;
    EXPECT_TRUE(usage_is(1));
    EXPECT_EQ(asked, 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    EXPECT_TRUE(usage_is(1));
    EXPECT_EQ(asked, 1) << "no more from then on";
}

TEST(StandIn, EventsEndWhenTheModuleIsLoaded) {
    test::FakeModule module;
    test::FakeModule other;
    const Received<Payload> nothing{.events = {}, .none = true};

    other.to_receive.assign(1000, nothing);
    module.to_receive = {{.events = {encode(Event{.sequence = 1})}}};
    Module answers(until_loaded(other.connect(), [&module] { return module.connect(); }));
    answers.subscribe();
    EXPECT_TRUE(other.subscribed);
    bool gone = false;
    for (int tries = 0; tries < 900 && !gone; ++tries) {
        gone = answers.receive(std::chrono::milliseconds(0)).gone;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_TRUE(gone);
    EXPECT_FALSE(module.subscribed);
    answers.subscribe();
    EXPECT_TRUE(module.subscribed);
    EXPECT_EQ(answers.receive(std::chrono::milliseconds(0)).events.size(), 1U);
}

} // namespace
} // namespace umacct
