// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/enforcer.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "lib/host/cgroup_watch.h"
#include "tests/fake_module.h"
#include "tests/runtime_folders.h"
#include "tests/sandbox.h"

namespace umacct {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t gib = 1ULL << 30;
constexpr const char *service = "/system.slice/ollama.service";

class EnforcerTest : public testing::Test {
protected:
    EnforcerTest() {
        fake_.on_change = [this] { take(fake_.changes.back()); };
    }

    Policy policy(const std::string &text) {
        sandbox_.write("etc/umacct.toml", text);
        return read_policy(policy_files(root()));
    }

    std::filesystem::path root() const { return sandbox_.proc().parent_path(); }

    Enforcer enforcer(const std::string &text) {
        return {connection_, machine_, policy(text),
                [this](const std::string &line, const Json &event) {
                    told_.push_back(line);
                    events_.push_back(event);
                }};
    }

    /// Returns a place in the policy.
    std::string place(int line) const {
        return fmt::format("{}:{}", (root() / "etc/umacct.toml").string(), line);
    }

    /// Keeps a person's order, which the module has, too.
    void order(const std::string &path, const AccountChange &asked) {
        Account &account = this->account(path);

        EXPECT_EQ(OrderBook(machine_.cgroups(), root()).keep_person(path, {.asked = asked}), 0);
        account.hard = asked.hard ? asked.hard : account.hard;
        account.soft = asked.soft ? asked.soft : account.soft;
    }

    /// Applies the request: the module reports the new settings from then on.
    void take(const test::FakeModule::Request &change) {
        const auto attribute = [&](int type) { return test::attribute(change.attributes, type); };
        const auto take_limit = [&](Limit &limit, int type) {
            if (const auto bytes = attribute(type))
                limit = *bytes == UMACCT_UNLIMITED ? Limit{} : bytes;
        };

        if (change.command == UMACCT_CMD_CONFIG_SET) {
            fake_.status.reserve =
                attribute(UMACCT_A_STATUS_RESERVE).value_or(fake_.status.reserve);
            return;
        }
        for (Account &account : fake_.accounts) {
            if (account.id != attribute(UMACCT_A_ACCOUNT_ID))
                continue;
            take_limit(account.hard, UMACCT_A_ACCOUNT_HARD);
            take_limit(account.soft, UMACCT_A_ACCOUNT_SOFT);
            if (account.hard && account.soft && *account.soft > *account.hard)
                throw RequestError(EINVAL, "the soft limit would be above the hard limit", 0);
            account.view = attribute(UMACCT_A_ACCOUNT_VIEW).value_or(account.view) != 0;
            account.throttle_ns =
                attribute(UMACCT_A_ACCOUNT_THROTTLE).value_or(account.throttle_ns);
            account.charge = static_cast<umacct_charge_mode>(
                attribute(UMACCT_A_ACCOUNT_CHARGE).value_or(account.charge));
        }
    }

    /// An account in the module.
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

    /// Returns the values that were set on an account, in order.
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
    using Paths = std::vector<std::string>;

    test::Sandbox sandbox_;
    test::FakeModule fake_;
    bool loaded_ = true;
    std::vector<std::string> told_;
    std::vector<Json> events_; ///< the same for programs
    Connection connection_{[this] {
        if (!loaded_)
            throw Error(Failure::missing, "the umacct kernel module is not loaded");
        return fake_.connect();
    }};
    Machine machine_{sandbox_.proc(), sandbox_.proc().parent_path()};
};

TEST_F(EnforcerTest, APolicyThatCouldNotBeAppliedToAllIsAppliedLater) {
    account("/a");
    Enforcer enforcer = this->enforcer("");
    fake_.on_change = [this] {
        take(fake_.changes.back());
        if (fake_.changes.back().command == UMACCT_CMD_CONFIG_SET)
            fake_.fail_with = ENOBUFS; // the next request fails
    };
    EXPECT_EQ(
        enforcer.replace(policy("[machine]\nreserve='1G'\n[[rule]]\ncgroup='/a'\nhard='2G'\n")),
        1U);
    EXPECT_FALSE(told_.empty());
    ASSERT_TRUE(enforcer.due());
    fake_.fail_with.reset();
    std::this_thread::sleep_until(*enforcer.due());
    enforcer.retry();
    EXPECT_EQ(account("/a").hard, 2 * gib);
}

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
        "/system.slice/ollama.service: hard max -> 8.00 GiB, view off -> on (by rule 1, "))
        << told_[0];
    EXPECT_EQ(events_[0], (Json{{"failed", false},
                                {"path", service},
                                {"hard_bytes", 8 * gib},
                                {"view", true},
                                {"rule", "rule 1"},
                                {"place", (root() / "etc/umacct.toml:1:1").string()}}));

    // It restarts.
    std::filesystem::remove_all(sandbox_.cgroup_mount() / "system.slice/ollama.service");
    sandbox_.add_cgroup(service);
    enforcer.follow({service}, {{service, id}});
    EXPECT_EQ(hard_set(), (Values{8 * gib, 8 * gib}));
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

TEST_F(EnforcerTest, ATotalThatSystemdHasYetToSetIsTold) {
    const std::string file = "cgroup" + std::string(service) + "/memory.max";
    Enforcer enforcer = this->enforcer("[[rule]]\nunit='ollama'\ntotal='1G'\n");

    account(service).charge = UMACCT_CHARGE_ON;
    sandbox_.write(file, "max\n");
    enforcer.follow({service}, {});
    EXPECT_TRUE(told_.empty()) << "systemd has just made it: " << told_.front();
    enforcer.apply_all();
    ASSERT_EQ(told_.size(), 1U);
    EXPECT_TRUE(told_[0].starts_with(std::string(service) +
                                     ": total 1.00 GiB of rule 1 does not hold: memory.max is max"))
        << told_[0];
    sandbox_.write(file, "1073741824\n");
    enforcer.apply_all();
    EXPECT_EQ(told_.size(), 1U);
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
    EXPECT_EQ(told_[0], "reserve off -> 1.00 GiB (by [machine], " + place(2) + ")");
    EXPECT_EQ(told_[1],
              "charging, the machine's default: off -> on (by [machine], " + place(3) + ")");
    EXPECT_EQ(events_[0], (Json{{"failed", false}, {"reserve_bytes", gib}}));
    EXPECT_EQ(events_[1], (Json{{"failed", false}, {"charge_default", "on"}}));
}

TEST_F(EnforcerTest, ARefusalDoesNotKeepOthersFromTheirs) {
    Enforcer enforcer = this->enforcer("[[rule]]\ncgroup='/?*'\nhard='1G'\n");

    sandbox_.add_cgroup("/a");
    sandbox_.add_cgroup("/b");
    fake_.refuse_with = EINVAL;
    enforcer.follow({"/a", "/b", "/vanished"}, {});
    ASSERT_EQ(told_.size(), 2U);
    EXPECT_TRUE(told_[1].starts_with("/b: the fake module refuses")) << told_[1];
    EXPECT_EQ(events_[1], (Json{{"failed", true}, {"path", "/b"}}));
}

TEST_F(EnforcerTest, WhatFailedForWantOfMemoryIsSetSoonAfter) {
    Enforcer enforcer = this->enforcer("[[rule]]\ncgroup='/?*'\nhard='1G'\n");

    account("/a");
    fake_.refuse_with = ENOBUFS;
    enforcer.follow({"/a"}, {});
    ASSERT_TRUE(enforcer.due());
    EXPECT_EQ(account("/a").hard, std::nullopt);
    fake_.refuse_with.reset();
    std::this_thread::sleep_until(*enforcer.due());
    enforcer.retry();
    EXPECT_EQ(account("/a").hard, gib);
    EXPECT_FALSE(enforcer.due());
    fake_.refuse_with = EINVAL;
    account("/b");
    enforcer.follow({"/b"}, {});
    EXPECT_FALSE(enforcer.due()) << "another refusal stays one";
}

TEST_F(EnforcerTest, WhereChargingCannotBeLimitsStillCan) {
    Enforcer enforcer =
        this->enforcer("[machine]\ncharge='on'\n[[rule]]\ncgroup='/a'\nhard='1G'\n");

    account("/a");
    enforcer.follow({"/a"}, {});
    // The module was loaded anew.
    account("/a").hard.reset();
    fake_.changes.clear();
    fake_.refuse_in = 1;
    enforcer.apply_all();
    EXPECT_TRUE(told_.at(1).starts_with("[machine]: the fake module refuses")) << told_.at(1);
    EXPECT_EQ(hard_set(), Values{gib});
}

TEST_F(EnforcerTest, ASoftLimitAboveTheHardOneGivesWay) {
    Enforcer enforcer = this->enforcer("");

    order("/by_hand", {.soft = 8 * gib});
    order("/held", {.hard = 2 * gib});
    account("/other");
    enforcer.follow({"/by_hand", "/held", "/other"}, {});
    enforcer.replace(policy("[[rule]]\ncgroup='/held'\nsoft='3G'\n"
                            "[[rule]]\ncgroup='/?*'\nhard='4G'\n"));
    EXPECT_EQ(account("/by_hand").hard, 4 * gib) << "which a person's soft limit doesn't prevent";
    EXPECT_EQ(account("/by_hand").soft, 4 * gib);
    EXPECT_EQ(account("/held").hard, 2 * gib) << "which is a person's";
    EXPECT_EQ(account("/held").soft, 2 * gib);
    EXPECT_EQ(account("/other").hard, 4 * gib);
    EXPECT_EQ(std::ranges::count(told_, "/by_hand: hard max -> 4.00 GiB (by rule 2, " + place(4) +
                                            "), soft 8.00 GiB -> 4.00 GiB (lowered to the hard "
                                            "limit; a person asked for 8.00 GiB)"),
              1)
        << "and that is told";

    fake_.changes.clear();
    enforcer.apply_all();
    EXPECT_TRUE(fake_.changes.empty());
    enforcer.replace(policy(""));
    EXPECT_EQ(account("/by_hand").hard, std::nullopt);
    EXPECT_EQ(account("/by_hand").soft, 8 * gib) << "as the person asked";
    EXPECT_EQ(account("/held").soft, std::nullopt);
}

TEST_F(EnforcerTest, AnotherPolicyTakesBackWhatTheLastOneSet) {
    Enforcer enforcer = this->enforcer("[machine]\nreserve='1G'\n"
                                       "[[rule]]\ncgroup='/a'\nhard='2G'\nview=true\n");

    account("/a");
    enforcer.follow({"/a"}, {});
    enforcer.apply_all();
    fake_.changes.clear();
    enforcer.replace(policy("[[rule]]\ncgroup='/a'\nsoft='1G'\nhard='2G'\n"));
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_SOFT), Values{gib});
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_VIEW), Values{0});
    EXPECT_TRUE(hard_set().empty());
    EXPECT_EQ(told_.at(told_.size() - 2),
              "reserve 1.00 GiB -> off (no order asks for it any more)");
    EXPECT_EQ(told_.back(), "/a: soft max -> 1.00 GiB (by rule 1, " + place(1) +
                                "), view on -> off (no order asks for it any more)");

    fake_.changes.clear();
    enforcer.replace(policy(""));
    EXPECT_EQ(hard_set(), Values{UMACCT_UNLIMITED});
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_SOFT), Values{UMACCT_UNLIMITED});
}

TEST_F(EnforcerTest, WhatWasSetByTheLastPolicyUntilTheNextIsTakenIsTakenBack) {
    Enforcer enforcer = this->enforcer("");

    account("/a");
    enforcer.apply_all();
    fake_.changes.clear();
    enforcer.replace(policy(""), [this] { account("/a").hard = 2 * gib; });
    EXPECT_EQ(hard_set(), Values{UMACCT_UNLIMITED}) << "umacct-hook had set it";
}

TEST_F(EnforcerTest, WhatWaitsForItsNameKeepsWhatItHad) {
    const std::string path = "/docker/" + test::id_of('a');
    const char *text = "[[rule]]\ncontainer='vllm'\nhard='1G'\n";
    const test::RuntimeFolders folders(sandbox_);

    account(path);
    folders.add_docker(test::id_of('a'), "vllm");
    enforcer(text).follow({path}, {});
    EXPECT_EQ(account(path).hard, gib);

    // The next one is there before the name can be read.
    std::filesystem::remove_all(root() / "var");
    Enforcer enforcer = this->enforcer(text);
    enforcer.follow({path}, {});
    EXPECT_EQ(account(path).hard, gib);
    ASSERT_TRUE(enforcer.due());
    folders.add_docker(test::id_of('a'), "vllm");
    std::this_thread::sleep_until(*enforcer.due());
    enforcer.retry();
    EXPECT_EQ(hard_set(), Values{gib});
    enforcer.replace(policy(""));
    EXPECT_EQ(account(path).hard, std::nullopt);
}

TEST_F(EnforcerTest, WhatWaitsForItsNameIsKnownToBeThePolicys) {
    const std::string path = "/docker/" + test::id_of('a');
    const char *text = "[[rule]]\ncontainer='vllm'\nhard='1G'\nsoft='512M'\nthrottle='1ms'\n"
                       "view=true\ncharge='on'\n";
    const test::RuntimeFolders folders(sandbox_);

    account(path);
    folders.add_docker(test::id_of('a'), "vllm");
    enforcer(text).follow({path}, {});
    EXPECT_EQ(account(path).soft, gib / 2);
    EXPECT_TRUE(account(path).view);
    std::filesystem::remove_all(root() / "var");
    Enforcer enforcer = this->enforcer(text);
    enforcer.follow({path}, {});
    enforcer.replace(policy(""));

    const Account &without = account(path);
    EXPECT_EQ(without.hard, std::nullopt);
    EXPECT_EQ(without.soft, std::nullopt);
    EXPECT_EQ(without.throttle_ns, 0);
    EXPECT_FALSE(without.view);
    EXPECT_EQ(without.charge, UMACCT_CHARGE_INHERIT);
}

TEST_F(EnforcerTest, WhatAContainerWasStartedWithHolds) {
    const Order order{.asked = {.hard = gib, .view = true}};
    const auto start = [&](const std::string &path) {
        account(path).hard = gib;
        account(path).view = true;
        return OrderBook(machine_.cgroups(), root()).keep_container(path, order);
    };

    if (const int code = start("/a"))
        GTEST_SKIP() << "trusted attributes take CAP_SYS_ADMIN and a file system that has them; "
                        "errno "
                     << code;
    Enforcer enforcer = this->enforcer("[[rule]]\ncgroup='/a'\nhard='4G'\n");
    enforcer.follow({"/a"}, {});
    EXPECT_TRUE(fake_.changes.empty()) << "a rule doesn't raise it";
    enforcer.replace(policy("[[rule]]\ncgroup='/a'\nhard='512M'\n"));
    EXPECT_EQ(account("/a").hard, gib / 2);
    enforcer.replace(policy(""));
    EXPECT_EQ(account("/a").hard, gib) << "without the rule it has what it asked for";
    EXPECT_TRUE(account("/a").view);
    EXPECT_TRUE(told_.back().ends_with("(as the container asked)")) << told_.back();

    // The module was loaded anew: no limit is left.
    account("/a").hard.reset();
    account("/a").view = false;
    enforcer.apply_all();
    EXPECT_EQ(account("/a").hard, gib);
    EXPECT_TRUE(account("/a").view);
}

TEST_F(EnforcerTest, TheMachinesView) {
    Enforcer enforcer = this->enforcer("[machine]\nview=true\n");

    account("/");
    account("/a");
    enforcer.follow({"/", "/a"}, {});
    EXPECT_TRUE(account("/").view);
    EXPECT_FALSE(account("/a").view) << "it inherits";
    ASSERT_EQ(told_.size(), 1U);
    EXPECT_EQ(told_[0], "/: view off -> on (by [machine], " + place(2) + ")");
    enforcer.replace(policy(""));
    EXPECT_FALSE(account("/").view);
}

TEST_F(EnforcerTest, LabelsThatComeLate) {
    const test::RuntimeFolders folders(sandbox_);
    Enforcer enforcer = this->enforcer("[[rule]]\nlabel='tier=batch'\nhard='1G'\n");

    account(test::pod_slice);
    // The kubelet has written its name, and the runtime nothing yet.
    folders.write("var/log/pods/prod_llm-0_" + test::pod_uid + "/x", "");
    enforcer.follow({test::pod_slice}, {});
    EXPECT_TRUE(fake_.changes.empty());
    ASSERT_TRUE(enforcer.due());
    folders.add_sandbox(test::id_of('a'), {{"tier", "batch"}});
    std::this_thread::sleep_until(*enforcer.due());
    enforcer.retry();
    EXPECT_EQ(hard_set(), Values{gib});
    EXPECT_FALSE(enforcer.due());
}

/// A second umacctd with another policy, after the first one left its settings in the kernel.
class NextStart : public EnforcerTest {
protected:
    NextStart() {
        account("/a");
        account("/b");
        Enforcer last = enforcer("[machine]\nreserve='1G'\n"
                                 "[[rule]]\ncgroup='/?*'\nhard='2G'\nview=true\n");
        last.follow({"/a", "/b"}, {});
        last.apply_all();
        fake_.changes.clear();
        told_.clear();
        events_.clear();
    }

    void start_with(const std::string &text) {
        Enforcer next = enforcer(text);

        next.follow({"/a", "/b"}, {});
        next.apply_all();
    }
};

TEST_F(NextStart, WhatAGoneRuleSetIsLifted) {
    start_with("[[rule]]\ncgroup='/a'\nhard='2G'\n");
    EXPECT_EQ(account("/a").hard, 2 * gib) << "another rule says so";
    EXPECT_FALSE(account("/a").view);
    EXPECT_EQ(account("/b").hard, std::nullopt);
    EXPECT_FALSE(account("/b").view);
    EXPECT_EQ(fake_.status.reserve, 0U);
    ASSERT_EQ(told_.size(), 3U);
    EXPECT_EQ(told_[0], "/a: view on -> off (no order asks for it any more)");
    EXPECT_EQ(told_[1], "reserve 1.00 GiB -> off (no order asks for it any more)");
    EXPECT_EQ(told_[2], "/b: hard 2.00 GiB -> max, view on -> off (no order asks for it any more)");
    EXPECT_EQ(events_.at(2),
              (Json{{"failed", false}, {"path", "/b"}, {"hard_bytes", nullptr}, {"view", false}}));
}

TEST_F(NextStart, WhatAPersonAskedForStays) {
    order("/a", {.hard = 3 * gib});
    start_with("");
    EXPECT_EQ(account("/a").hard, 3 * gib);
    EXPECT_FALSE(account("/a").view) << "which a rule had set";
    EXPECT_EQ(account("/b").hard, std::nullopt);
    start_with("[[rule]]\ncgroup='/?*'\nhard='2G'\n");
    EXPECT_EQ(account("/a").hard, 3 * gib);
    EXPECT_EQ(account("/b").hard, 2 * gib);
}

TEST_F(NextStart, SoItDoesWhenThePolicyIsReadAgain) {
    Enforcer enforcer = this->enforcer("[[rule]]\ncgroup='/?*'\nhard='2G'\n");

    enforcer.follow({"/a", "/b"}, {});
    order("/a", {.hard = 3 * gib});
    enforcer.replace(policy("[[rule]]\ncgroup='/c'\nhard='2G'\n"));
    EXPECT_EQ(account("/a").hard, 3 * gib);
    EXPECT_EQ(account("/b").hard, std::nullopt);
}

TEST_F(NextStart, WhatNobodyAskedForIsNeutral) {
    account("/b").hard = 5 * gib;
    start_with("");
    EXPECT_EQ(account("/b").hard, std::nullopt);
}

/// Returns the process's anonymous memory, in KiB.
std::uint64_t anonymous_memory() {
    std::ifstream file("/proc/self/smaps_rollup");

    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("Anonymous:"))
            return std::stoull(line.substr(line.find_first_of("0123456789")));
    }
    return 0;
}

TEST_F(EnforcerTest, CgroupsThatComeAndGoLeaveNothing) {
    // Ten times as many, and more, by UMACCT_CGROUPS: those take minutes.
    const char *asked = std::getenv("UMACCT_CGROUPS");
    const int all = asked != nullptr ? std::stoi(asked) : 5000;
    constexpr int at_a_time = 100;
    Enforcer enforcer = this->enforcer("[[rule]]\ncgroup='/?*'\nhard='2G'\n");
    CgroupWatch watch(machine_.cgroups());
    std::uint64_t at_first = 0;

    for (int done = 0; done < all; done += at_a_time) {
        for (int i = done; i < done + at_a_time; ++i)
            sandbox_.add_cgroup("/c" + std::to_string(i));
        const auto take = [&] {
            do {
                const CgroupWatch::Changes changes = watch.take();
                enforcer.follow(changes.appeared, changes.gone);
            } while (watch.due());
        };
        take();
        for (int i = done; i < done + at_a_time; ++i)
            std::filesystem::remove(sandbox_.cgroup_mount() / ("c" + std::to_string(i)));
        take();
        ASSERT_EQ(fake_.changes.size(), std::size_t{at_a_time});
        fake_.changes.clear();
        told_.clear();
        events_.clear();
        if (done == all / 10)
            at_first = anonymous_memory();
    }
    // One path that stays of each would be more.
    EXPECT_LT(anonymous_memory(), at_first + 128);
}

TEST_F(EnforcerTest, ARefusalOfOneCgroupKeepsNoReloadFromOthers) {
    Enforcer enforcer = this->enforcer("[[rule]]\ncgroup='/**'\nhard='1G'\n");

    // Refused like a cgroup that is nested deeper than the module keeps accounts for.
    account("/a").hard = gib;
    account("/b").hard = gib;
    account("/").hard = gib;
    enforcer.follow({"/a", "/b"}, {});
    told_.clear();
    fake_.refuse_in = 1;
    EXPECT_EQ(enforcer.replace(policy("[[rule]]\ncgroup='/?*'\nhard='2G'\n")), 1U);
    EXPECT_EQ(hard_set(), (Values{2 * gib, 2 * gib})) << "the root's was refused";
    EXPECT_EQ(enforcer.policy().rules.at(0).change(0).hard, 2 * gib);
    EXPECT_EQ(std::ranges::count_if(told_,
                                    [](const std::string &line) {
                                        return line.find(": the fake module refuses") !=
                                               std::string::npos;
                                    }),
              1)
        << "which is told with its path";
}

TEST_F(EnforcerTest, NothingIsLiftedWhileAPolicyIsReplaced) {
    Enforcer enforcer = this->enforcer("[machine]\nreserve='1G'\n"
                                       "[[rule]]\ncgroup='/a'\nhard='1G'\n");

    account("/a");
    enforcer.follow({"/a"}, {});
    enforcer.apply_all();
    fake_.changes.clear();
    enforcer.replace(policy("[machine]\nreserve='1G'\n[[rule]]\ncgroup='/?*'\nhard='1G'\n"));
    EXPECT_TRUE(fake_.changes.empty()) << "as both of them say the same";
}

TEST_F(EnforcerTest, WhatTheMachineRefusesChangesNothing) {
    Enforcer enforcer = this->enforcer("[machine]\nreserve='1G'\n"
                                       "[[rule]]\ncgroup='/a'\nhard='1G'\n");

    account("/a");
    enforcer.follow({"/a"}, {});
    enforcer.apply_all();
    told_.clear();
    fake_.refuse_in = 1;
    EXPECT_THROW(enforcer.replace(policy("[machine]\nreserve='900G'\ncharge='on'\n")), Error);
    EXPECT_EQ(fake_.status.reserve, gib);
    EXPECT_EQ(account("/a").hard, gib);
    EXPECT_TRUE(told_.empty());
    EXPECT_EQ(enforcer.policy().rules.size(), 1U);
}

TEST_F(EnforcerTest, OfThousandsThatComeAtOnceFewLinesAreTold) {
    Enforcer enforcer = this->enforcer("[[rule]]\ncgroup='/many/**'\nhard='1G'\n");
    Paths paths;

    for (int i = 0; i < 1000; ++i) {
        sandbox_.add_cgroup(paths.emplace_back("/many/c" + std::to_string(i)));
        sandbox_.add_cgroup(paths.emplace_back("/many/c" + std::to_string(i) + "/inner"));
    }
    enforcer.follow(paths, {});
    EXPECT_EQ(hard_set().size(), 2000U);
    EXPECT_EQ(told_.size(), 500U);
    ASSERT_TRUE(enforcer.due());
    std::this_thread::sleep_until(*enforcer.due());
    enforcer.retry();
    ASSERT_EQ(told_.size(), 501U);
    EXPECT_EQ(told_.back().substr(0, 63),
              "below /many: the policy was applied to 1500 more cgroups, and f");
    EXPECT_FALSE(enforcer.due());
}

TEST_F(EnforcerTest, OfThousandsThatLookLikeContainersFewAreWaitedFor) {
    constexpr int many = 1100;
    const auto id_of = [](int i) { return fmt::format("{:064x}", i + 1); };
    Enforcer enforcer = this->enforcer("[[rule]]\ncontainer='vllm'\nhard='1G'\n");
    std::vector<std::string> paths;

    for (int i = 0; i < many; ++i) {
        paths.push_back("/system.slice/docker-" + id_of(i) + ".scope");
        account(paths.back());
    }
    enforcer.follow(paths, {});
    const auto name = [&](int from, int to) {
        for (int i = from; i < to; ++i)
            sandbox_.write("var/lib/docker/containers/" + id_of(i) + "/config.v2.json",
                           R"({"Name":"/vllm"})");
    };
    name(0, 10);
    name(1024, many);
    ASSERT_TRUE(enforcer.due());
    std::this_thread::sleep_until(*enforcer.due());
    enforcer.retry();
    EXPECT_EQ(hard_set().size(), 10U) << "of those that came when 1024 were waited for, none";
}

TEST_F(EnforcerTest, WhatAContainersRootMakesIsNotWaitedFor) {
    const std::string container = "/system.slice/docker-" + std::string(64, 'a') + ".scope";
    Enforcer enforcer = this->enforcer("[[rule]]\ncontainer='vllm'\nhard='1G'\n");
    std::vector<std::string> paths;

    account(container);
    for (int i = 0; i < 1100; ++i) {
        paths.push_back(container + "/docker/" + fmt::format("{:064x}", i + 1));
        account(paths.back());
    }
    enforcer.follow(paths, {});
    EXPECT_FALSE(enforcer.due());
    enforcer.follow({container}, {});
    EXPECT_TRUE(enforcer.due());
}

TEST_F(EnforcerTest, ANameThatNobodyTellsIsNotWaitedFor) {
    const std::string path = "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" +
                             std::string(64, 'a') + ".scope";
    Enforcer enforcer = this->enforcer("[[rule]]\ncontainer='vllm'\nhard='1G'\n");

    account(path);
    enforcer.follow({path}, {});
    EXPECT_FALSE(enforcer.due());
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
