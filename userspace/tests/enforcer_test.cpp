// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/enforcer.h"

#include <thread>

#include <gtest/gtest.h>

#include "tests/fake_module.h"
#include "tests/sandbox.h"

namespace umacct {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t gib = 1ULL << 30;
constexpr const char *service = "/system.slice/ollama.service";

class EnforcerTest : public testing::Test {
protected:
    Policy policy(const std::string &text) {
        sandbox_.write("etc/umacct.toml", text);
        return read_policy(policy_files(root()));
    }

    std::filesystem::path root() const { return sandbox_.proc().parent_path(); }

    Enforcer enforcer(const std::string &text) {
        return {connection_, machine_, policy(text),
                [this](const std::string &line) { told_.push_back(line); }};
    }

    /// An account in the module, as a change that was made has left it.
    Account &account(const std::string &path) {
        for (Account &each : fake_.accounts) {
            if (each.path == path)
                return each;
        }
        Account account;
        account.id = sandbox_.add_cgroup(path);
        account.path = path;
        return fake_.accounts.emplace_back(account);
    }

    /// What of an account was set, in order.
    std::vector<std::uint64_t> set(int type) const {
        std::vector<std::uint64_t> values;

        for (const auto &change : fake_.changes) {
            const bool of_account = change.command == UMACCT_CMD_ACCOUNT_SET;

            if (const auto value = test::attribute(change.attributes, type); of_account && value)
                values.push_back(*value);
        }
        return values;
    }

    std::vector<std::uint64_t> hard_set() const { return set(UMACCT_A_ACCOUNT_HARD); }

    using Values = std::vector<std::uint64_t>;

    test::Sandbox sandbox_;
    test::FakeModule fake_;
    bool loaded_ = true;
    std::vector<std::string> told_;
    Connection connection_{[this] {
        if (!loaded_)
            throw Error(Failure::missing, "the umacct kernel module is not loaded");
        return fake_.connect();
    }};
    Machine machine_{sandbox_.proc(), sandbox_.proc().parent_path()};
};

TEST_F(EnforcerTest, WhatAppearsGetsWhatItsRuleSays) {
    Enforcer enforcer = this->enforcer("[[rule]]\nunit='ollama'\nhard='50%'\nview=true\n");
    const std::uint64_t id = sandbox_.add_cgroup(service);

    enforcer.follow({"/system.slice", service}, {});
    ASSERT_EQ(fake_.changes.size(), 1U);
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_ID), Values{id});
    EXPECT_EQ(hard_set(), Values{8 * gib});
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_VIEW), Values{1});
    ASSERT_EQ(told_.size(), 1U);
    EXPECT_TRUE(told_[0].starts_with(
        "/system.slice/ollama.service: hard max -> 8.00 GiB, view off -> on (rule 1, "))
        << told_[0];

    // It restarts.
    std::filesystem::remove_all(sandbox_.cgroup_mount() / "system.slice/ollama.service");
    sandbox_.add_cgroup(service);
    enforcer.follow({service}, {service});
    EXPECT_EQ(hard_set(), (Values{8 * gib, 8 * gib}));
    EXPECT_EQ(enforcer.size(), 2U);
    enforcer.follow({}, {service});
    EXPECT_EQ(enforcer.size(), 1U) << "what is gone is forgotten";
}

TEST_F(EnforcerTest, WhatIsSoAlreadyIsLeftAlone) {
    account(service).hard = gib;
    account(service).view = true;
    Enforcer enforcer = this->enforcer("[[rule]]\nunit='ollama'\nhard='1G'\nview=true\n");

    enforcer.follow({service}, {});
    EXPECT_TRUE(fake_.changes.empty());
    account(service).view = false;
    enforcer.apply_all();
    EXPECT_TRUE(hard_set().empty());
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_VIEW), Values{1});
}

TEST_F(EnforcerTest, WithoutTheModuleNothingIsForgotten) {
    Enforcer enforcer = this->enforcer(
        "[machine]\nreserve='1G'\ncharge='on'\n[[rule]]\nunit='ollama'\nhard='1G'\n");

    account(service);
    loaded_ = false;
    EXPECT_THROW(enforcer.follow({service}, {}), Error);
    loaded_ = true;
    enforcer.apply_all();
    EXPECT_EQ(hard_set(), Values{gib});
    EXPECT_EQ(told_.size(), 3U);
    EXPECT_EQ(told_[0], "reserve 0 B -> 1.00 GiB");
    EXPECT_EQ(told_[1], "charging off -> on");
}

TEST_F(EnforcerTest, ARefusalDoesNotKeepOthersFromTheirs) {
    Enforcer enforcer = this->enforcer("[[rule]]\ncgroup='/*'\nhard='1G'\n");

    sandbox_.add_cgroup("/a");
    sandbox_.add_cgroup("/b");
    fake_.refuse_with = EINVAL;
    enforcer.follow({"/a", "/b", "/vanished"}, {});
    ASSERT_EQ(told_.size(), 2U);
    EXPECT_TRUE(told_[1].starts_with("/b: the fake module refuses")) << told_[1];
}

TEST_F(EnforcerTest, WhereChargingCannotBeLimitsStillCan) {
    Enforcer enforcer =
        this->enforcer("[machine]\ncharge='on'\n[[rule]]\ncgroup='/a'\nhard='1G'\n");

    account("/a");
    enforcer.follow({"/a"}, {});
    fake_.changes.clear();
    fake_.refuse_in = 1;
    enforcer.apply_all();
    EXPECT_TRUE(told_.at(1).starts_with("[machine]: the fake module refuses")) << told_.at(1);
    EXPECT_EQ(hard_set(), Values{gib});
}

TEST_F(EnforcerTest, AnotherPolicyTakesBackWhatTheLastOneSet) {
    Enforcer enforcer = this->enforcer("[machine]\nreserve='1G'\n"
                                       "[[rule]]\ncgroup='/a'\nhard='2G'\nview=true\n");

    account("/a");
    enforcer.follow({"/a"}, {});
    account("/a").hard = 2 * gib;
    account("/a").view = true;
    fake_.status.reserve = gib;
    fake_.changes.clear();
    enforcer.replace(policy("[[rule]]\ncgroup='/a'\nsoft='1G'\nhard='2G'\n"));
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_SOFT), Values{gib});
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_VIEW), Values{0});
    EXPECT_TRUE(hard_set().empty());
    EXPECT_EQ(told_.at(told_.size() - 2), "reserve 1.00 GiB -> 0 B");
    EXPECT_TRUE(told_.back().starts_with("/a: soft max -> 1.00 GiB, view on -> off"));

    account("/a").view = false;
    account("/a").soft = gib;
    fake_.changes.clear();
    enforcer.replace(policy(""));
    EXPECT_EQ(hard_set(), Values{UMACCT_UNLIMITED});
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_SOFT), Values{UMACCT_UNLIMITED});
}

TEST_F(EnforcerTest, WhatAPersonSetIsNotTakenBack) {
    Enforcer enforcer = this->enforcer("");

    account("/a").hard = gib;
    enforcer.follow({"/a"}, {});
    enforcer.replace(policy("[[rule]]\ncgroup='/b'\nhard='1G'\n"));
    enforcer.replace(policy(""));
    EXPECT_TRUE(fake_.changes.empty());
}

TEST_F(EnforcerTest, AReloadIsAllOrNothing) {
    Enforcer enforcer = this->enforcer("[[rule]]\ncgroup='/*'\nhard='1G'\n");

    account("/a").hard = gib;
    account("/b").hard = gib;
    enforcer.follow({"/a", "/b"}, {});
    // The first is set, the second refused; so the first is put back.
    fake_.refuse_in = 2;
    EXPECT_THROW(enforcer.replace(policy("[[rule]]\ncgroup='/*'\nhard='2G'\n")), Error);
    EXPECT_EQ(hard_set(), (Values{2 * gib, gib}));
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_ID).at(0), set(UMACCT_A_ACCOUNT_ID).at(1));
    EXPECT_EQ(enforcer.policy().rules.at(0).hard->bytes, gib);
}

TEST_F(EnforcerTest, ANameThatComesLate) {
    const std::string id(64, 'a');
    const std::string path = "/system.slice/docker-" + id + ".scope";
    Enforcer enforcer = this->enforcer("[[rule]]\ncontainer='vllm'\nhard='1G'\n");

    account(path);
    enforcer.follow({path}, {});
    EXPECT_TRUE(fake_.changes.empty());
    ASSERT_TRUE(enforcer.due());
    sandbox_.write("var/lib/docker/containers/" + id + "/config.v2.json", R"({"Name":"/vllm"})");
    std::this_thread::sleep_until(*enforcer.due());
    enforcer.retry();
    EXPECT_EQ(hard_set(), Values{gib});
    EXPECT_FALSE(enforcer.due());
}

} // namespace
} // namespace umacct
