// SPDX-License-Identifier: GPL-2.0-or-later
/// The proof's reasoning, on machines that exist here only; and what the verb
/// asks for before it touches anything.
#include "tool/verify/proof.h"

#include <algorithm>

#include <umacct.h>

#include "tests/tool_fixture.h"

namespace umacct {
namespace {

constexpr std::uint64_t mib = 1ULL << 20;
constexpr std::uint64_t size = 32 * mib;

/// A machine with a driver, of which each part may be broken.
class FakeCgroup : public TestCgroup {
public:
    bool charges = false;   ///< charges by itself
    bool can_charge = true; ///< charges on umacct's request
    bool keeps_limit = true;
    bool kills = false;     ///< instead of refusing
    bool leaks = false;     ///< freed memory stays
    bool too_early = false; ///< refuses an allocation that would fit
    std::uint32_t refusal = 0x51;
    std::uint64_t room = UMACCT_UNLIMITED; ///< limit of something above

    std::vector<AccountChange> changes;

    void set_memory_max(std::uint64_t bytes) override { memory_max_ = bytes; }

    void set_account(const AccountChange &change) override {
        changes.push_back(change);
        hard_ = change.hard.value_or(hard_);
        charging_ = change.charge == UMACCT_CHARGE_ON && can_charge;
    }

    Allocation allocate(std::uint64_t bytes) override {
        const bool seen = charges || charging_;
        std::uint64_t most = room;

        // The number of whole allocations that fit with their metadata.
        if (keeps_limit && hard_ != UMACCT_UNLIMITED)
            most = std::min(most, (hard_ - client) / (mib + kept) * mib);
        if (seen && most > memory_max_ - own) {
            most = memory_max_ / mib * mib - mib;
            ++(kills ? events_.oom_kills : events_.max);
        }
        const std::uint64_t given = std::min(bytes, most) - (too_early ? mib : 0);
        metadata_ = client + given / mib * kept;
        usage_ = given + metadata_;
        charged_ = seen ? given : 0;
        return {.bytes = given, .status = given == bytes ? 0 : refusal};
    }

    void free_all() override {
        if (leaks)
            return;
        usage_ = metadata_ = client;
        charged_ = 0;
    }

    Figures figures() override {
        return {.memory_current = own + charged_,
                .memory_free = 1000 * mib - usage_,
                .usage = usage_,
                .charged = charged_,
                .metadata = metadata_};
    }

    MemoryEvents events() override { return events_; }

private:
    static constexpr std::uint64_t own = 300ULL * 1024;
    static constexpr std::uint64_t client = 6144;
    static constexpr std::uint64_t kept = 13'940; ///< metadata beside the pages of one allocation
    std::uint64_t memory_max_ = UMACCT_UNLIMITED;
    std::uint64_t hard_ = UMACCT_UNLIMITED;
    bool charging_ = false;
    std::uint64_t usage_ = 0;
    std::uint64_t charged_ = 0;
    std::uint64_t metadata_ = 0;
    MemoryEvents events_{.max = 7, .oom_kills = 0};
};

std::vector<Finding> findings(FakeCgroup &cgroup, const Obstacles &obstacles = {}) {
    std::vector<Finding> found;

    for (const Step &step : verify(cgroup, size, mib, obstacles))
        found.push_back(step.finding);
    return found;
}

using Findings = std::vector<Finding>;

TEST(Verify, ABlindMachineThatUmacctMends) {
    FakeCgroup cgroup;
    const std::vector<Step> steps = verify(cgroup, size, mib, {});

    EXPECT_EQ(steps[0].finding, Finding::blind);
    EXPECT_EQ(steps[0].got.bytes, size);
    EXPECT_EQ(steps[0].memory_max, size / 2);
    EXPECT_EQ(steps[0].seen(), 0U);
    EXPECT_EQ(steps[0].before.memory_free - steps[0].during.memory_free,
              size + steps[0].during.metadata);
    EXPECT_EQ(steps[1].finding, Finding::holds);
    // Half of the size is 16 MiB; the metadata leaves room for 15.
    EXPECT_EQ(steps[1].got.bytes, size / 2 - mib);
    EXPECT_EQ(steps[1].during.usage, steps[1].got.bytes + steps[1].during.metadata);
    EXPECT_NE(steps[1].text.find("let 15.00 MiB and 210.20 KiB of metadata through"),
              std::string::npos)
        << steps[1].text;
    EXPECT_EQ(steps[1].memory_max, UMACCT_UNLIMITED);
    EXPECT_EQ(steps[2].finding, Finding::holds);
    EXPECT_EQ(steps[2].seen(), steps[2].got.bytes);
    EXPECT_EQ(steps[2].events.max, 1U);
    ASSERT_EQ(cgroup.changes.size(), 2U);
    EXPECT_EQ(cgroup.changes[1].hard, UMACCT_UNLIMITED);
}

TEST(Verify, AMachineWhoseDriverChargesIsNotBlind) {
    FakeCgroup cgroup;

    cgroup.charges = true;
    EXPECT_EQ(findings(cgroup, {.limits = {}, .charging = "the driver charges"}),
              (Findings{Finding::charged, Finding::holds, Finding::skipped}));
    EXPECT_EQ(cgroup.changes.size(), 1U);
}

TEST(Verify, WithoutTheModuleTheBlindSpotIsShownAndNothingIsSet) {
    FakeCgroup cgroup;

    EXPECT_EQ(findings(cgroup, {.limits = "no module", .charging = "no module"}),
              (Findings{Finding::blind, Finding::skipped, Finding::skipped}));
    EXPECT_TRUE(cgroup.changes.empty());
}

TEST(Verify, ALimitThatDoesNotHoldIsNoticed) {
    FakeCgroup cgroup;

    cgroup.keeps_limit = false;
    EXPECT_EQ(findings(cgroup)[1], Finding::fails);
}

TEST(Verify, ALimitThatRefusesTooEarlyIsNoticed) {
    FakeCgroup cgroup;

    cgroup.room = 4 * mib;
    EXPECT_EQ(findings(cgroup), (Findings{Finding::unclear, Finding::fails, Finding::fails}));
}

TEST(Verify, AnAllocationRefusedThoughItFitsIsNoticed) {
    FakeCgroup cgroup;

    cgroup.too_early = true;
    EXPECT_EQ(findings(cgroup)[1], Finding::fails);
}

TEST(Verify, AnotherAnswerThanOutOfMemoryIsNoticed) {
    FakeCgroup cgroup;

    cgroup.refusal = 0x1f;
    const std::vector<Step> steps = verify(cgroup, size, mib, {});
    EXPECT_EQ(steps[1].finding, Finding::fails);
    EXPECT_NE(steps[1].text.find("0x1f instead of 0x51"), std::string::npos);
}

TEST(Verify, ChargingThatDoesNothingIsNoticed) {
    FakeCgroup cgroup;

    cgroup.can_charge = false;
    EXPECT_EQ(findings(cgroup), (Findings{Finding::blind, Finding::holds, Finding::fails}));
}

TEST(Verify, AKillIsNoticed) {
    FakeCgroup cgroup;

    cgroup.kills = true;
    EXPECT_EQ(findings(cgroup)[2], Finding::fails);
}

TEST(Verify, MemoryThatStaysIsNoticed) {
    FakeCgroup cgroup;

    cgroup.leaks = true;
    EXPECT_EQ(findings(cgroup)[1], Finding::fails);
}

// --- the verb -------------------------------------------------------------------

using VerifyVerb = test::ToolFixture;

TEST_F(VerifyVerb, RefusesASizeThatIsNotSmall) {
    for (const char *text : {"1G", "65M", "7M", "0", "lots", "max", ""}) {
        const test::Ran ran = run({"verify", "--size", text});

        EXPECT_EQ(ran.code, 2) << text;
        EXPECT_NE(ran.err.find("--size: "), std::string::npos) << ran.err;
        EXPECT_NE(ran.err.find("\nhint: "), std::string::npos) << ran.err;
    }
    EXPECT_TRUE(fake_.changes.empty());
}

TEST_F(VerifyVerb, KeepsAwayFromAMachineThatIsShortOfMemory) {
    fake_.status.reserve = 2ULL << 30; // all that is available

    const test::Ran ran = run({"verify"});
    EXPECT_EQ(ran.code, 1);
    EXPECT_NE(ran.err.find("2.00 GiB are available, and it wants 2.25 GiB"), std::string::npos)
        << ran.err;
}

TEST_F(VerifyVerb, NeedsTheModuleAndADriverThatItAccounts) {
    fake_.status.driver_state = UMACCT_DRIVER_UNKNOWN;
    EXPECT_EQ(run({"verify"}).code, 1);
    fake_.status.driver_state = UMACCT_DRIVER_ABSENT;
    EXPECT_EQ(run({"verify"}).code, 3);
    loaded_ = false;
    EXPECT_EQ(run({"verify", "--json"}).code, 3);
}

} // namespace
} // namespace umacct
