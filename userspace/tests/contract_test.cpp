// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/contract.h"

#include <cerrno>
#include <filesystem>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include "lib/error.h"
#include "lib/host/umacctd.h"
#include "tests/sandbox.h"

namespace umacct {
namespace {

constexpr std::uint64_t gib = 1ULL << 30;

TEST(Contract, TextAndBack) {
    const Contract all{.asked = {.hard = UMACCT_UNLIMITED,
                                 .soft = gib,
                                 .keep = 1,
                                 .view = true,
                                 .charge = UMACCT_CHARGE_OFF},
                       .memory_limit = 2 * gib};

    EXPECT_EQ(Contract::of(all.text()), all) << all.text();
    EXPECT_EQ(Contract().text(), "");
    EXPECT_EQ(Contract::of(""), Contract());
    EXPECT_EQ(Contract::of("hard=5")->asked.hard, 5);
    for (const char *wrong : {"hard", "hard=", "hard=x", "hard=-1", "hard=5x", "nothing=1", "=1",
                              "view=2", "charge=3", "hard=5  soft=4"})
        EXPECT_EQ(Contract::of(wrong), std::nullopt) << wrong;
}

TEST(Contract, TheLowerLimitHolds) {
    const auto hard = [](std::optional<std::uint64_t> rule, std::optional<std::uint64_t> asked,
                         std::optional<std::uint64_t> memory = {}) {
        return with_contract({.hard = rule}, {.asked = {.hard = asked}, .memory_limit = memory}, 0)
            .hard;
    };

    EXPECT_EQ(hard({}, {}), std::nullopt);
    EXPECT_EQ(hard(4, {}), 4U);
    EXPECT_EQ(hard({}, 4), 4U);
    EXPECT_EQ(hard(4, 5), 4U);
    EXPECT_EQ(hard(5, 4), 4U);
    EXPECT_EQ(hard(5, 0), 0U);
    EXPECT_EQ(hard(0, 5), 0U);
    EXPECT_EQ(hard(5, UMACCT_UNLIMITED), 5U);
    EXPECT_EQ(hard(UMACCT_UNLIMITED, {}, 7), UMACCT_UNLIMITED) << "a rule says that";
    EXPECT_EQ(hard({}, {}, 7), 7U);
    EXPECT_EQ(hard({}, 9, 7), 7U) << "who asks does not raise it";
    EXPECT_EQ(hard({}, UMACCT_UNLIMITED, 7), 7U);
    EXPECT_EQ(hard({}, 6, 7), 6U);
    EXPECT_EQ(hard(9, 8, 7), 8U) << "a rule takes its place";

    const AccountChange both = with_contract({.soft = 8}, {.asked = {.hard = 4}}, 0);
    EXPECT_EQ(both.soft, 4U) << "no soft limit is above the hard one";
    EXPECT_EQ(with_contract({.soft = UMACCT_UNLIMITED}, {.asked = {.hard = 4}}, 0).soft,
              UMACCT_UNLIMITED);
}

TEST(Contract, AGuaranteeIsTheAdministrators) {
    const auto keep = [](std::optional<std::uint64_t> rule, std::optional<std::uint64_t> asked,
                         std::uint64_t most) {
        return with_contract({.keep = rule}, {.asked = {.keep = asked}}, most).keep;
    };

    EXPECT_EQ(keep({}, 5, 0), std::nullopt);
    EXPECT_EQ(keep({}, 5, 3), 3U);
    EXPECT_EQ(keep({}, 2, 3), 2U);
    EXPECT_EQ(keep(4, 5, 9), 4U);
    EXPECT_EQ(keep(4, 0, 9), 0U);
    EXPECT_EQ(keep(4, {}, 9), 4U);
}

TEST(Contract, NobodySwitchesOffWhatARuleHasOn) {
    const AccountChange rule{.view = true, .charge = UMACCT_CHARGE_ON};
    const Contract off{.asked = {.view = false, .charge = UMACCT_CHARGE_OFF}};

    EXPECT_EQ(with_contract(rule, off, 0), rule);
    EXPECT_EQ(with_contract({}, off, 0), AccountChange()) << "a cgroup above may have it on";
    EXPECT_EQ(with_contract({.charge = UMACCT_CHARGE_OFF},
                            {.asked = {.view = true, .charge = UMACCT_CHARGE_ON}}, 0),
              (AccountChange{.view = true, .charge = UMACCT_CHARGE_ON}));
}

TEST(Contract, GoesWithItsCgroup) {
    const test::Sandbox sandbox;
    const Cgroups cgroups(sandbox.proc());
    const Contract contract{.asked = {.hard = gib}};

    sandbox.add_cgroup("/a");
    EXPECT_EQ(contract_of(cgroups, "/a"), Contract());
    EXPECT_EQ(contract_of(cgroups, "/b"), Contract());
    EXPECT_EQ(write_contract(cgroups, "/b", contract), ENOENT);
    if (const int code = write_contract(cgroups, "/a", contract))
        GTEST_SKIP() << "trusted attributes take CAP_SYS_ADMIN and a file system that has them; "
                        "errno "
                     << code;
    EXPECT_EQ(contract_of(cgroups, "/a"), contract);
    EXPECT_EQ(write_contract(cgroups, "/a", {.asked = {.view = true}}), 0);
    EXPECT_EQ(contract_of(cgroups, "/a").asked.hard, std::nullopt);
    std::filesystem::remove_all(sandbox.cgroup_mount() / "a");
    sandbox.add_cgroup("/a");
    EXPECT_EQ(contract_of(cgroups, "/a"), Contract());
}

TEST(ContractLock, OneAtATime) {
    const test::Sandbox sandbox;
    const std::filesystem::path file = sandbox.root() / contract_lock_file;
    const auto is_free = [&] {
        const FileDescriptor other(open(file.c_str(), O_RDWR | O_CLOEXEC));

        return other.get() >= 0 && flock(other.get(), LOCK_EX | LOCK_NB) == 0;
    };

    { const ContractLock none(sandbox.root(), ContractLock::Setter::hook); }
    EXPECT_FALSE(std::filesystem::exists(file)) << "no umacctd has been there";
    std::filesystem::create_directories(file.parent_path());
    {
        const ContractLock lock(sandbox.root(), ContractLock::Setter::daemon);
        EXPECT_TRUE(std::filesystem::exists(file));
        EXPECT_FALSE(is_free());
    }
    EXPECT_TRUE(is_free());
    {
        const ContractLock lock(sandbox.root(), ContractLock::Setter::hook);
        EXPECT_FALSE(is_free());
    }
    EXPECT_TRUE(is_free());
}

} // namespace
} // namespace umacct
