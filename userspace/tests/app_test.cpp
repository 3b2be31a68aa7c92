// SPDX-License-Identifier: GPL-2.0-or-later
/// The tool as its users meet it: exit codes, messages, tables, JSON.
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/host/process.h"
#include "lib/host/task.h"
#include "lib/host/umacctd.h"
#include "lib/json.h"
#include "lib/text.h"
#include "tests/tool_fixture.h"
#include "tool/words.h"

namespace umacct {
namespace {

using nlohmann::json;
using test::Ran;

constexpr std::uint64_t mib = 1ULL << 20;
constexpr std::uint64_t gib = 1ULL << 30;

class App : public test::ToolFixture {
protected:
    App() {
        Account root = account("/", 1, {}, 0);
        Account slice = account("/a.slice", sandbox_.add_cgroup("/a.slice"), 1, 1);
        Account big = account("/a.slice/big.service", sandbox_.add_cgroup("/a.slice/big.service"),
                              slice.id, 2);
        Account small =
            account("/a.slice/small", sandbox_.add_cgroup("/a.slice/small"), slice.id, 2);
        Account idle = account("/idle", sandbox_.add_cgroup("/idle"), 1, 1);

        big.usage = big.local = 3 * gib;
        big.peak = 4 * gib;
        big.charged = gib;
        big.clients = 1;
        small.usage = small.local = 5 * mib;
        small.peak = 5 * mib;
        slice.usage = root.usage = big.usage + small.usage;
        slice.peak = root.peak = 4 * gib;
        slice.charged = root.charged = gib;
        slice.hard = slice.effective = big.effective = small.effective = 8 * gib;
        slice.effective_id = big.effective_id = small.effective_id = slice.id;
        small.soft = 4 * mib;
        small.soft_count = 2;
        fake_.accounts = {root, slice, small, big, idle};
        fake_.clients = {client(0, "gone", small, 5 * mib), client(42, "python3", big, 3 * gib)};
        fake_.clients[0].exited = true;
        fake_.status.usage = root.usage;
        fake_.status.charged = gib;
        fake_.status.accounts = 5;
        fake_.status.available = 2 * gib;
        fake_.status.clients = 2;
        sandbox_.add_process(42, big.path);
        sandbox_.write(sandbox_.cgroup_mount() / "a.slice/big.service/memory.current",
                       "1073741824\n");
        sandbox_.write(sandbox_.cgroup_mount() / "a.slice/big.service/memory.max", "max\n");
    }

    static Account account(const std::string &path, std::uint64_t id,
                           std::optional<std::uint64_t> parent, std::uint32_t level) {
        Account account;

        account.id = id;
        account.parent_id = parent;
        account.level = level;
        account.path = path;
        return account;
    }

    static Client client(std::uint32_t pid, const std::string &comm, const Account &account,
                         std::uint64_t usage) {
        Client client;

        client.pid = pid;
        client.comm = comm;
        client.account_id = account.id;
        client.path = account.path;
        client.usage = client.peak = usage;
        return client;
    }

    /// The value of an attribute in the only change that was made.
    std::uint64_t changed(std::uint16_t attribute) {
        EXPECT_EQ(fake_.changes.size(), 1U);
        return test::attribute(fake_.changes.at(0).attributes, attribute).value();
    }
};

Event refusal(std::uint64_t sequence) {
    Event event;

    event.type = UMACCT_EVENT_HARD_REFUSED;
    event.sequence = sequence;
    event.time_ns = 1'700'000'000'000'000'000;
    event.path = "/a/b";
    event.limit_id = 5;
    event.limit_path = "/a";
    event.pid = 42;
    event.comm = "python3";
    event.size = mib;
    event.usage = 2 * mib;
    event.limit = 2 * mib;
    return event;
}

// --- what a wrong command line gets -------------------------------------------

struct Wrong {
    std::vector<const char *> words;
    int code;
    const char *says;
};

[[maybe_unused]] std::ostream &operator<<(std::ostream &out, const Wrong &wrong) {
    for (const char *word : wrong.words)
        out << word << ' ';
    return out;
}

class WrongUse : public App, public testing::WithParamInterface<Wrong> {};

TEST_P(WrongUse, HasItsExitCodeNamesTheArgumentHintsAndChangesNothing) {
    const Ran ran = run(GetParam().words);

    EXPECT_EQ(ran.code, GetParam().code);
    EXPECT_NE(ran.err.find(GetParam().says), std::string::npos) << ran.err;
    EXPECT_EQ(ran.err.rfind("umacct: ", 0), 0U) << ran.err;
    EXPECT_NE(ran.err.find("\nhint: "), std::string::npos) << ran.err;
    EXPECT_EQ(ran.out, "");
    EXPECT_TRUE(fake_.changes.empty());
}

INSTANTIATE_TEST_SUITE_P(
    App, WrongUse,
    testing::Values(
        Wrong{{"lz"}, 2, "there is no verb 'lz'"},
        Wrong{{"--frob"}, 2, "there is no option '--frob'"},
        Wrong{{"ls", "--frob"}, 2, "there is no option '--frob'"},
        Wrong{{"ls", "--sort", "colour"}, 2, "--sort"}, Wrong{{"show"}, 2, "TARGET is required"},
        Wrong{{"show", "/idle", "x"}, 2, "one argument too many: 'x'"},
        Wrong{{"show", "/nowhere"}, 1, "TARGET '/nowhere'"},
        Wrong{{"show", ""}, 2, "TARGET is empty"}, Wrong{{"ls", "nowhere"}, 1, "TARGET 'nowhere'"},
        Wrong{{"ps", "nowhere"}, 1, "TARGET 'nowhere'"},
        Wrong{{"limit", "/idle", "--hard", "many"}, 2, "--hard: 'many' is not a size"},
        Wrong{{"set"}, 2, "TARGET is required"}, Wrong{{"set", "/idle"}, 2, "SETTING is missing"},
        Wrong{{"set", "/idle", "hard"}, 2, "'hard' has no value"},
        Wrong{{"set", "/idle", "hard=1G", "hard=2G"}, 2, "'hard' is there twice"},
        Wrong{{"set", "/idle", "hard=many"}, 2, "cannot set hard of /idle: 'many' is not a size"},
        Wrong{{"set", "/idle", "view=maybe"}, 2, "cannot set view of /idle: 'maybe' is neither"},
        Wrong{{"set", "/idle", "limit=1G"},
              2,
              "cannot set limit of /idle: there is no such setting\nhint: the settings are hard, "
              "soft, throttle, keep, view, charge, total\n"},
        Wrong{{"set", "/idle", "reserve=1G"},
              2,
              "cannot set reserve of /idle: it is the machine's\nhint: 'umacct set machine "
              "reserve=1G'"},
        Wrong{{"set", "/", "size=1G"},
              2,
              "total; the machine's are reserve, charge, headroom, headroom_blocks\n"},
        Wrong{
            {"set", "machine", "reserve=max"}, 2, "cannot set reserve of the machine: 'max' would"},
        Wrong{{"set", "machine", "charge=inherit"},
              2,
              "cannot set charge of the machine: 'inherit' is neither"},
        Wrong{{"set", "/idle", "headroom=1G"},
              2,
              "cannot set headroom of /idle: it is the machine's\nhint: 'umacct set machine "},
        Wrong{{"set", "machine", "headroom=17G"},
              2,
              "cannot set headroom of the machine: 17.00 GiB is more than the machine's memory"},
        Wrong{{"set", "", "hard=1G"}, 2, "TARGET is empty"},
        Wrong{{"limit", "/idle", "--hard", ""}, 2, "--hard: '' is not a size"},
        Wrong{{"limit", "/idle", "--soft", "-1"}, 2, "--soft: '-1' is not a size"},
        Wrong{
            {"limit", "/idle", "--hard", "99999999999999G"}, 2, "--hard: '99999999999999G' is too"},
        Wrong{{"limit", "/idle", "--throttle", "5"}, 2, "--throttle: '5' is not a time"},
        Wrong{{"limit", "/idle", "--view", "--no-view"}, 2, "--view excludes --no-view"},
        Wrong{{"ls", "--sort"}, 2, "--sort: COLUMN is missing"},
        Wrong{{"ls", "--depth", "x"}, 2, "not a number: --depth = x"},
        Wrong{
            {"history", "--json", "--course", "1"}, 2, "--course: 1 is not in the range 2 to 2000"},
        Wrong{{"config", "foo"}, 2, "ACTION: foo is none of {check,explain,"},
        Wrong{{"limit", "--hard", "1G"}, 2, "TARGET is missing"},
        Wrong{{"limit", "/nowhere", "--hard", "1G"}, 1, "TARGET '/nowhere'"},
        Wrong{{"limit", "", "--hard", "1G"}, 2, "TARGET is empty"},
        Wrong{{"limit", "///", "--hard", "1G"}, 2, "TARGET '///' is the root cgroup"},
        Wrong{{"config", "load"}, 2, "FILE is required"},
        Wrong{{"preflight"}, 2, "SIZE is required"},
        Wrong{{"preflight", "lots"}, 2, "SIZE: 'lots' is not a size"},
        Wrong{{"preflight", "1G", "--blocks", "3M"}, 2, "--blocks: '3M' is an invalid block size"},
        Wrong{{"headroom", "max"}, 2, "SIZE: 'max' is not a size"},
        Wrong{{"headroom", "17G"}, 2, "SIZE: 17.00 GiB is more than the machine's memory"},
        Wrong{{"headroom", "1G", "--blocks", "1"}, 2, "--blocks: '1' is an invalid block size"},
        Wrong{{"headroom", "--blocks", "2M"}, 2, "--blocks: SIZE is missing"},
        Wrong{{"reserve", "lots"}, 2, "SIZE: 'lots' is not a size"},
        Wrong{{"reserve", "max"}, 2, "SIZE: 'max' is not a size"},
        Wrong{{"reserve", ""}, 2, "SIZE: '' is not a size"},
        Wrong{{"charge", "maybe"}, 1, "TARGET 'maybe'"},
        Wrong{{"charge", "/idle", "maybe"}, 2, "MODE: 'maybe' is none of on, off, inherit"},
        Wrong{{"charge", "/idle", "on", "x"}, 2, "one argument too many: 'x'"},
        Wrong{{"charge", "inherit"}, 2, "MODE: the machine's default"},
        Wrong{{"charge", "on", "/nowhere"}, 1, "TARGET '/nowhere'"},
        Wrong{{"charge", "/nowhere", "on"}, 1, "TARGET '/nowhere'"},
        Wrong{{"ls", "-o", "usage,colour"}, 2, "-o: there is no column 'colour'"},
        Wrong{{"ps", "-o", "hard"}, 2, "-o: there is no column 'hard'"},
        Wrong{{"help", "lz"}, 2, "there is no verb 'lz'"}, Wrong{{"run"}, 125, "CMD is required"},
        Wrong{{"run", "--hard"}, 125, "--hard"},
        Wrong{{"run", "--frob", "true"}, 125, "there is no option '--frob'"},
        Wrong{{"run", "--hard", "x", "--", "true"}, 125, "--hard"},
        Wrong{{"run", "--name", "a/b", "--", "true"}, 125, "--name: 'a/b'"},
        Wrong{{"run", "--user", "nobody at all", "true"}, 125, "--user: there is no user"},
        Wrong{{"run", "--user", "", "true"}, 125, "--user: there is no user ''"},
        Wrong{{"run", "--user", "4294967295", "true"}, 125, "--user: there is no user"},
        Wrong{{"run", "--user", "4294967296", "true"}, 125, "--user: there is no user"},
        Wrong{{"run", "--user", "18446744073709551616", "true"}, 125, "--user: there is no user"},
        Wrong{{"run", "--report", "/nowhere/at/all", "true"}, 125, "--report: cannot write"},
        Wrong{{"watch", "now"}, 1, "TARGET 'now'"}));

TEST_F(App, TheCommandsWordsAreItsOwn) {
    using Words = std::vector<std::string>;

    struct Cut {
        Words line;
        Words ours;
        std::optional<Words> command;
    };

    const std::vector<Cut> cuts = {
        {{"run", "make", "-j", "8"}, {"run"}, Words{"make", "-j", "8"}},
        {{"run", "--", "sh", "-c", "[ -f /x ]"}, {"run"}, Words{"sh", "-c", "[ -f /x ]"}},
        {{"-j", "run", "--hard", "1G", "printf", "[64,64]", "[]"},
         {"-j", "run", "--hard", "1G"},
         Words{"printf", "[64,64]", "[]"}},
        {{"run", "--hard=1G", "-q", "a", "--", "-b"},
         {"run", "--hard=1G", "-q"},
         Words{"a", "--", "-b"}},
        {{"run", "--view", "--json", "", "--hard"},
         {"run", "--view", "--json"},
         Words{"", "--hard"}},
        {{"run", "-"}, {"run"}, Words{"-"}},
        {{"run", "--name"}, {"run", "--name"}, Words{}},
        {{"run"}, {"run"}, Words{}},
        {{"ls", "run", "x"}, {"ls", "run", "x"}, {}},
        {{"--version"}, {"--version"}, {}}};
    tool::Asked asked;
    const auto app = tool::make_app(asked);

    for (const Cut &cut : cuts) {
        Words line = cut.line;

        EXPECT_EQ(tool::take_command(*app, line), cut.command) << testing::PrintToString(cut.line);
        EXPECT_EQ(line, cut.ours);
    }
}

TEST_F(App, WithoutTheModuleEveryVerbEndsWith3) {
    const std::vector<std::vector<const char *>> verbs = {{},
                                                          {"ls"},
                                                          {"ps"},
                                                          {"show", "/idle"},
                                                          {"limit"},
                                                          {"limit", "/idle", "--hard", "1G"},
                                                          {"reserve", "off"},
                                                          {"preflight", "--fix"},
                                                          {"charge", "on"},
                                                          {"run", "--", "true"},
                                                          {"top"},
                                                          {"watch"}};
    loaded_ = false;
    for (const auto &words : verbs) {
        const Ran ran = run(words);

        EXPECT_EQ(ran.code, words.size() == 3 && words[0] == std::string("run") ? 125 : 3);
        EXPECT_NE(ran.err.find("not loaded\nhint: "), std::string::npos) << ran.err;
    }
}

TEST_F(App, WithoutTheModuleWhatGoesOnIsCountedMeanwhile) {
    int begun = 0;

    loaded_ = false;
    observe_meanwhile_ = [&] {
        ++begun;
        return fake_.connect();
    };
    for (const std::vector<const char *> &words :
         {std::vector<const char *>{"ls"}, {"ps"}, {"top"}, {"top", "-b", "-n", "1"}})
        EXPECT_EQ(run(words).code, 3) << words.back();
    EXPECT_EQ(run({"run", "--hard", "1G", "--", "true"}).code, 125);
    EXPECT_EQ(begun, 0);
    EXPECT_EQ(run({"top", "-b", "-n", "2", "-d", "0.1"}).code, 0);
    EXPECT_EQ(begun, 1);
}

TEST_F(App, WithoutTheModuleAnEarlierReportStays) {
    const std::string file = (sandbox_.root() / "took.txt").string();
    std::string text;

    sandbox_.write("took.txt", "an earlier one");
    loaded_ = false;
    EXPECT_EQ(run({"run", "--report", file.c_str(), "true"}).code, 125);
    std::getline(std::ifstream(file), text);
    EXPECT_EQ(text, "an earlier one");
}

TEST_F(App, WithoutPrivilegeChangesEndWith4) {
    const std::vector<std::vector<const char *>> verbs = {{"limit", "/idle", "--hard", "1G"},
                                                          {"reserve", "1G"},
                                                          {"preflight", "--fix"},
                                                          {"charge", "on"},
                                                          {"charge", "on", "42"}};

    fake_.refuse_with = EPERM;
    for (const auto &words : verbs) {
        const Ran ran = run(words);

        EXPECT_EQ(ran.code, 4) << ran.err;
        EXPECT_NE(ran.err.find("permission denied"), std::string::npos) << ran.err;
        EXPECT_NE(ran.err.find("hint: "), std::string::npos) << ran.err;
    }
}

TEST_F(App, WhoMayNotRunIsToldAsByEveryVerb) {
    loaded_ = false;
    unreachable_ = Failure::permission;
    EXPECT_EQ(run({"run", "true"}).code, 4);
    EXPECT_EQ(run({"ls"}).code, 4);
    unreachable_ = Failure::failed;
    EXPECT_EQ(run({"run", "true"}).code, 125);
}

TEST_F(App, TheModulesRefusalNamesTheSetting) {
    fake_.refuse_with = EINVAL;
    fake_.refused_attribute = UMACCT_A_ACCOUNT_SOFT;

    const Ran ran = run({"limit", "/idle", "--soft", "3G", "--hard", "1G"});
    EXPECT_EQ(ran.code, 1);
    EXPECT_EQ(ran.err, "umacct: cannot set soft of /idle: the fake module refuses\n");
    fake_.refused_attribute = UMACCT_A_ACCOUNT_VIEW;
    EXPECT_EQ(run({"limit", "/idle", "--view"}).err,
              "umacct: cannot set view of /idle: the fake module refuses\n");
    EXPECT_EQ(run({"view", "/idle", "on"}).err,
              "umacct: cannot set view of /idle: the fake module refuses\n");
    fake_.refused_attribute = 0;
    EXPECT_EQ(run({"limit", "/idle", "--soft", "3G", "--hard", "1G"}).err,
              "umacct: cannot set hard, soft of /idle: the fake module refuses\n");
}

TEST_F(App, ADriverThatIsNotLoadedIsTheSummarysExitCode) {
    fake_.status.driver_state = UMACCT_DRIVER_ABSENT;

    const Ran ran = run({});
    EXPECT_EQ(ran.code, 3);
    EXPECT_NE(ran.out.find("driver not loaded"), std::string::npos);
    EXPECT_EQ(run({"ls"}).code, 0);
}

// --- set ----------------------------------------------------------------------

TEST_F(App, SetIsOneRequestForAllSettingsOfACgroup) {
    fake_.on_change = [&] { fake_.accounts[4].hard = 40 * gib; };

    const Ran ran =
        run({"set", "/idle", "hard=40G", "soft=25%", "throttle=50ms", "keep=off", "view=on"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.out, "/idle: hard limit max -> 40.00 GiB\n"
                       "/idle: soft limit max, as it was\n"
                       "/idle: throttle off, as it was\n"
                       "/idle: guarantee off, as it was\n"
                       "/idle: view off, as it was\n");
    EXPECT_EQ(changed(UMACCT_A_ACCOUNT_HARD), 40 * gib);
    EXPECT_EQ(changed(UMACCT_A_ACCOUNT_SOFT), 4 * gib);
    EXPECT_EQ(changed(UMACCT_A_ACCOUNT_THROTTLE), 50'000'000U);
    EXPECT_EQ(changed(UMACCT_A_ACCOUNT_KEEP), 0U);
    EXPECT_EQ(changed(UMACCT_A_ACCOUNT_VIEW), 1U);
    EXPECT_EQ(test::attribute(fake_.changes[0].attributes, UMACCT_A_ACCOUNT_CHARGE), std::nullopt);
}

TEST_F(App, NoneClearsAnySetting) {
    std::vector<std::string> words{"set", "/idle"};
    std::vector<const char *> line;

    for_each_setting(
        [&](const auto &setting) { words.push_back(setting.policy + std::string("=none")); });
    line.reserve(words.size());
    for (const std::string &word : words)
        line.push_back(word.c_str());
    EXPECT_EQ(run(line).code, 0);
    for_each_setting([&](const auto &setting) {
        EXPECT_EQ(changed(setting.attribute), static_cast<std::uint64_t>(setting.neutral))
            << setting.policy;
    });
}

TEST_F(App, SetOfTheMachineIsWhatAPolicysMachineHas) {
    EXPECT_EQ(run({"set", "machine", "reserve=25%", "charge=on"}).code, 0);
    EXPECT_EQ(changed(UMACCT_A_STATUS_RESERVE), 4 * gib);
    EXPECT_EQ(changed(UMACCT_A_STATUS_CHARGE_DEFAULT), UMACCT_CHARGE_ON);
    EXPECT_EQ(fake_.changes[0].command, UMACCT_CMD_CONFIG_SET);
    fake_.changes.clear();
    EXPECT_EQ(run({"set", "machine", "reserve=none", "view=on"}).out,
              "reserve off, as it was\n/: view off, as it was\n");
    ASSERT_EQ(fake_.changes.size(), 2U);
    EXPECT_EQ(fake_.changes[0].command, UMACCT_CMD_CONFIG_SET);
    EXPECT_EQ(test::attribute(fake_.changes[1].attributes, UMACCT_A_ACCOUNT_VIEW), 1U);
    fake_.changes.clear();
    EXPECT_EQ(run({"set", "/", "charge=inherit"}).code, 0);
    EXPECT_EQ(fake_.changes.at(0).command, UMACCT_CMD_ACCOUNT_SET) << "the root cgroup's own";
}

TEST_F(App, WhatIsRefusedHalfWayIsTakenBack) {
    fake_.status.reserve = 2 * gib;
    fake_.refuse_in = 2;

    const Ran ran = run({"set", "machine", "view=on", "reserve=4G"});
    EXPECT_EQ(ran.code, 1);
    EXPECT_EQ(ran.err, "umacct: cannot set view of /: the fake module refuses this one\n"
                       "hint: the machine's settings are as they were\n");
    ASSERT_EQ(fake_.changes.size(), 2U);
    EXPECT_EQ(test::attribute(fake_.changes[1].attributes, UMACCT_A_STATUS_RESERVE), 2 * gib);
}

TEST_F(App, SetHasJson) {
    const json set = run_json({"set", "--json", "machine", "reserve=4G", "keep=1G", "hard=none"});

    EXPECT_EQ(set["path"], "/");
    EXPECT_EQ(set["before"],
              json({{"reserve_bytes", 0}, {"keep_bytes", 0}, {"hard_bytes", nullptr}}));
    EXPECT_TRUE(set["after"].contains("reserve_bytes"));
    fake_.enforcement = {.driver_state = UMACCT_DRIVER_UNKNOWN, .reason = "a version unknown"};
    EXPECT_EQ(run({"set", "/idle", "hard=1G"}).code, 5);
}

// --- text ---------------------------------------------------------------------

TEST_F(App, LsIsATreeOfWhatHoldsMemoryOrHasSettings) {
    const Ran ran = run({"ls"});

    EXPECT_EQ(ran.code, 0);
    EXPECT_EQ(ran.err, "");
    EXPECT_EQ("\n" + ran.out, R"(
ACCOUNT              TOTAL     USAGE      PEAK     LIMIT   MEM %  UNCHARGED  MEMORY.CURRENT  MEMORY.MAX
/                14.00 GiB  3.00 GiB  4.00 GiB       max       -   2.00 GiB               -           -
  a.slice         3.00 GiB  3.00 GiB  4.00 GiB  8.00 GiB  37.56%   2.00 GiB               -           -
    big.service   3.00 GiB  3.00 GiB  4.00 GiB  8.00 GiB  37.50%   2.00 GiB        1.00 GiB         max
    small         5.00 MiB  5.00 MiB  5.00 MiB  8.00 GiB   0.06%   5.00 MiB               -           -
)");
}

TEST_F(App, LsHasOrdersAndAFlatForm) {
    const std::string all = run({"ls", "--flat", "--all", "--sort", "name"}).out;

    EXPECT_LT(all.find("/a.slice/big.service"), all.find("/a.slice/small"));
    EXPECT_LT(all.find("/a.slice/small"), all.find("/idle"));

    const std::string largest = run({"ls", "--flat", "--sort", "local"}).out;
    EXPECT_LT(largest.find("/a.slice/big.service"), largest.find("/a.slice/small"));
    EXPECT_EQ(largest.find("/idle"), std::string::npos);
}

TEST_F(App, ColumnsAreChosenOneByOneOrAdded) {
    EXPECT_EQ("\n" + run({"ls", "--flat", "-o", "usage,name"}).out, R"(
   USAGE  ACCOUNT
3.00 GiB  /
3.00 GiB  /a.slice
3.00 GiB  /a.slice/big.service
5.00 MiB  /a.slice/small
)");
    EXPECT_EQ(run({"ps", "--no-header", "-o", "pid,name", "--sort", "name"}).out,
              "  -  gone (exited)\n 42  python3\n");
    EXPECT_NE(run({"ls", "-o", "+refusals"}).out.find("MEMORY.MAX  REFUSALS\n"), std::string::npos);
    EXPECT_NE(run({"limit", "--no-header", "-o", "hard"}).out.find("8.00 GiB\n"),
              std::string::npos);
}

TEST_F(App, ATableIsNeverWiderThanTheTerminal) {
    fake_.accounts[3].path = "/a.slice/" + std::string(100, 'x');
    for (int width = 1; width < 130; width += 7) {
        width_ = width;
        for (const auto &words : std::vector<std::vector<const char *>>{
                 {"ls", "--flat"}, {"ls"}, {"ps"}, {"limit"}, {"charge"}, {"view"}}) {
            std::istringstream lines(run(words).out);

            for (std::string line; std::getline(lines, line);) {
                // A sentence is no table.
                if (line.find(':') == std::string::npos && line != "no views are set") {
                    EXPECT_LE(line.size(), static_cast<std::size_t>(std::max(width, 9)))
                        << words[0] << ' ' << line;
                }
            }
        }
    }
    width_ = 60;
    EXPECT_NE(run({"ls", "--flat"}).out.find("  3.00 GiB  4.00 GiB"), std::string::npos);
}

TEST_F(App, At80ColumnsNamesAndReasonsCanBeRead) {
    width_ = 80;
    for (const char *verb : {"ls", "audit"})
        EXPECT_TRUE(std::regex_search(run({verb, "/a.slice"}).out,
                                      std::regex("\\n *(/a.slice/)?big.service  ")))
            << run({verb, "/a.slice"}).out;
    EXPECT_NE(run({"audit"}).out.find("  VERDICT\n"), std::string::npos);
    EXPECT_NE(run({"ps"}).out.find("  COMMAND LINE\n"), std::string::npos);
    const std::string shown = run({"show", "/a.slice"}).out;
    EXPECT_NE(shown.find("no order asks for it: until"), std::string::npos);
    EXPECT_EQ(shown.find("..."), std::string::npos) << shown;
}

TEST_F(App, WhatAUserMayNotSeeIsNotPrintedAsNothing) {
    width_ = 80;
    fake_.status.records.reset();
    for (const bool empty : {false, true}) {
        if (empty) {
            fake_.accounts.clear();
            fake_.clients.clear();
        }
        for (const auto &words : std::vector<std::vector<const char *>>{
                 {}, {"ls"}, {"ps"}, {"limit"}, {"charge"}, {"view"}, {"audit"}, {"doctor"}}) {
            const Ran ran = run(words);

            EXPECT_NE((ran.out + ran.err).find("not visible to you"), std::string::npos)
                << (words.empty() ? "" : words[0]) << '\n'
                << ran.out << ran.err;
        }
    }
}

TEST_F(App, ATargetsSubtreeIsAllThatIsListed) {
    EXPECT_EQ(run({"ls", "--flat", "--no-header", "-o", "name", "/a.slice"}).out,
              "/a.slice\n/a.slice/big.service\n/a.slice/small\n");
    EXPECT_EQ(run_json({"ls", "--json", "--all", "/idle"})["accounts"].size(), 1U);
    EXPECT_EQ(run({"ps", "--no-header", "-o", "name,account", "/a.slice/small"}).out,
              "gone (exited)  /a.slice/small\n");
    EXPECT_EQ(run_json({"ps", "--json", "/a.slice"})["clients"].size(), 2U);
    EXPECT_EQ(run({"ps", "/idle"}).out, "no process holds memory\n");
}

TEST_F(App, HelpAndMeantWords) {
    EXPECT_EQ(run({"help", "ls"}).out, run({"ls", "--help"}).out);
    EXPECT_EQ(run({"help"}).out, run({"--help"}).out);
    EXPECT_NE(run({"help"}).out.find("Exit codes: 0 done, 1 failed"), std::string::npos);
    for (const auto &words : std::vector<std::vector<const char *>>{
             {"-j", "help", "ls"}, {"help", "-j", "ls"}, {"help", "ls", "-j"}})
        EXPECT_EQ(run(words).out, run({"ls", "--help"}).out) << words[0];
    EXPECT_EQ(run({"-j", "help"}).out, run({"--help"}).out);
    EXPECT_NE(run({"limti"}).err.find("hint: did you mean 'limit'?"), std::string::npos);
    EXPECT_NE(run({"ls", "--al"}).err.find("hint: did you mean '--all'?"), std::string::npos);
    EXPECT_EQ(run({"quite-another"}).err.find("did you mean"), std::string::npos);
    EXPECT_EQ(run({"stop"}).err.find("did you mean"), std::string::npos);
}

TEST_F(App, PsListsTheLargestFirstAndMarksWhatIsGone) {
    const Ran ran = run({"ps"});

    EXPECT_EQ(ran.code, 0);
    EXPECT_LT(ran.out.find(" 42  -     3.00 GiB  3.00 GiB"),
              ran.out.find("  -  -     5.00 MiB  5.00 MiB"))
        << ran.out;
    EXPECT_NE(ran.out.find("gone (exited)"), std::string::npos);
}

TEST_F(App, PsHasTheCommandLineAndTheUserOfTheProcessThatItWas) {
    const std::string ticks = std::to_string(5 * sysconf(_SC_CLK_TCK));
    const std::string words("python3\0-m\0vllm\0", 16);

    fake_.clients[1].start_time_ns = 5'000'000'000;
    sandbox_.write("proc/42/stat",
                   "42 (a) b) S 1 2 3 4 5 0 7 8 9 10 11 12 13 14 15 16 17 18 " + ticks + " 20\n");
    sandbox_.write("proc/42/cmdline", words);
    EXPECT_NE(run({"ps"}).out.find("  python3 -m vllm  "), std::string::npos) << run({"ps"}).out;
    EXPECT_EQ(run({"ps", "--no-header", "-o", "user", "/a.slice/big.service"}).out,
              geteuid() == 0 ? "root\n" : run({"ps", "--no-header", "-o", "user"}).out);
    fake_.clients[1].start_time_ns = 7'000'000'000;
    EXPECT_EQ(run({"ps", "--no-header", "-o", "user,command", "/a.slice/big.service"}).out,
              "-     python3\n")
        << "another process has the number by now";
}

/// Formats a /proc/PID/stat up to the pending signals.
std::string task_stat(const char *state, unsigned flags, unsigned pending) {
    return fmt::format("42 (a) b) {} 1 3 4 5 6 {} 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 "
                       "24 25 26 27 28 {} 0 0\n",
                       state, flags, pending);
}

TEST_F(App, AProcessIsExitingWhenAllOfItsThreadsAre) {
    const auto exiting = [&](const std::string &first, const std::string &second) {
        sandbox_.write("proc/42/stat", first);
        sandbox_.write("proc/42/task/42/stat", first);
        sandbox_.write("proc/42/task/43/stat", second);
        return is_exiting(sandbox_.root() / "proc", 42);
    };

    EXPECT_FALSE(exiting(task_stat("S", 0, 0), task_stat("S", 0, 0)));
    EXPECT_FALSE(exiting(task_stat("Z", 4, 0), task_stat("S", 0, 0)))
        << "only its first thread has ended";
    EXPECT_TRUE(exiting(task_stat("Z", 4, 0), task_stat("D", 4, 0)));
    EXPECT_TRUE(exiting(task_stat("D", 0, 1U << 8), task_stat("D", 0, 1U << 8)))
        << "it was killed, and waits in the driver";
}

TEST_F(App, WhatIsComingBackIsOfProcessesThatAreExiting) {
    EXPECT_EQ(run_json({"ps", "--json"})["clients"][0]["exiting"], false);
    fake_.clients[1].exiting = true;
    EXPECT_EQ(run_json({"ps", "--json"})["clients"][0]["exiting"], true);
    EXPECT_NE(run({"ps"}).out.find("python3 (exiting)"), std::string::npos) << run({"ps"}).out;
    EXPECT_NE(run({"ls"}).out.find("big.service (1 process exiting)"), std::string::npos)
        << run({"ls"}).out;
    EXPECT_EQ(run({"ls", "/a.slice/small"}).out.find("exiting"), std::string::npos);
    EXPECT_EQ(run_json({"ls", "--json"})["accounts"][2]["exiting"], 1);
    EXPECT_TRUE(std::regex_search(run({"show", "/a.slice/big.service"}).out,
                                  std::regex("processes +1 +1 process exiting\n")))
        << run({"show", "/a.slice/big.service"}).out;
    EXPECT_EQ(run_json({"show", "/a.slice/big.service", "--json"})["account"]["exiting"], 1);
    EXPECT_EQ(run_json({"show", "/a.slice", "--json"})["account"]["exiting"], 0);
}

TEST_F(App, SizesInBytesAndCsv) {
    EXPECT_EQ(run({"ls", "-b", "--no-header", "-o", "usage,limit", "/idle", "--all"}).out,
              "    0    max\n");
    EXPECT_EQ(run({"ls", "--csv", "--flat", "-o", "name,usage,limit,percent,memory.current"}).out,
              "name,usage,limit,percent,memory.current\n"
              "/,3226468352,max,,\n"
              "/a.slice,3226468352,8589934592,37.56,\n"
              "/a.slice/big.service,3221225472,8589934592,37.50,1073741824\n"
              "/a.slice/small,5242880,8589934592,0.06,\n");
    fake_.clients[1].comm = "a,\"b\"";
    EXPECT_EQ(run({"ps", "--csv", "--no-header", "-o", "pid,name", "/a.slice/big.service"}).out,
              "42,\"a,\"\"b\"\"\"\n");
    fake_.clients.clear();
    EXPECT_EQ(run({"ps", "--csv", "-o", "pid,usage"}).out, "pid,usage\n") << "no sentence";
    EXPECT_NE(run({"show", "-b", "/a.slice"}).out.find("3226468352"), std::string::npos);
    EXPECT_NE(run({"show", "/a.slice"}).out.find("used"), std::string::npos);
}

TEST_F(App, LsGoesAsDeepAsItIsTold) {
    EXPECT_EQ(run({"ls", "--no-header", "-o", "name", "--depth", "1"}).out, "/\n  a.slice\n");
    EXPECT_EQ(run({"ls", "--no-header", "-o", "name", "--depth", "0", "/a.slice"}).out,
              "/a.slice\n");
}

TEST_F(App, AColumnThatThereIsNotIsSaidWithoutTheModuleToo) {
    loaded_ = false;
    EXPECT_EQ(run({"ls", "-o", "colour"}).code, 2);
    EXPECT_EQ(run({"ps", "-o", "colour"}).code, 2);
}

TEST_F(App, SharesAreOfTheMachine) {
    EXPECT_EQ(run({"limit", "/idle", "--hard", "50%"}).code, 0);
    EXPECT_EQ(changed(UMACCT_A_ACCOUNT_HARD), 8 * gib);
    fake_.changes.clear();
    EXPECT_EQ(run({"reserve", "25%"}).code, 0);
    EXPECT_EQ(changed(UMACCT_A_STATUS_RESERVE), 4 * gib);
    for (const auto &[option, attribute] :
         {std::pair{"--soft", UMACCT_A_ACCOUNT_SOFT}, {"--keep", UMACCT_A_ACCOUNT_KEEP}}) {
        fake_.changes.clear();
        EXPECT_EQ(run({"limit", "/idle", option, "4%"}).code, 0);
        EXPECT_EQ(changed(attribute), 16 * gib / 25);
    }
    for (const auto &command :
         std::initializer_list<std::vector<const char *>>{{"limit", "/idle", "--hard", "4x"},
                                                          {"limit", "/idle", "--keep", "4x"},
                                                          {"reserve", "4x"},
                                                          {"headroom", "4x"},
                                                          {"preflight", "4x"}})
        EXPECT_NE(run(command).err.find("share of the machine's memory as "), std::string::npos)
            << command[0];
}

TEST_F(App, ASizeWithoutItsUnitIsRefused) {
    const Ran ran = run({"limit", "/idle", "--hard", "40"});

    EXPECT_EQ(ran.code, 2);
    EXPECT_NE(ran.err.find("'40' is 40 bytes, less than a page"), std::string::npos) << ran.err;
    EXPECT_NE(ran.err.find("write 40G"), std::string::npos) << ran.err;
    EXPECT_EQ(run({"preflight", "96"}).code, 2);
    EXPECT_TRUE(fake_.changes.empty());
    EXPECT_EQ(run({"limit", "/idle", "--hard", "0"}).code, 0);
}

TEST_F(App, OtherToolsWordsLeadToTheVerb) {
    EXPECT_NE(run({"check"}).err.find("did you mean 'doctor'?"), std::string::npos);
    EXPECT_NE(run({"stats"}).err.find("did you mean 'top'?"), std::string::npos);
    EXPECT_NE(run({"limit", "/idle", "40G"}).err.find("did you mean '--hard 40G'?"),
              std::string::npos);
}

/// A reader that may not see all: hidden numbers are 0 in the status.
TEST_F(App, WhatIsNotVisibleIsNoZero) {
    const auto hidden = [&](const std::vector<const char *> &words) {
        const Ran ran = run(words);

        EXPECT_NE((ran.out + ran.err).find("not visible to you"), std::string::npos)
            << ran.out << ran.err;
        EXPECT_EQ(ran.out.find(" calls"), std::string::npos) << ran.out;
        return ran.code;
    };

    fake_.status.records.reset();
    fake_.status.pools.reset();
    fake_.status.accounts = fake_.status.clients = 0;
    EXPECT_EQ(hidden({}), 0);
    EXPECT_EQ(run({}).out.find("Reserve"), std::string::npos);
    EXPECT_EQ(run({}).out.find("0 accounts"), std::string::npos);
    EXPECT_EQ(hidden({"charge"}), 0);
    EXPECT_EQ(hidden({"top", "-n", "1"}), 0);
    EXPECT_EQ(run({"reserve"}).code, 4);
    EXPECT_EQ(run({"config", "save"}).code, 4);
    fake_.accounts.clear();
    fake_.clients.clear();
    EXPECT_NE(run({"ls"}).out.find("no account that you may see"), std::string::npos);
    EXPECT_NE(run({"ps"}).out.find("no process that you may see"), std::string::npos);
    hidden({"doctor"});
    const json status = run_json({"--json"});
    for (const char *key : {"reserve_bytes", "accounts", "clients", "records", "charge_default",
                            "driver_usage_bytes", "driver_memory_bytes", "available_bytes"})
        EXPECT_TRUE(status[key].is_null()) << key;
    EXPECT_EQ(status["usage_bytes"], fake_.status.usage);
    EXPECT_TRUE(status["hooks"][0]["calls"].is_null());
    EXPECT_TRUE(run_json({"top", "-n", "1", "--json"})["reserve_bytes"].is_null());
    EXPECT_TRUE(run_json({"charge", "--json"})["charge_default"].is_null());
}

/// A document of "config save", for "config load".
class Saved : public App {
protected:
    std::string save() {
        std::string file = (sandbox_.root() / "saved.toml").string();

        sandbox_.write("saved.toml", run({"config", "save"}).out);
        return file;
    }

    std::string written(const std::string &text) {
        sandbox_.write("written.toml", text);
        return (sandbox_.root() / "written.toml").string();
    }

    Ran load(const std::string &file) { return run({"config", "load", file.c_str()}); }
};

TEST_F(Saved, IsAPolicyWithAllThatIsSet) {
    fake_.status.reserve = gib;
    fake_.accounts[2].throttle_ns = 50'000'000;
    fake_.accounts[2].view = true;
    fake_.accounts[4].charge = UMACCT_CHARGE_ON;
    EXPECT_EQ("\n" + run({"config", "save"}).out, R"(
# By 'umacct config save': what is set, for 'umacct config load', or as a policy.
[machine]
reserve = "1073741824B"
charge = "off"

[[rule]]
cgroup = "/a.slice"
hard = "8589934592B"

[[rule]]
cgroup = "/a.slice/small"
soft = "4194304B"
throttle = "50000000ns"
view = true

[[rule]]
cgroup = "/idle"
charge = "on"
)");
    EXPECT_EQ(run({"config", "save", "--json"}).code, 2);
}

TEST_F(Saved, LoadingWhatIsSetChangesNothing) {
    fake_.accounts[2].view = true;
    const Ran ran = load(save());

    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.out + ran.err, "nothing differs\n");
    EXPECT_TRUE(fake_.changes.empty());
}

TEST_F(Saved, LoadingMakesTheDifferenceAndLeavesWhatIsNotInIt) {
    const std::string file = save();

    fake_.accounts[1].hard = 2 * gib;
    fake_.accounts[4].hard = gib;
    fake_.status.reserve = 3 * gib;
    const json planned = run_json({"config", "load", file.c_str(), "--dry-run", "--json"});
    EXPECT_TRUE(fake_.changes.empty());
    ASSERT_EQ(planned["changes"].size(), 1U);
    EXPECT_EQ(planned["changes"][0]["path"], "/a.slice");
    EXPECT_EQ(planned["changes"][0]["before"], json({{"hard_bytes", 2 * gib}}));
    EXPECT_EQ(planned["changes"][0]["after"], json({{"hard_bytes", 8 * gib}}));
    const Ran ran = load(file);
    EXPECT_EQ(ran.out, "/a.slice: hard limit 2.00 GiB -> 8.00 GiB\n"
                       "reserve 3.00 GiB -> off\n");
    ASSERT_EQ(fake_.changes.size(), 2U);
    EXPECT_EQ(test::attribute(fake_.changes[0].attributes, UMACCT_A_ACCOUNT_HARD), 8 * gib);
    EXPECT_FALSE(test::attribute(fake_.changes[0].attributes, UMACCT_A_ACCOUNT_SOFT));
    EXPECT_EQ(test::attribute(fake_.changes[1].attributes, UMACCT_A_STATUS_RESERVE), 0U);
}

/// Two containers may have any names.
TEST_F(Saved, LoadingTellsAContainersPathWithItsName) {
    const std::string path = "/system.slice/docker-" + std::string(64, 'a') + ".scope";
    const std::string file = written("[[rule]]\ncgroup = '" + path + "'\nhard = 'max'\n");

    fake_.accounts[4].path = path;
    fake_.accounts[4].id = sandbox_.add_cgroup(path);
    fake_.accounts[4].hard = gib;
    EXPECT_EQ(load(file).out, "docker aaaaaaaaaaaa (" + path + "): hard limit 1.00 GiB -> max\n");
}

TEST_F(Saved, NothingIsChangedByAFileThatIsWrong) {
    for (const char *text :
         {"[[rule]]\ncgroup = '/idle'\nhard = 'lots'\n", "[[rule]]\nunit = 'a'\nhard = '1G'\n",
          "[[rule]]\ncgroup = '/**'\nhard = '1G'\n", "[machine]\nheadroom = '1G'\n",
          "[machine]\nreserve = '17G'\n", "not TOML"}) {
        EXPECT_EQ(load(written(text)).code, 2) << text;
        EXPECT_TRUE(fake_.changes.empty()) << text;
    }
    EXPECT_EQ(run({"config", "load", "/nowhere/at/all"}).code, 1);
    EXPECT_TRUE(fake_.changes.empty());
}

TEST_F(Saved, ACgroupThatIsGoneIsSaidAndTheRestIsSet) {
    const std::string file = written("[[rule]]\ncgroup = '/a.slice'\nhard = '1G'\n"
                                     "[[rule]]\ncgroup = '/gone'\nhard = '1G'\n");
    const Ran ran = load(file);

    EXPECT_EQ(ran.code, 1);
    EXPECT_NE(ran.err.find("/gone is not there"), std::string::npos) << ran.err;
    EXPECT_EQ(fake_.changes.size(), 1U);
}

TEST_F(Saved, WhatWasDoneIsTakenBackWhereTheModuleRefuses) {
    const std::string file = written("[[rule]]\ncgroup = '/a.slice'\nhard = '1G'\n"
                                     "[[rule]]\ncgroup = '/idle'\nhard = '1G'\n");

    fake_.refuse_in = 2;
    const Ran ran = load(file);
    EXPECT_EQ(ran.code, 1);
    EXPECT_NE(ran.err.find("/idle"), std::string::npos) << ran.err;
    ASSERT_EQ(fake_.changes.size(), 2U);
    EXPECT_EQ(test::attribute(fake_.changes[1].attributes, UMACCT_A_ACCOUNT_HARD), 8 * gib);
}

/// Names that tenants choose: with C0 and C1 controls, and ones that turn the direction.
class Hostile : public App {
protected:
    Hostile() {
        Account &account = fake_.accounts[3];

        account.path = path_;
        account.id = sandbox_.add_cgroup(path_);
        account.effective_id = account.id;
        fake_.clients[0].path = path_;
        fake_.clients[0].account_id = account.id;
        fake_.clients[1].comm = name_;
        sandbox_.add_cgroup(container_);
        sandbox_.write("proc/zoneinfo", "Node 0, zone   Normal\n  pages free     131072\n"
                                        "        low      0\n        managed  0\n");
        sandbox_.write("proc/buddyinfo", "Node 0, zone Normal 0 0 0 0 0 0 0 0 0 0 128\n");
    }

    Ran run_safely(const std::vector<const char *> &words) {
        Ran ran = run(words);

        for (const std::string &text : {ran.out, ran.err}) {
            std::istringstream lines(text);

            for (std::string line; std::getline(lines, line);) {
                std::ranges::replace(line, '\t', ' '); // shells separate by it
                EXPECT_EQ(printable(line), line) << testing::PrintToString(words);
            }
        }
        return ran;
    }

    const std::string name_ = "\x1b[2J\x07\u009b2J\u202eevil\u2066\n\r";
    const std::string path_ = "/a.slice/" + name_;
    // Placed in a slice, which a runtime can be configured to do: elsewhere it would have no owner.
    const std::string container_ =
        "/a.slice/a-" + name_ + ".slice/docker-" + std::string(64, '1') + ".scope";
};

TEST_F(Hostile, NamesCantDriveTheTerminal) {
    for (const std::vector<const char *> &words :
         std::vector<std::vector<const char *>>{{},
                                                {"ls"},
                                                {"ls", "--flat", "-o", "+bound-by"},
                                                {"ps"},
                                                {"show", path_.c_str()},
                                                {"top", "-n", "1"},
                                                {"top", "-P", "-n", "1"},
                                                {"limit"},
                                                {"limit", path_.c_str(), "--hard", "1M"},
                                                {"charge"},
                                                {"charge", path_.c_str(), "on"},
                                                {"view", path_.c_str(), "on"},
                                                {"preflight", "1G"},
                                                {"config", "explain", path_.c_str()},
                                                {"audit"},
                                                {"audit", path_.c_str()},
                                                {"complete", "--", "show", ""}}) {
        const Ran ran = run_safely(words);

        EXPECT_NE(ran.out, "") << testing::PrintToString(words) << ran.err;
        if (!words.empty() && words[0] != std::string("complete")) {
            std::vector<const char *> with_json = words;

            with_json.insert(with_json.begin() + 1, "--json");
            EXPECT_TRUE(std::ranges::all_of(run(with_json).out, [](char c) {
                return c == '\n' || (c >= ' ' && c <= '~');
            })) << testing::PrintToString(words);
        }
    }

    Event event = refusal(1);
    event.path = event.limit_path = path_;
    event.comm = name_;
    fake_.to_receive = {{.events = {test::encode(event)}}};
    EXPECT_NE(run_safely({"watch"}).out, "");
}

TEST_F(Hostile, ErrorsAndTheirHintsCantEither) {
    // The beginning of a container's id: the hint has its path.
    const Ran told = run_safely({"show", "11111"});
    EXPECT_NE(told.err.find("hint: for /a.slice/a-?[2J??2J?evil??"
                            "?.slice/docker-1111"),
              std::string::npos)
        << told.err;
    EXPECT_EQ(std::count(told.err.begin(), told.err.end(), '\n'), 2);

    for (const std::vector<const char *> &words :
         std::vector<std::vector<const char *>>{{"show", name_.c_str()},
                                                {name_.c_str()},
                                                {"ls", "-o", name_.c_str()},
                                                {"limit", "/idle", "--hard", name_.c_str()},
                                                {"run", "--report", path_.c_str(), "true"},
                                                {"run", "--user", name_.c_str(), "true"}})
        EXPECT_NE(run_safely(words).code, 0);
    sandbox_.write("etc/umacct.toml", "[[rule]]\nname='\u202e'\nunit='\u202ex'\nhard='1G'\n");
    run_safely({"config", "explain", path_.c_str()});
    sandbox_.write("etc/umacct.toml", "[[rule]]\n'\u202e'=1\nhard='\u202e'\n");
    EXPECT_EQ(run_safely({"config", "check"}).code, 2);
    unreachable_ = Failure::failed;
    loaded_ = false;
    run_safely({"doctor"});
}

TEST_F(App, AContainersPathBeginsAtTheContainer) {
    const std::string id(64, 'a');

    fake_.accounts[3].path = "/system.slice/docker-" + id + ".scope/init";
    EXPECT_NE(run({"ls", "--flat"}).out.find("\ndocker aaaaaaaaaaaa/init "), std::string::npos);
}

TEST_F(App, ShowHasWhatTheMemoryControllerSays) {
    const std::string out = run({"show", "/a.slice/big.service"}).out;

    EXPECT_TRUE(std::regex_search(out, std::regex("memory.current +1.00 GiB"))) << out;
    EXPECT_TRUE(std::regex_search(out, std::regex("memory.max +max"))) << out;
}

TEST_F(App, ShowOfAPidHasThatProcessAlone) {
    const json shown = run_json({"show", "42", "--json"});

    EXPECT_EQ(shown["account"]["path"], "/a.slice/big.service");
    ASSERT_EQ(shown["clients"].size(), 1U);
    EXPECT_EQ(shown["clients"][0]["pid"], 42);
}

TEST_F(App, ShowOfACgroupThatNeverHeldMemoryHasWhatItInherits) {
    sandbox_.add_cgroup("/a.slice/fresh/er");
    fake_.accounts[1].charge_effective = UMACCT_CHARGE_ON;

    const json shown = run_json({"-j", "show", "/a.slice/fresh/er"});
    EXPECT_EQ(shown["account"]["usage_bytes"], 0);
    EXPECT_EQ(shown["account"]["effective_bytes"], 8 * gib);
    EXPECT_EQ(shown["account"]["hard_bytes"], nullptr);
    EXPECT_EQ(shown["account"]["charge"], "inherit");
    EXPECT_EQ(shown["account"]["charge_effective"], "on");
}

TEST_F(App, TheSummarySaysWhatIsWrong) {
    fake_.status.hooks.push_back({.name = "view",
                                  .symbol = "si_meminfo",
                                  .state = UMACCT_HOOK_FAILED,
                                  .required = false,
                                  .reason = "no such symbol",
                                  .calls = 0,
                                  .missed = 0});
    fake_.status.hooks[0].missed = 3;
    fake_.status.untracked = gib;
    fake_.status.untracked_count = 2;

    const Ran ran = run({});
    EXPECT_EQ(ran.code, 0);
    EXPECT_NE(ran.out.find("warning: hook view (si_meminfo) failed: no such symbol"),
              std::string::npos);
    EXPECT_NE(ran.out.find("missed 3 of 15 calls"), std::string::npos);
    EXPECT_NE(ran.out.find("warning: 2 allocations of 1.00 GiB could not be recorded"),
              std::string::npos);
    EXPECT_EQ(run_json({"--json"})["warnings"].size(), 3U);
    EXPECT_NE(run({"ls"}).err.find("warning: "), std::string::npos);
}

TEST_F(App, AnUnknownDriverIsNeverASilentZero) {
    fake_.status.driver_state = UMACCT_DRIVER_UNKNOWN;
    fake_.status.reason = "version 999.1 is newer than this module";
    for (const auto &words : std::vector<std::vector<const char *>>{{"ls"}, {"ps"}})
        EXPECT_NE(run(words).err.find(
                      "nothing is accounted: driver 550.163.01 is unknown: version 999.1"),
                  std::string::npos);
}

TEST_F(App, AVerbsFormerNameSaysTheNewOne) {
    const Ran ran = run({"guard"});

    EXPECT_EQ(ran.out, run({"show", "guard"}).out);
    EXPECT_EQ(ran.err.find("note: 'umacct guard' is 'umacct show guard' now\n"), 0U) << ran.err;
    EXPECT_NE(run({"help", "report"}).out.find("umacct history [options]"), std::string::npos);
    EXPECT_EQ(run({"version"}).out, run({"--version"}).out);
    EXPECT_EQ(run({"list"}).out, run({"ls"}).out);
    EXPECT_EQ(run({"status"}).out, run({}).out);
}

TEST_F(App, EveryVerbExplainsItself) {
    for (const tool::Verb &each : tool::verbs()) {
        if (*each.summary == '\0')
            continue;

        const char *verb = each.name;
        const Ran ran = run({verb, "--help"});

        EXPECT_EQ(ran.code, 0);
        EXPECT_NE(ran.out.find("umacct " + std::string(verb)), std::string::npos) << verb;
        EXPECT_NE(ran.out.find("Examples:\n"), std::string::npos) << verb;
        EXPECT_LT(ran.out.find("Examples:\n"), ran.out.find("Columns:\n")) << verb;
        EXPECT_EQ(ran.out.find("at a glance"), std::string::npos) << verb;
        EXPECT_NE(ran.out.find("--json"), std::string::npos) << verb;
        EXPECT_EQ(ran.err, "");
    }
}

TEST_F(App, VersionWithAndWithoutTheModule) {
    EXPECT_NE(run({"--version"}).out.find("(netlink ABI 1)\nmodule 0.1.0\n"), std::string::npos);
    loaded_ = false;
    EXPECT_NE(run({"--version"}).out.find("module not loaded"), std::string::npos);
    EXPECT_EQ(run({"-V"}).code, 0);
    EXPECT_EQ(run_json({"--version", "-j"})["module_version"], nullptr);
    unreachable_ = Failure::permission;
    const Ran ran = run({"-V"});
    EXPECT_EQ(ran.code, 0);
    EXPECT_NE(ran.out.find("(netlink ABI 1)\nmodule unknown: "), std::string::npos);
}

// --- JSON ---------------------------------------------------------------------

// Each document is held against its schema by run_json().
TEST_F(App, EveryVerbPrintsWhatItsSchemaSays) {
    const json summary = run_json({"--json"});

    EXPECT_EQ(summary["memory"],
              (json{{"total_bytes", 16 * gib}, {"free_bytes", gib}, {"available_bytes", 2 * gib}}));
    EXPECT_EQ(summary["top_accounts"][0]["path"], "/a.slice/big.service");
    EXPECT_EQ(summary["top_accounts"].size(), 2U);
    EXPECT_FALSE(summary["hooks"].empty());
    EXPECT_FALSE(summary["top_clients"].empty());
    for (const char *verb : {"ls", "limit", "charge"})
        EXPECT_FALSE(run_json({verb, "--json"})["accounts"].empty()) << verb;
    EXPECT_FALSE(run_json({"ps", "--json"})["clients"].empty());
    EXPECT_FALSE(run_json({"show", "--json", "/a.slice"})["clients"].empty());
    EXPECT_EQ(run_json({"reserve", "--json"})["available_bytes"], 2 * gib);
}

TEST_F(App, WhomTheGuardWouldActAgainst) {
    EXPECT_EQ(run({"show", "guard"}).out, "off\n");
    EXPECT_EQ(run_json({"show", "guard", "--json"})["on"], false);
    sandbox_.write(
        "run/umacctd/ranking",
        R"({"as_of_us":0,"obtainable_bytes":2147483648,"floor_bytes":4294967296,)"
        R"("pressure_percent":0.0,"short":true,"dry_run":false,"steps":["freeze","kill"],)"
        R"("candidates":[{"path":"/a.service","kind":"unit","driver_bytes":1073741824,)"
        R"("other_bytes":0,"swap_bytes":0,"grown_bytes":1073741824,"within_s":1200,)"
        R"("over_soft_bytes":0,"preference":"none","candidate":true,"reason":""},)"
        R"({"path":"/b.service","kind":"unit","driver_bytes":0,"other_bytes":4096,"swap_bytes":0,)"
        R"("grown_bytes":0,"within_s":1200,"over_soft_bytes":0,"preference":"omit",)"
        R"("candidate":false,"reason":"its unit has ManagedOOMPreference=omit"}],)"
        R"("last":{"time":"2026-11-25T08:00:00.000000000Z","step":"freeze",)"
        R"("undo":false,"dry_run":false,"failed":false,"path":"/a.service",)"
        R"("text":"guard: freeze /a.service"}})");
    const std::string out = run({"show", "guard"}).out;
    EXPECT_NE(out.find("on: freeze, kill; available 2.00 GiB, floor 4.00 GiB: memory is short"),
              std::string::npos)
        << out;
    EXPECT_LT(out.find("/a.service"), out.find("/b.service"));
    EXPECT_NE(out.find("ManagedOOMPreference=omit"), std::string::npos) << out;
    EXPECT_NE(out.find("last, at 2026-11-25T08:00:00.000000000Z: guard: freeze"), std::string::npos)
        << out;
    EXPECT_EQ(run_json({"show", "guard", "--json"})["candidates"][0]["path"], "/a.service");
    sandbox_.write("run/umacctd/ranking", "{");
    EXPECT_EQ(run({"show", "guard"}).code, 1);
}

TEST_F(App, ASchemaThatAllowsEverythingWouldBeNone) {
    json document = json::parse(run({"ls", "--json"}).out);

    document["accounts"][0]["usage_bytes"] = -1;
    EXPECT_NE(schema_of("ls", document), "");
    document = json::parse(run({"ls", "--json"}).out);
    document["accounts"][0].erase("peak_bytes");
    EXPECT_NE(schema_of("ls", document), "");
    document = json::parse(run({"ls", "--json"}).out);
    document["accounts"][0]["undocumented"] = 1;
    EXPECT_NE(schema_of("ls", document), "");
}

// Readers that check what they read take what a later version adds.
TEST_F(App, TheSchemaAsItIsInstalledTakesKeysThatItDoesNotKnow) {
    const json schema = test::read_json(test::source("docs/umacct.schema.json"));
    const auto violations = [&](const char *verb, const json &document) {
        return test::schema_violations(schema, verb, document, test::Keys::any);
    };

    for (const char *verb : {"ls", "ps", "limit", "charge", "reserve", "doctor", "audit"}) {
        json document = json::parse(run({verb, "--json"}).out);

        document["of_a_later_version"] = 1;
        for (const char *list : {"accounts", "clients", "checks", "cgroups"}) {
            if (document.contains(list))
                document[list][0]["of_a_later_version"] = 1;
        }
        if (verb == std::string("ls"))
            document["accounts"][2]["owner"]["of_a_later_version"] = 1;
        EXPECT_EQ(violations(verb, document), "") << verb;
    }

    json document = json::parse(run({"ls", "--json"}).out);
    document["accounts"][0]["usage_bytes"] = -1;
    EXPECT_NE(violations("ls", document), "");
}

TEST_F(App, NumbersAreBytesAndNoLimitIsNull) {
    const json accounts = run_json({"ls", "--json"})["accounts"];
    const json &big = accounts[2];

    EXPECT_EQ(big["path"], "/a.slice/big.service");
    EXPECT_EQ(big["usage_bytes"], 3 * gib);
    EXPECT_EQ(big["uncharged_bytes"], 2 * gib);
    EXPECT_EQ(big["soft_bytes"], nullptr);
    EXPECT_EQ(big["effective_bytes"], 8 * gib);
    EXPECT_EQ(big["memory_current_bytes"], gib);
    EXPECT_EQ(big["memory_max_bytes"], nullptr);
    EXPECT_EQ(big["owner"], (json{{"kind", "unit"},
                                  {"runtime", "systemd"},
                                  {"id", "big.service"},
                                  {"name", "big.service"},
                                  {"container_id", nullptr},
                                  {"namespace", nullptr},
                                  {"pod", nullptr},
                                  {"container", nullptr}}));
    EXPECT_EQ(accounts[0]["parent_id"], nullptr);
}

TEST_F(App, EveryDocumentSaysWhenItWasMadeAndSinceWhenTheMachineRuns) {
    sandbox_.write("proc/sys/kernel/random/boot_id", "01234567-89ab-cdef-0123-456789abcdef\n");

    const json first = run_json({"ls", "--json"});
    const json second = run_json({"--version", "--json"});
    EXPECT_EQ(first["boot_id"], "01234567-89ab-cdef-0123-456789abcdef");
    EXPECT_LE(first["time"], second["time"]);
    EXPECT_LE(first["monotonic_us"], second["monotonic_us"]);
    EXPECT_GT(first["monotonic_us"], 0);
}

TEST_F(App, BytesThatAreNoTextStillMakeJson) {
    fake_.clients[1].comm = "a\xff\x01";
    EXPECT_EQ(run_json({"ps", "--json"})["clients"][0]["comm"], "a\xef\xbf\xbd\x01");
}

// --- changes ------------------------------------------------------------------

TEST_F(App, LimitSetsWhatWasAskedAndSaysWhatChanged) {
    fake_.on_change = [this] { fake_.accounts[4].hard = gib + gib / 2; };

    const Ran ran = run({"limit", "/idle", "--hard", "1.5G", "--no-view"});

    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.out, "/idle: hard limit max -> 1.50 GiB\n/idle: view off, as it was\n");
    EXPECT_EQ(ran.err, "note: this ends with the cgroup, and when the machine starts again; a rule "
                       "in /etc/umacct.toml stays\n");
    EXPECT_EQ(changed(UMACCT_A_ACCOUNT_HARD), gib + gib / 2);
    EXPECT_EQ(changed(UMACCT_A_ACCOUNT_ID), fake_.accounts[4].id);
}

TEST_F(App, ALimitBelowTheUsageIsSetWithANote) {
    fake_.accounts[3].effective = gib;

    const Ran ran = run({"limit", "42", "--hard", "1G"});
    EXPECT_EQ(ran.code, 0);
    EXPECT_NE(ran.err.find("note: /a.slice/big.service holds 3.00 GiB already"), std::string::npos);
    EXPECT_EQ(changed(UMACCT_A_ACCOUNT_HARD), gib);
}

/// The fake module has what was set last.
class Ordered : public App {
protected:
    Ordered() {
        fake_.on_change = [this] {
            const auto take = [this](Limit &limit, int attribute) {
                if (const auto bytes = test::attribute(fake_.changes.back().attributes, attribute))
                    limit = *bytes == UMACCT_UNLIMITED ? Limit() : bytes;
            };

            take(idle().hard, UMACCT_A_ACCOUNT_HARD);
            take(idle().soft, UMACCT_A_ACCOUNT_SOFT);
        };
        sandbox_.write("etc/umacct.toml",
                       "[[rule]]\nname='idle ones'\ncgroup='/idle'\nhard='4G'\n");
    }

    Account &idle() { return fake_.accounts[4]; }

    static bool has(const std::string &text, const std::string &words) {
        return text.find(words) != std::string::npos;
    }

    std::string rule() const {
        return "rule \"idle ones\", " + (sandbox_.root() / "etc/umacct.toml").string() + ":1";
    }
};

TEST_F(Ordered, ShowSaysWhyASettingIsWhatItIs) {
    EXPECT_TRUE(has(run({"show", "/idle"}).out, "not yet 4.00 GiB, by " + rule()));
    idle().hard = 4 * gib;
    EXPECT_TRUE(has(run({"show", "/idle"}).out, "by " + rule() + "; refused"));
    EXPECT_TRUE(has(run({"limit", "/idle"}).out, "/idle: hard 4.00 GiB, by " + rule() + "\n"));
    idle().view = true;
    EXPECT_TRUE(has(run({"show", "/idle"}).out, "no order asks for it"));

    const Ran set = run({"limit", "/idle", "--hard", "6G"});
    EXPECT_TRUE(has(set.err, "note: hard limit 6.00 GiB: by a person at ")) << set.err;
    EXPECT_TRUE(has(set.err, "; " + rule() + ", says 4.00 GiB\n")) << set.err;
    const json orders = run_json({"show", "/idle", "--json"})["orders"];
    ASSERT_EQ(orders.size(), 2U);
    EXPECT_EQ(orders[0]["setting"], "hard");
    EXPECT_EQ(orders[0]["by"], "person");
    EXPECT_TRUE(has(orders[0]["text"], "hard 6.00 GiB, by a person at "));
    EXPECT_EQ(orders[1]["by"], "nobody");
    EXPECT_EQ(run_json({"limit", "/idle", "--json"})["accounts"][0]["orders"], orders);
}

TEST_F(Ordered, WhatIsTakenBackIsTheRulesAgain) {
    run({"set", "/idle", "hard=6G"});
    EXPECT_EQ(idle().hard, 6 * gib);
    EXPECT_EQ(run({"set", "/idle", "hard=-"}).out, "/idle: hard limit 6.00 GiB -> 4.00 GiB\n");
    run({"limit", "/idle", "--hard", "max"});
    EXPECT_EQ(idle().hard, std::nullopt) << "whatever a rule says";
    EXPECT_EQ(run({"limit", "/idle", "--hard", "-"}).out, "/idle: hard limit max -> 4.00 GiB\n");
}

TEST_F(Ordered, WhatDoesNotHoldSaysSo) {
    const Ran soft = run({"limit", "/idle", "--soft", "8G"});
    EXPECT_EQ(soft.code, 0) << soft.err;
    EXPECT_EQ(idle().soft, 4 * gib);
    EXPECT_TRUE(has(soft.err, "soft limit 4.00 GiB: lowered to the hard limit; a person asked for "
                              "8.00 GiB"))
        << soft.err;
    EXPECT_TRUE(has(run({"limit", "/idle", "--hard", "17G"}).err,
                    "note: 17.00 GiB is more than the machine's 16.00 GiB: it never binds\n"));
}

TEST_F(Ordered, OneNumberIsForAllOfACgroupsMemory) {
    const std::filesystem::path file = sandbox_.cgroup_mount() / "idle/memory.max";
    const auto content = [&] {
        std::string text;

        std::getline(std::ifstream(file), text);
        return text;
    };

    EXPECT_TRUE(has(run({"set", "/idle", "total=8G"}).err, "its cgroup has no memory controller"));
    sandbox_.write(file, "max\n");
    const Ran ran = run({"set", "/idle", "total=8G"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_TRUE(has(ran.out, "total max -> 8.00 GiB\n")) << ran.out;
    EXPECT_EQ(content(), std::to_string(8 * gib));
    EXPECT_EQ(changed(UMACCT_A_ACCOUNT_CHARGE), UMACCT_CHARGE_ON);
    EXPECT_EQ(run_json({"set", "/idle", "total=9G", "--json"})["after"]["total_bytes"], 9 * gib);
    fake_.refuse_with = EINVAL;
    EXPECT_NE(run({"set", "/idle", "total=4G"}).code, 0);
    EXPECT_EQ(content(), std::to_string(9 * gib)) << "as before";
    EXPECT_EQ(run({"set", "/idle", "total=4G", "--permanent"}).code, 2);
}

TEST_F(Ordered, APermanentChangeIsARule) {
    const std::string file = (sandbox_.root() / "etc/umacct.toml.d/00-umacct-set.toml").string();

    run({"set", "/idle", "hard=6G"});
    const Ran ran = run({"limit", "/idle", "--soft", "1G", "--permanent"});
    EXPECT_EQ(ran.code, 5) << ran.err;
    EXPECT_TRUE(has(ran.err, "umacctd is not running")) << ran.err;
    EXPECT_EQ(ran.out, file + ":\n[[rule]]\ncgroup = \"/idle\"\nhard = \"4294967296B\"\n"
                              "soft = \"1073741824B\"\n/idle: soft limit max -> 1.00 GiB\n");
    EXPECT_EQ(idle().soft, gib);
    const test::RunningDaemon daemon(sandbox_.root());
    EXPECT_EQ(run({"limit", "/idle", "--soft", "2G", "--permanent"}).code, 0);
    EXPECT_EQ(idle().soft, 2 * gib);
    // The cgroup need not be there.
    EXPECT_EQ(run({"set", "vllm", "hard=1G", "--permanent"}).code, 0);
    EXPECT_EQ(run_json({"config", "explain", "vllm", "--json"})["settings"]["hard_bytes"], gib);
    EXPECT_EQ(run_json({"config", "check", "--json"})["rules"], 3);
    // A change of another setting keeps it.
    EXPECT_TRUE(has(run({"set", "ollama", "total=40G", "--permanent"}).err, "daemon-reload"));
    EXPECT_EQ(run({"set", "ollama", "soft=1G", "--permanent"}).code, 0);
    EXPECT_EQ(run({"config", "drop-ins"}).out, "ollama.service.d 42949672960\nvllm.service.d\n");
    EXPECT_TRUE(
        has(run({"limit", "/idle", "--total", "40G", "--permanent"}).err, "docker run --memory"));
    EXPECT_EQ(run_json({"config", "check", "--json"})["rules"], 4);
    EXPECT_EQ(run({"set", "/idle", "hard=-", "--permanent"}).code, 2);
    EXPECT_EQ(run({"set", "machine", "reserve=1G", "--permanent"}).code, 2);
}

TEST_F(Ordered, OfTwoThatWriteRulesAtOnceNoneIsLost) {
    constexpr int times = 20;
    const test::RunningDaemon daemon(sandbox_.root());
    const auto work = [this](const std::string &who) {
        for (int i = 0; i < times; ++i) {
            if (run({"set", (who + std::to_string(i)).c_str(), "hard=1G", "--permanent"}).code != 0)
                _exit(1);
        }
        _exit(0);
    };
    const Process one([&] { work("one"); });
    const Process other([&] { work("other"); });

    for (const Process *each : {&one, &other}) {
        siginfo_t ended{};

        EXPECT_EQ(waitid(P_PID, static_cast<id_t>(each->pid()), &ended, WEXITED | WNOWAIT), 0);
        EXPECT_EQ(ended.si_status, 0);
    }
    EXPECT_EQ(run_json({"config", "check", "--json"})["rules"], 1 + 2 * times);
}

TEST_F(Ordered, OfTheMachineHoldsUntilItsNextStart) {
    fake_.on_change = [this] {
        fake_.status.reserve =
            test::attribute(fake_.changes.back().attributes, UMACCT_A_STATUS_RESERVE)
                .value_or(fake_.status.reserve);
    };
    const std::filesystem::path file = sandbox_.root() / "run/umacct.toml.d/machine.toml";

    EXPECT_EQ(run({"reserve", "2G"}).out, "reserve off -> 2.00 GiB\n");
    EXPECT_TRUE(std::filesystem::exists(file));
    EXPECT_EQ(run({"set", "machine", "reserve=-"}).out, "reserve 2.00 GiB -> off\n");
    EXPECT_FALSE(std::filesystem::exists(file));
    sandbox_.write("etc/umacct.toml", "[machine]\nreserve = '1G'\n");
    EXPECT_EQ(run({"reserve", "off"}).code, 0);
    EXPECT_TRUE(std::filesystem::exists(file)) << "against the policy";
    run({"set", "machine", "reserve=-"});
    EXPECT_EQ(fake_.status.reserve, gib);
    // The guard has raised it.
    sandbox_.write("run/umacctd/guard", "reserve 8589934592\n");
    EXPECT_TRUE(has(run({"reserve", "2G"}).err, "the guard holds the reserve at 8.00 GiB"));
    EXPECT_EQ(fake_.status.reserve, 8 * gib);
    std::filesystem::remove(sandbox_.root() / "run/umacctd/guard");
    // A mistake in /etc, which umacctd refuses.
    sandbox_.write("var/lib/umacctd/policy/0000-umacct.toml", "[machine]\nreserve = '1G'\n");
    sandbox_.write("etc/umacct.toml", "reserve\n");
    const test::RunningDaemon daemon(sandbox_.root());
    EXPECT_EQ(run({"set", "machine", "reserve=-"}).code, 0);
    EXPECT_EQ(fake_.status.reserve, gib) << "as umacctd has it";
}

TEST_F(App, LimitListsWhatBinds) {
    const Ran ran = run({"limit"});

    EXPECT_NE(ran.out.find("/a.slice              3.00 GiB       max  8.00 GiB  8.00 GiB  itself"),
              std::string::npos)
        << ran.out;
    EXPECT_NE(
        ran.out.find("/a.slice/small        5.00 MiB  4.00 MiB       max  8.00 GiB  /a.slice"),
        std::string::npos)
        << ran.out;
    EXPECT_EQ(ran.out.find("/idle"), std::string::npos);
}

TEST_F(App, EveryListSaysWhatBinds) {
    fake_.accounts[3].view = true;
    fake_.accounts[4].charge = UMACCT_CHARGE_ON;
    EXPECT_EQ("\n" + run({"ls", "-o", "name,bound-by"}).out, R"(
ACCOUNT          BOUND BY
/
  a.slice        itself
    big.service  /a.slice
    small        /a.slice
  idle
)");
    EXPECT_EQ(run({"charge", "--no-header", "-o", "name,bound-by", "--sort", "bound-by"}).out,
              "/\n/idle\n/a.slice/big.service  /a.slice\n/a.slice/small        /a.slice\n"
              "/a.slice              itself\n");
    EXPECT_EQ(run({"view", "--no-header", "-o", "bound-by"}).out, "/a.slice\n");
    EXPECT_NE(
        run({"top", "-o", "bound-by"}).out.find("\n\nBOUND BY\n\nitself\n/a.slice\n/a.slice\n"),
        std::string::npos)
        << run({"top", "-o", "bound-by"}).out;
    // The module is asked for a limiting cgroup that is not in the list.
    EXPECT_EQ(run({"ls", "--no-header", "-o", "bound-by", "/a.slice/small"}).out, "/a.slice\n");
    EXPECT_EQ(run_json({"limit", "--json", "/a.slice/small"})["accounts"][0]["effective_path"],
              "/a.slice");
    fake_.accounts[2].effective_id = 1ULL << 60;
    EXPECT_EQ(run({"ls", "--no-header", "-o", "bound-by", "/a.slice/small"}).out,
              "a cgroup above (id 1152921504606846976)\n");
}

TEST_F(App, WhatNothingEnforcesIsSetAndHasItsOwnCode) {
    const std::vector<std::vector<const char *>> verbs = {{"limit", "/idle", "--hard", "1G"},
                                                          {"reserve", "1G"},
                                                          {"charge", "on"},
                                                          {"charge", "/idle", "on"}};

    for (const auto &words : verbs) {
        fake_.enforcement = {UMACCT_DRIVER_UNKNOWN, "version 999.1 is newer than this module"};

        const Ran unknown = run(words);
        EXPECT_EQ(unknown.code, 5);
        EXPECT_NE(unknown.err.find("not enforced: version 999.1 is newer"), std::string::npos)
            << unknown.err;
        // Expected before the driver is loaded.
        fake_.enforcement = {UMACCT_DRIVER_ABSENT, "the driver is not loaded: this holds from ..."};

        const Ran absent = run(words);
        EXPECT_EQ(absent.code, 0);
        EXPECT_NE(absent.err.find("note: the driver is not loaded"), std::string::npos);
    }
    EXPECT_EQ(fake_.changes.size(), 8U);
}

/// A zone with 256 free blocks of 2 MiB, and 128 MiB of page cache.
class Room : public App {
protected:
    Room() {
        sandbox_.write("proc/zoneinfo", "Node 0, zone   Normal\n  pages free     131072\n"
                                        "        low      0\n        managed  0\n"
                                        "      nr_zone_inactive_file 32768\n");
        sandbox_.write("proc/buddyinfo", "Node 0, zone Normal 0 0 0 0 0 0 0 0 0 0 128\n");
        sandbox_.write(sandbox_.cgroup_mount() / "a.slice/memory.stat",
                       "anon 3000\nactive_file 500\ninactive_file 70\n");
        sandbox_.write(sandbox_.cgroup_mount() / "a.slice/small/memory.stat",
                       "anon 1000\nactive_file 500\n");
    }

    json preflight(const char *size) { return run_json({"preflight", size, "--json"}); }
};

TEST_F(Room, PreflightAnswersByItsExitCode) {
    EXPECT_EQ(run({"preflight", "400M"}).out, "yes: 512.00 MiB are free in blocks of 2.00 MiB\n");
    EXPECT_EQ(run({"preflight", "400M"}).code, 0);
    // Blocks can't be examined here: it is not known that page cache would be enough.
    EXPECT_EQ(run({"preflight", "600M"}).code, 7);
    EXPECT_EQ(run({"preflight", "1G"}).code, 8);
    EXPECT_EQ(preflight("1G")["answer"], "no");
    EXPECT_EQ(preflight("1G")["bound"], nullptr);
    EXPECT_EQ(preflight("600M")["answer"], "compaction");
}

TEST_F(Room, PreflightNamesWhoHoldsMemoryHimself) {
    const json holders = preflight("1G")["holders"];

    ASSERT_EQ(holders.size(), 3U);
    EXPECT_EQ(holders[0]["path"], "/a.slice/big.service");
    EXPECT_EQ(holders[0]["driver_bytes"], 3 * gib);
    EXPECT_EQ(holders[1]["path"], "/a.slice/small");
    EXPECT_EQ(holders[1]["anonymous_bytes"], 1000);
    EXPECT_EQ(holders[2]["path"], "/a.slice");
    EXPECT_EQ(holders[2]["anonymous_bytes"], 2000);
    EXPECT_EQ(holders[2]["cache_bytes"], 70);
}

TEST_F(Room, PreflightNamesProcessesAndFiles) {
    sandbox_.write("proc/42/stat", task_stat("S", 0, 0));
    sandbox_.write(sandbox_.cgroup_mount() / "a.slice/small/cgroup.procs", "77\n78\n");
    sandbox_.write("proc/77/stat", "77 (engine) S 1 70 70 0\n");
    sandbox_.write("proc/77/status", "Name:\tengine\nRssAnon:\t  1024 kB\nRssShmem:\t 512 kB\n");
    sandbox_.write("proc/78/status", "RssAnon:\t 8 kB\n");
    sandbox_.write("proc/sysvipc/shm", "head\n1 7 600 1 1 1 0 0 0 0 0 1 1 1 33554432 0\n");

    const std::string out = run({"preflight", "1G"}).out;
    EXPECT_NE(out.find("  System V segment 7, 32.00 MiB, not mapped\n  pid "), std::string::npos)
        << out;
    EXPECT_NE(out.find("  pid 42 (a) b) of "), std::string::npos) << out;
    EXPECT_NE(out.find(": 3.00 GiB in /a.slice/big.service\n"), std::string::npos) << out;
    EXPECT_NE(out.find("  pid 77 ("), std::string::npos) << out;

    const json answer = preflight("1G");
    EXPECT_EQ(answer["holders"][1]["process"]["pid"], 77);
    EXPECT_EQ(answer["holders"][1]["process"]["bytes"], 1536 * 1024);
    EXPECT_EQ(answer["holders"][2]["process"], nullptr);
    EXPECT_EQ(answer["shared_files"][0]["bytes"], 32 * mib);
    EXPECT_TRUE(preflight("400M")["shared_files"].empty());
    const json audit = run_json({"audit", "--json"});
    EXPECT_EQ(audit["shared_files"], answer["shared_files"]);
    EXPECT_NE(run({"audit"}).out.find("\n  System V segment 7, 32.00 MiB, not mapped\n"),
              std::string::npos);
}

TEST_F(Room, WhatIsSharedIsNotCalledAnonymous) {
    sandbox_.write(sandbox_.cgroup_mount() / "a.slice/small/memory.stat",
                   "anon 1024\nshmem 524288000\n");
    const std::string out = run({"preflight", "1G"}).out;
    EXPECT_NE(out.find(" 1.00 KiB  500.00 MiB "), std::string::npos) << out;
    const json holder = preflight("1G")["holders"][1];
    EXPECT_EQ(holder["path"], "/a.slice/small");
    EXPECT_EQ(holder["shared_bytes"], 524288000);
    EXPECT_EQ(holder["anonymous_bytes"], 524289024) << "of old, both together";
}

TEST_F(Room, PreflightWithLimitsInTheWay) {
    sandbox_.write("proc/" + std::to_string(getpid()) + "/cgroup", "0::/a.slice/small\n");
    fake_.accounts[1].usage = 8 * gib - 100 * mib;
    EXPECT_EQ(preflight("100M")["answer"], "yes");
    EXPECT_EQ(preflight("101M")["bound"], "the hard limit of /a.slice");
    fake_.status.reserve = 2 * gib;
    fake_.status.available = 2 * gib + 64 * mib;
    EXPECT_EQ(preflight("64M")["bound"], "the reserve") << "the driver's notes come on top";
    EXPECT_EQ(preflight("50M")["answer"], "yes") << "a view has taken the reserve off already";
    loaded_ = false;
    EXPECT_EQ(preflight("101M")["answer"], "yes") << "without a module there are no limits";
}

TEST_F(Room, PreflightWaitsUntilItFits) {
    // Each file is replaced at once, as the kernel's are read at once.
    const auto free_pages = [&](const char *pages, const char *blocks) {
        sandbox_.write("new", std::string("Node 0, zone   Normal\n  pages free     ") + pages +
                                  "\n        low      0\n        managed  0\n");
        std::filesystem::rename(sandbox_.root() / "new", sandbox_.proc() / "zoneinfo");
        sandbox_.write("new", std::string("Node 0, zone Normal 0 0 0 0 0 0 0 0 0 0 ") + blocks);
        std::filesystem::rename(sandbox_.root() / "new", sandbox_.proc() / "buddyinfo");
    };

    free_pages("131072", "128\n");
    std::thread holder([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(1500));
        free_pages("262144", "256\n");
    });
    const Ran waited = run({"preflight", "600M", "--wait", "1h"});
    holder.join();
    EXPECT_EQ(waited.code, 0) << waited.err;
    EXPECT_EQ(waited.out.rfind("yes: 1.00 GiB are free in blocks of 2.00 MiB; waited ", 0), 0U)
        << waited.out;
    EXPECT_NE(waited.err.find("note: not yet: "), std::string::npos) << waited.err;
    EXPECT_EQ(run_json({"preflight", "600M", "--wait", "1h", "--json"})["answer"], "yes");

    const Ran late = run({"preflight", "2G", "--wait", "120ms", "--json"});
    EXPECT_EQ(late.code, 8);
    EXPECT_GE(json::parse(late.out)["waited_ns"], 120'000'000);
    EXPECT_EQ(run_json({"preflight", "2G", "--json"})["waited_ns"], 0);
    EXPECT_EQ(run({"preflight", "1T", "--wait", "1h"}).code, 8) << "no wait gets that";
}

TEST_F(Room, PreflightSaysWhoseProtectionIsInTheWay) {
    const auto slice = sandbox_.cgroup_mount() / "a.slice";

    sandbox_.write(slice / "memory.current", "134217728\n");
    sandbox_.write(slice / "memory.stat", "inactive_file 134217728\n");
    sandbox_.write(slice / "memory.min", "0\n");
    EXPECT_EQ(preflight("600M")["answer"], "compaction");
    EXPECT_EQ(preflight("600M")["kept_bytes"], 0);
    sandbox_.write(slice / "memory.min", "209715200\n");
    const Ran ran = run({"preflight", "600M"});
    EXPECT_EQ(ran.code, 8);
    EXPECT_NE(ran.out.find("; memory.min of /a.slice keeps 128.00 MiB of page cache\n"),
              std::string::npos)
        << ran.out;
    EXPECT_EQ(preflight("600M")["kept_by"], "/a.slice");
    EXPECT_EQ(preflight("1G")["kept_by"], nullptr) << "it would not fit without, either";
}

TEST_F(Room, PreflightWaitsForWhatALimitLeaves) {
    sandbox_.write("proc/" + std::to_string(getpid()) + "/cgroup", "0::/a.slice/small\n");
    fake_.accounts[1].usage = 8 * gib - 100 * mib;
    EXPECT_EQ(run({"preflight", "101M", "--wait", "60ms"}).code, 8);
    EXPECT_EQ(run({"preflight", "100M", "--wait", "1h"}).code, 0);
}

TEST_F(Room, PreflightTakesAShareOfTheMachine) {
    EXPECT_EQ(run_json({"preflight", "2.5%", "--json"})["wanted_bytes"], 16 * gib / 40);
}

/// Run with the tool itself inside a limited cgroup that has a view.
TEST_F(Room, NothingIsReadThatAViewChanges) {
    sandbox_.write("proc/meminfo", "MemTotal: 1024 kB\nMemFree: 8 kB\nMemAvailable: 8 kB\n");
    sandbox_.write("etc/umacct.toml", "[machine]\nheadroom = '50%'\n"
                                      "[[rule]]\ncgroup = '/a.slice'\nhard = '50%'\n");
    fake_.status.memory_total = 16 * gib;
    fake_.status.memory_free = gib;
    fake_.status.memory_available = 2 * gib;
    EXPECT_EQ(run_json({"--json"})["memory"]["total_bytes"], 16 * gib);
    EXPECT_EQ(run_json({"--json"})["memory"]["free_bytes"], gib);
    EXPECT_EQ(run_json({"top", "-n", "1", "--json"})["memory"]["total_bytes"], 16 * gib);
    EXPECT_EQ(run_json({"audit", "--json"})["machine"]["total_bytes"], 16 * gib);
    EXPECT_EQ(run_json({"headroom", "--json"})["headroom_bytes"], 8 * gib);
    EXPECT_NE(run({"config", "explain", "/a.slice"}).out.find("hard 8.00 GiB"), std::string::npos);
    EXPECT_EQ(run({"headroom", "1G"}).code, 5);
    EXPECT_EQ(run({"preflight", "8G"}).out.find("more than the machine's"), std::string::npos);
}

TEST_F(Room, HeadroomTakesAShareOfTheMachine) {
    EXPECT_EQ(run({"headroom", "25%"}).out, "headroom off -> 4.00 GiB in blocks of 2.00 MiB\n");
}

TEST_F(Room, HeadroomIsForTheDaemon) {
    EXPECT_EQ(run({"headroom"}).out, "headroom off; 512.00 MiB are free in blocks of 2.00 MiB\n");
    EXPECT_EQ(run({"headroom"}).code, 0);
    const Ran set = run({"headroom", "1G", "--blocks", "64K"});
    EXPECT_EQ(set.out, "headroom off -> 1.00 GiB in blocks of 64.00 KiB\n");
    EXPECT_EQ(set.code, 5);
    EXPECT_NE(set.err.find("umacctd is not running"), std::string::npos);
    const json now = run_json({"headroom", "--json"});
    EXPECT_EQ(now["headroom_bytes"], gib);
    EXPECT_EQ(now["block_bytes"], 65536);
    EXPECT_EQ(now["daemon_pid"], nullptr);
    const Ran large = run({"headroom", "2G", "--blocks", "1G"});
    EXPECT_EQ(large.code, 2);
    EXPECT_NE(large.err.find("--blocks: 1.00 GiB is more than the kernel's largest block"),
              std::string::npos);
    EXPECT_EQ(run_json({"headroom", "--json"})["headroom_bytes"], gib) << "nothing was set";
    sandbox_.write("etc/umacct.toml", "[machine]\nheadroom = '2G'\n");
    EXPECT_EQ(run({"headroom", "off"}).code, 0);
    EXPECT_EQ(run_json({"headroom", "--json"})["headroom_bytes"], 0);
    sandbox_.write("etc/umacct.toml", "[machine]\nheadroom = '2X'\n");
    EXPECT_EQ(run({"headroom", "1G"}).code, 2) << "the daemon would not take it";
}

TEST_F(Room, HeadroomIsAsThePolicySaysAgain) {
    sandbox_.write("etc/umacct.toml", "[machine]\nheadroom = '2G'\nheadroom_blocks = '64K'\n");
    run({"headroom", "off"});
    const Ran ran = run({"headroom", "default"});
    EXPECT_EQ(ran.out, "headroom off -> 2.00 GiB in blocks of 64.00 KiB\n");
    EXPECT_EQ(ran.code, 5) << "umacctd is not running";
    EXPECT_FALSE(std::filesystem::exists(sandbox_.root() / "run/umacct.toml.d/machine.toml"));
    EXPECT_EQ(run({"headroom", "default"}).out,
              "headroom 2.00 GiB in blocks of 64.00 KiB, as it was\n");
    EXPECT_EQ(run({"headroom", "default", "--blocks", "2M"}).code, 2);
    std::filesystem::remove(sandbox_.root() / "etc/umacct.toml");
    EXPECT_EQ(run({"headroom", "default"}).code, 0);
    EXPECT_EQ(run({"headroom"}).out, "headroom off; 512.00 MiB are free in blocks of 2.00 MiB\n");
}

TEST_F(Room, HeadroomIsSetBesideTheModulesSettings) {
    const Ran ran = run({"set", "machine", "reserve=4G", "headroom=1G", "headroom_blocks=64K"});
    EXPECT_EQ(ran.code, 5) << "umacctd is not running";
    EXPECT_NE(ran.out.find("headroom off -> 1.00 GiB in blocks of 64.00 KiB\n"), std::string::npos);
    EXPECT_EQ(changed(UMACCT_A_STATUS_RESERVE), 4 * gib);
    EXPECT_EQ(run_json({"headroom", "--json"})["headroom_bytes"], gib);
    fake_.changes.clear();
    fake_.refuse_in = 1;
    EXPECT_EQ(run({"set", "machine", "reserve=8G", "headroom=2G"}).code, 1);
    EXPECT_EQ(run_json({"headroom", "--json"})["headroom_bytes"], gib)
        << "what the module refuses changes no headroom";
    const json off = run_json({"set", "--json", "machine", "headroom=none"});
    EXPECT_EQ(off["before"], json({{"headroom_bytes", gib}}));
    EXPECT_EQ(off["after"], json({{"headroom_bytes", 0}}));
    EXPECT_TRUE(fake_.changes.empty()) << "nothing of the module's was asked for";
}

TEST_F(App, ReserveIsSetInBytes) {
    fake_.on_change = [this] { fake_.status.reserve = 4 * gib; };
    EXPECT_EQ(run({"reserve", "4G"}).out, "reserve off -> 4.00 GiB\n");
    fake_.on_change = {};
    EXPECT_EQ(changed(UMACCT_A_STATUS_RESERVE), 4 * gib);
    EXPECT_EQ(run({"reserve", "off"}).code, 0);
    EXPECT_EQ(fake_.changes.size(), 2U);
}

TEST_F(App, PoolsAreShownAndGivenBackAndUnknownIsNoFigure) {
    EXPECT_EQ(run({}).out.find("pools"), std::string::npos);
    fake_.status.pools = 21 * mib;
    EXPECT_NE(run({}).out.find("in its pools"), std::string::npos);
    EXPECT_NE(run({"reserve"}).out.find("of it 21.00 MiB in its pools"), std::string::npos);
    EXPECT_EQ(run_json({"--json"})["pools_bytes"], 21 * mib);
    fake_.reclaim = {.reclaimed = 20 * mib, .pools = mib};
    EXPECT_EQ(run({"preflight", "--fix"}).out,
              "20.00 MiB reclaimed, 1.00 MiB left in the driver's pools\n");
    EXPECT_EQ(run_json({"preflight", "--fix", "--json"})["reclaimed_bytes"], 20 * mib);
    EXPECT_EQ(fake_.changes[0].command, UMACCT_CMD_RECLAIM);

    fake_.status.pools.reset();
    EXPECT_TRUE(run_json({"--json"})["pools_bytes"].is_null());
    EXPECT_TRUE(run_json({"reserve", "--json"})["pools_bytes"].is_null());
    EXPECT_NE(run({"reserve"}).out.find("of it unknown in its pools"), std::string::npos);
}

TEST_F(App, ChargeSetsAnAccountOrTheDefault) {
    EXPECT_EQ(run({"charge", "on"}).code, 0);
    EXPECT_EQ(run({"charge", "inherit", "/idle"}).code, 0);
    EXPECT_EQ(run({"charge", "/idle", "inherit"}).out, "/idle: charging inherit, as it was\n");
    ASSERT_EQ(fake_.changes.size(), 3U);
    fake_.status.charge_default = UMACCT_CHARGE_ON;
    const json changed = run_json({"charge", "on", "--json"});
    EXPECT_EQ(changed["charge_default"], "on");
    EXPECT_EQ(changed["before"], "on");
    fake_.changes.pop_back();
    EXPECT_NE(run({"charge", "/idle"}).out.find("/idle    inherit"), std::string::npos);
    fake_.changes.pop_back();
    EXPECT_EQ(fake_.changes[0].command, UMACCT_CMD_CONFIG_SET);
    EXPECT_EQ(test::attribute(fake_.changes[0].attributes, UMACCT_A_STATUS_CHARGE_DEFAULT),
              UMACCT_CHARGE_ON);
    EXPECT_EQ(fake_.changes[1].command, UMACCT_CMD_ACCOUNT_SET);
}

TEST_F(App, ChargeSaysWhyItIsNotPossible) {
    fake_.status.charge_reason = "this driver charges its pages itself";
    EXPECT_NE(run({"charge"}).out.find("can't be switched on: this driver"), std::string::npos);
    EXPECT_EQ(run_json({"charge", "-j"})["charge_reason"], "this driver charges its pages itself");
}

// --- events -------------------------------------------------------------------

std::vector<json> lines_of(const std::string &text) {
    std::istringstream stream(text);
    std::vector<json> lines;

    for (std::string line; std::getline(stream, line);)
        lines.push_back(json::parse(line));
    return lines;
}

TEST_F(App, WatchPrintsOneObjectALineAndEndsWithTheModule) {
    fake_.to_receive = {{.events = {test::encode(refusal(1)), test::encode(refusal(2))}}};

    const Ran ran = run({"watch", "--json"});
    const auto lines = lines_of(ran.out);
    EXPECT_TRUE(fake_.subscribed);
    EXPECT_EQ(ran.code, 3);
    EXPECT_NE(ran.err.find("unloaded"), std::string::npos);
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_EQ(schema_of("watch", lines[0]), "");
    EXPECT_EQ(lines[0]["type"], "hard_refused");
    EXPECT_EQ(lines[1]["seq"], 2);
    EXPECT_EQ(lines[1]["time"], "2023-11-14T22:13:20.000000000Z");
}

TEST_F(App, WatchTellsAFailureWithWhoHoldsMostBesideIt) {
    Event failed = refusal(1);

    failed.type = UMACCT_EVENT_FAILED;
    failed.limit_id = 0;
    failed.limit_path.clear();
    failed.limit = 0;
    fake_.accounts = {{.id = 7, .path = "/a/b", .local = 9 * mib},
                      {.id = 8, .path = "/c", .local = 5 * mib},
                      {.id = 9, .path = "/d", .local = 4 * mib}};
    failed.account_id = 7;
    fake_.to_receive = {{.events = {test::encode(failed)}}};
    const auto lines = lines_of(run({"watch", "--json"}).out);
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_EQ(schema_of("watch", lines[0]), "");
    EXPECT_EQ(lines[0]["type"], "failed");
    EXPECT_EQ(lines[0]["holder_path"], "/a/b") << "who asked holds most itself";
    EXPECT_EQ(lines[0]["holder_bytes"], 9 * mib);

    failed.size = 4 * mib;
    fake_.to_receive = {{.events = {test::encode(failed)}}};
    EXPECT_NE(run({"watch"}).out.find("pid 42 (python3)  the driver had no memory for 4.00 MiB: "
                                      "2.00 MiB available; /a/b holds 9.00 MiB\n"),
              std::string::npos);

    // The whole machine's available memory doesn't help, and no account holds any.
    failed.usage = 8 * mib;
    fake_.accounts.clear();
    fake_.to_receive = {{.events = {test::encode(failed)}}};
    EXPECT_NE(run({"watch"}).out.find("8.00 MiB available in smaller pieces, or memory.max of its "
                                      "cgroup refused it\n"),
              std::string::npos);
}

TEST_F(App, WatchSaysHowManyEventsOneStandsFor) {
    Event many = refusal(1);

    many.count = 42;
    fake_.to_receive = {{.events = {test::encode(many)}}};
    EXPECT_EQ(lines_of(run({"watch", "--json"}).out).at(0)["count"], 42);
    fake_.to_receive = {{.events = {test::encode(many)}}};
    EXPECT_NE(run({"watch"}).out.find("limit 2.00 MiB of /a, the last of 42\n"), std::string::npos);
}

TEST_F(App, WatchOfATargetLeavesTheOthersOut) {
    Event other = refusal(2);

    other.path = "/a.slice/big.service/worker";
    fake_.to_receive = {{.events = {test::encode(refusal(1)), test::encode(other)}}};

    const auto lines = lines_of(run({"watch", "42", "--json"}).out);
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_EQ(lines[0]["seq"], 2);
}

TEST_F(App, WatchTellsWhatTheGuardDid) {
    const EventFile events(sandbox_.proc().parent_path());
    const auto step = [](const char *path, const char *text) {
        Json line = json_document("");

        line.update({{"type", "guard"},
                     {"step", "freeze"},
                     {"undo", false},
                     {"dry_run", false},
                     {"failed", false},
                     {"obtainable_bytes", 1},
                     {"floor_bytes", 2},
                     {"pressure_percent", 0.5},
                     {"for_ms", 3},
                     {"size_bytes", 0},
                     {"text", text},
                     {"path", path}});
        return json_text(line);
    };

    sandbox_.write("run/umacctd/events", step("/a", "long ago") + "\n");
    fake_.while_watching = [&] {
        events.append(step("/a.slice/big.service", "guard: fr\x1b"
                                                   "eeze"));
    };
    fake_.to_receive = {{}, {}};
    const Ran ran = run({"watch"});
    EXPECT_EQ(ran.out.find("long ago"), std::string::npos);
    EXPECT_NE(ran.out.find("  guard            guard: fr?eeze\n"), std::string::npos) << ran.out;
    EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 3);

    const auto lines = lines_of(run({"watch", "--json", "42"}).out);
    ASSERT_EQ(lines.size(), 3U);
    EXPECT_EQ(schema_of("watch", lines[0]), "") << lines[0];
    EXPECT_EQ(lines[0]["path"], "/a.slice/big.service");

    fake_.while_watching = [&] {
        events.append(step("/b", "another's"));
        events.append("{\"path\": 5");
    };
    EXPECT_EQ(run({"watch", "42"}).out, "");
}

TEST_F(App, WatchTellsAStepThatMayCome) {
    const EventFile events(sandbox_.proc().parent_path());

    sandbox_.write("run/umacctd/events", "");
    fake_.while_watching = [&] {
        Json line = json_document("");

        line.update({{"type", "step_ahead"},
                     {"path", "/a.slice/big.service"},
                     {"size_bytes", 12},
                     {"seconds", 10},
                     {"left_bytes", 6},
                     {"reserve_bytes", 0},
                     {"floor_bytes", 0},
                     {"text", "grew before"}});
        events.append(json_text(line));
    };
    fake_.to_receive = {{}};
    EXPECT_NE(run({"watch"}).out.find("  step_ahead       /a.slice/big.service  grew before\n"),
              std::string::npos);
    const auto lines = lines_of(run({"watch", "--json"}).out);
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_EQ(schema_of("watch", lines[0]), "") << lines[0];
}

TEST_F(App, TheSummaryWarnsBeforeAStepThatDoesNotFit) {
    sandbox_.write("var/lib/umacctd/steps",
                   R"({"floor_bytes":0,"accounts":[{"path":"/a.slice/big.service","steps":)"
                   R"([{"seconds":10,"bytes":9000000000000,"time_ms":1}]}]})");
    const std::string out = run({}).out;
    EXPECT_NE(out.find("warning: /a.slice/big.service grew by 8.19 TiB within 10 s before; "),
              std::string::npos)
        << out;
}

TEST_F(App, WatchGoesOnWhereALineIsOfAnotherKind) {
    const EventFile events(sandbox_.proc().parent_path());

    fake_.while_watching = [&] { events.append(R"({"path": 5, "time": [], "text": {}})"); };
    fake_.to_receive = {{}};
    EXPECT_EQ(run({"watch"}).code, 3);
}

TEST_F(App, WatchReadsOnWhereTheGuardBeganAnew) {
    const EventFile events(sandbox_.proc().parent_path());
    const std::string line = json_text({{"path", "/a"}, {"text", std::string(1000, 'x')}});

    sandbox_.write("run/umacctd/events", "");
    fake_.while_watching = [&] {
        for (int i = 0; i < 200; ++i)
            events.append(line);
    };
    fake_.to_receive = {{}, {}};
    const Ran ran = run({"watch"});
    EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 600);
    EXPECT_LE(std::filesystem::file_size(sandbox_.proc().parent_path() / "run/umacctd/events"),
              300U << 10);
}

TEST_F(App, WatchCountsWhatAGapLost) {
    fake_.status.events_sent = 10;
    fake_.to_receive = {{.events = {test::encode(refusal(10)), test::encode(refusal(11)),
                                    test::encode(refusal(15))}}};

    const auto lines = lines_of(run({"watch", "--json"}).out);
    ASSERT_EQ(lines.size(), 4U);
    EXPECT_EQ(lines[2]["type"], "lost");
    EXPECT_EQ(lines[2]["count"], 3);
    EXPECT_EQ(schema_of("watch", lines[2]), "");
    EXPECT_EQ(lines[3]["seq"], 15);
}

TEST_F(App, WatchCountsWhatAnOverrunLostThoughNothingFollows) {
    fake_.sent_while_watching = 9;
    fake_.to_receive = {
        {.events = {test::encode(refusal(1))}}, {.events = {}, .overrun = true}, {}};

    const Ran ran = run({"watch"});
    EXPECT_EQ(ran.out.find("the last of"), std::string::npos);
    EXPECT_NE(ran.out.find("refused 1.00 MiB: 2.00 MiB used of the hard limit 2.00 MiB of /a\n"
                           "8 events were lost"),
              std::string::npos)
        << ran.out;
}

} // namespace
} // namespace umacct
