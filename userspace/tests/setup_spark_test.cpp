// SPDX-License-Identifier: GPL-2.0-or-later
/// umacct setup spark: what it proposes, and that undoing it leaves what there was.
#include <ctime>
#include <filesystem>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "lib/host/text_file.h"
#include "lib/policy/policy.h"
#include "tests/history_story.h"
#include "tests/tool_fixture.h"
#include "tool/spark/spark.h"

namespace umacct {
namespace {

namespace fs = std::filesystem;

constexpr const char *policy = "etc/umacct.toml.d/spark.toml";
constexpr const char *drop_in = "etc/systemd/system/umacctd.service.d/guard.conf";

class SetupSpark : public test::ToolFixture {
protected:
    SetupSpark() {
        sandbox_.write("usr/share/umacct/umacctd-guard.conf",
                       "[Service]\nProtectControlGroups=no\n");
        sandbox_.write("etc/umacct.toml", "# nothing\n");
        fs::create_directories(sandbox_.root() / "var/lib");
    }

    /// Every file below /etc and /var, with its text; folders too.
    std::map<std::string, std::string> files() const {
        std::map<std::string, std::string> all;

        for (const char *folder : {"etc", "var"}) {
            std::error_code ignored;

            for (fs::recursive_directory_iterator at(sandbox_.root() / folder, ignored), end;
                 at != end; ++at)
                all[at->path()] = at->is_regular_file() ? contents_of(at->path()) : "";
        }
        return all;
    }

    Policy in_force() const { return read_policy(policy_files(sandbox_.root())); }
};

TEST_F(SetupSpark, ProposesAndUndoesByteByByte) {
    const auto before = files();
    const test::Ran ran = run({"setup", "spark", "--yes"});

    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_NE(ran.out.find("+reserve = \"1G\""), std::string::npos) << ran.out;
    EXPECT_NE(ran.out.find("to undo all of it: umacct setup spark --undo"), std::string::npos);
    EXPECT_EQ(contents_of(sandbox_.root() / drop_in),
              contents_of(sandbox_.root() / "usr/share/umacct/umacctd-guard.conf"));
    const Policy made = in_force();
    EXPECT_EQ(made.view, true);
    ASSERT_TRUE(made.reserve && made.headroom && made.guard);
    EXPECT_EQ(made.reserve->bytes, 1ULL << 30);
    EXPECT_EQ(made.headroom->bytes, 2ULL << 30);
    EXPECT_TRUE(made.guard->dry_run);

    EXPECT_EQ(run({"setup", "spark", "--yes"}).code, 1);
    EXPECT_EQ(run({"setup", "spark", "--undo"}).code, 0);
    EXPECT_EQ(files(), before);
    EXPECT_EQ(run({"setup", "spark", "--undo"}).code, 0);
}

TEST_F(SetupSpark, LeavesAloneWhatThePolicyHas) {
    sandbox_.write("etc/umacct.toml", "[machine]\nreserve = \"5G\"\nview = false\n[guard]\n"
                                      "floor = \"2G\"\n");
    EXPECT_EQ(run({"setup", "spark", "--yes"}).code, 0);
    EXPECT_EQ(in_force().reserve->bytes, 5ULL << 30);
    EXPECT_EQ(in_force().view, false);
    EXPECT_FALSE(in_force().guard->dry_run);
    EXPECT_TRUE(in_force().headroom);
    EXPECT_FALSE(fs::exists(sandbox_.root() / drop_in));
}

TEST_F(SetupSpark, KeepsADropInThatIsThere) {
    sandbox_.write(drop_in, "[Service]\n# mine\n");
    EXPECT_EQ(run({"setup", "spark", "--yes"}).code, 0);
    EXPECT_EQ(contents_of(sandbox_.root() / drop_in), "[Service]\n# mine\n");
    EXPECT_EQ(run({"setup", "spark", "--undo"}).code, 0);
    EXPECT_EQ(contents_of(sandbox_.root() / drop_in), "[Service]\n# mine\n");
}

TEST_F(SetupSpark, OnlyPrints) {
    const auto before = files();
    const test::Ran ran = run({"setup", "spark", "--print"});

    EXPECT_EQ(ran.code, 0);
    EXPECT_NE(ran.out.find("+headroom = "), std::string::npos);
    EXPECT_EQ(files(), before);
    EXPECT_FALSE(fs::exists(sandbox_.root() / policy));
}

TEST_F(SetupSpark, AWrongPolicyIsNotAddedTo) {
    sandbox_.write("etc/umacct.toml", "[machine]\nreserv = 1\n");
    EXPECT_NE(run({"setup", "spark", "--yes"}).code, 0);
    EXPECT_FALSE(fs::exists(sandbox_.root() / policy));
}

TEST_F(SetupSpark, TheFloorIsTwoSecondsOfTheFastestLoad) {
    const std::int64_t now = std::time(nullptr) * 1000;

    EXPECT_EQ(tool::spark::fastest_fall(sandbox_.root()), 0U);
    sandbox_.write("proc/sys/kernel/random/boot_id", "one\n");
    test::Story story(sandbox_, "one", now - std::int64_t{3600} * 1000);
    story.pass(5);
    story.set_available(97 * test::gib);
    story.pass(1);
    story.set_available(94 * test::gib);
    story.pass(5);
    EXPECT_EQ(tool::spark::fastest_fall(sandbox_.root()), 6ULL << 30);
    const auto proposals = tool::spark::propose(sandbox_.root(), 128ULL << 30);
    ASSERT_EQ(proposals.size(), 4U);
    EXPECT_NE(proposals.back().lines.find("floor = \"6G\""), std::string::npos);
    EXPECT_NE(proposals[2].lines.find("headroom = \"13G\""), std::string::npos);
}

} // namespace
} // namespace umacct
