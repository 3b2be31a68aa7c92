// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/module/module.h"

#include <cerrno>

#include <gtest/gtest.h>

#include "lib/error.h"
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

TEST(Module, ADumpThatIsAlwaysInterruptedIsAnError) {
    test::FakeModule fake;

    fake.interruptions = 1000;
    EXPECT_THROW(Module(fake.connect()).accounts(), Error);
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

    const AttributeReader sent(fake.changes[0].attributes, UMACCT_A_ACCOUNT_MAX);
    EXPECT_EQ(sent.u64(UMACCT_A_ACCOUNT_ID), 9U);
    EXPECT_EQ(sent.u64(UMACCT_A_ACCOUNT_HARD), UMACCT_UNLIMITED);
    EXPECT_TRUE(sent.has(UMACCT_A_ACCOUNT_VIEW));
    EXPECT_EQ(sent.u32(UMACCT_A_ACCOUNT_VIEW), 0U);
    EXPECT_FALSE(sent.has(UMACCT_A_ACCOUNT_SOFT));
    EXPECT_FALSE(sent.has(UMACCT_A_ACCOUNT_THROTTLE));
    EXPECT_FALSE(sent.has(UMACCT_A_ACCOUNT_CHARGE));
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

TEST(Module, ValuesOfANewerModuleHaveAName) {
    EXPECT_EQ(name_of(static_cast<umacct_driver_state>(99)), "unknown");
    EXPECT_EQ(name_of(static_cast<umacct_event_type>(99)), "unknown");
}

} // namespace
} // namespace umacct
