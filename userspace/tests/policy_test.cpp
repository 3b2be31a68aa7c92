// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/policy/policy.h"

#include <fstream>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lib/policy/last_good.h"
#include "lib/policy/validate.h"
#include "tests/power_cut.h"
#include "tests/sandbox.h"
#include "tests/source.h"

namespace umacct {
namespace {

constexpr std::uint64_t gib = 1ULL << 30;

class PolicyTest : public testing::Test {
protected:
    std::filesystem::path root() const { return sandbox_.proc().parent_path(); }

    Policy read(const std::string &text) const {
        sandbox_.write("etc/umacct.toml", text);
        return read_policy(policy_files(root()));
    }

    /// Returns the diagnostics, without the folder.
    std::vector<std::string> problems(const std::string &text) const {
        std::vector<std::string> lines;

        try {
            read(text);
        } catch (const PolicyError &error) {
            for (const Diagnostic &problem : error.diagnostics()) {
                Place place = problem.place;

                place.file = std::filesystem::path(place.file).filename();
                lines.push_back(place.text() + ": " + problem.text);
            }
        }
        return lines;
    }

    void expect_problem(const std::string &text, const std::string &problem) const {
        EXPECT_EQ(problems(text), std::vector{problem}) << text;
    }

    test::Sandbox sandbox_;
};

TEST_F(PolicyTest, NoFilesAreAPolicyOfNothing) {
    const Policy policy = read_policy(policy_files(root()));

    EXPECT_FALSE(policy.reserve);
    EXPECT_TRUE(policy.rules.empty());
}

TEST_F(PolicyTest, CutAtAnyStepTheLastGoodOneIsTheOneBeforeOrTheNewOne) {
    const LastGood last(root());
    const auto keep = [&](const std::string &reserve) {
        sandbox_.write("etc/umacct.toml", "[machine]\nreserve = '" + reserve + "'\n");
        sandbox_.write("etc/umacct.toml.d/one.toml", "[[rule]]\nunit = 'a'\nhard = '1G'\n");
        last.keep(read_texts(policy_files(root())));
    };
    std::set<std::uint64_t> seen;

    const std::size_t steps = test::cut_at_each_step(
        [&] {
            std::filesystem::remove_all(root() / "var");
            std::filesystem::create_directories(root() / "var/lib/umacctd");
            keep("1G");
        },
        [&] { keep("2G"); },
        [&](std::size_t cut) {
            const auto policy = last.policy();

            ASSERT_TRUE(policy && policy->reserve) << "cut before step " << cut;
            EXPECT_EQ(policy->rules.size(), 1U) << "cut before step " << cut;
            seen.insert(policy->reserve->of(16 * gib));
            keep("3G");
            EXPECT_EQ(last.policy()->reserve->of(16 * gib), 3 * gib) << "the next is kept";
        });
    EXPECT_EQ(seen, (std::set{gib, 2 * gib}));
    EXPECT_GE(steps, 12U) << "of two files, and of two folders' names";
}

TEST_F(PolicyTest, ATextIsReadAsAFileIs) {
    EXPECT_EQ(read_policy("[[rule]]\nunit = 'a'\nview = true\n[[rule]]\nunit = 'b'\nview = true\n"
                          "priority = 1\n",
                          "text")
                  .rules.at(0)
                  .unit,
              "b.service");
    try {
        read_policy("[[rule]\n", "text");
        ADD_FAILURE() << "it is no policy";
    } catch (const PolicyError &error) {
        EXPECT_EQ(error.diagnostics().at(0).place.text().find("text:1:"), 0U);
    }
}

TEST_F(PolicyTest, WhatBeginsNoKeyIsAnErrorAsAllElse) {
    for (const char *text : {"[,", "[[,]]", "a.,=1", "[a.,]", ",=1"})
        EXPECT_EQ(problems(text).size(), 1U) << text;
}

TEST_F(PolicyTest, AllOfIt) {
    const Policy policy = read("[machine]\n"
                               "reserve = '8G'\n"
                               "charge = 'on'\n"
                               "[[rule]]\n"
                               "name = 'models'\n"
                               "unit = 'ollama'\n"
                               "hard = '50%'\n"
                               "soft = '4G'\n"
                               "throttle = '50ms'\n"
                               "view = true\n"
                               "charge = 'inherit'\n"
                               "[[rule]]\n"
                               "cgroup = '/user.slice/**'\n"
                               "hard = 'max'\n");

    EXPECT_EQ(policy.reserve->of(0), 8 * gib);
    EXPECT_EQ(policy.charge, UMACCT_CHARGE_ON);
    ASSERT_EQ(policy.rules.size(), 2U);
    EXPECT_EQ(policy.rules[0].name, "models");
    EXPECT_EQ(policy.rules[0].unit, "ollama.service");
    EXPECT_EQ(policy.rules[0].place.line, 4U);
    EXPECT_EQ(policy.rules[1].name, "rule 2");

    const AccountChange change = policy.rules[0].change(128 * gib);
    EXPECT_EQ(change.hard, 64 * gib);
    EXPECT_EQ(change.soft, 4 * gib);
    EXPECT_EQ(change.throttle_ns, 50'000'000U);
    EXPECT_EQ(change.view, true);
    EXPECT_EQ(change.charge, UMACCT_CHARGE_INHERIT);
    EXPECT_EQ(policy.rules[1].change(128 * gib).hard, UMACCT_UNLIMITED);
}

TEST_F(PolicyTest, TheFirstThatSaysSomethingWins) {
    sandbox_.write("etc/umacct.toml.d/20-b.toml", "[machine]\nreserve = '2G'\ncharge = 'on'\n"
                                                  "[[rule]]\ncgroup='/b'\nhard='2G'\n");
    sandbox_.write("etc/umacct.toml.d/10-a.toml", "[machine]\nreserve = '1G'\n"
                                                  "[[rule]]\ncgroup='/a'\nhard='1G'\n");
    sandbox_.write("etc/umacct.toml.d/10-a.toml.bak", "nonsense");
    const Policy policy = read("[machine]\nreserve = '3G'\n[[rule]]\ncgroup='/*'\nhard='3G'\n");

    EXPECT_EQ(policy.reserve->of(0), gib);
    EXPECT_EQ(policy.charge, UMACCT_CHARGE_ON);
    EXPECT_EQ(policy.match({.path = "/a"})->change(0).hard.value_or(0), gib);
    EXPECT_EQ(policy.match({.path = "/b"})->change(0).hard.value_or(0), 2 * gib);
    EXPECT_EQ(policy.match({.path = "/c"})->change(0).hard.value_or(0), 3 * gib);
    EXPECT_EQ(policy.match({.path = "/c/d"}), nullptr);
}

TEST_F(PolicyTest, PriorityGoesBeforeTheOrderOfFiles) {
    sandbox_.write("etc/umacct.toml.d/10-a.toml", "[[rule]]\ncgroup='/**'\nhard='1G'\n");
    const Policy policy = read("[[rule]]\ncgroup='/prod/*'\npriority=10\nhard='2G'\n"
                               "[[rule]]\ncgroup='/prod/a'\npriority=10\nhard='3G'\n"
                               "[[rule]]\ncgroup='/prod/b'\npriority=11\nhard='4G'\n"
                               "[[rule]]\ncgroup='/**'\npriority=-1\nhard='5G'\n");
    const auto hard = [&](const char *path) {
        return policy.match({.path = path})->change(0).hard.value_or(0);
    };

    EXPECT_EQ(hard("/prod/a"), 2 * gib) << "of equals, the first";
    EXPECT_EQ(hard("/prod/b"), 4 * gib);
    EXPECT_EQ(hard("/other"), gib) << "0 unless told";
}

TEST_F(PolicyTest, WhatAPersonSetComesFirst) {
    sandbox_.write("etc/umacct.toml.d/00-a.toml", "[machine]\nheadroom = '1G'\n"
                                                  "headroom_anonymous = true\n");
    sandbox_.write("run/umacct.toml.d/machine.toml", "[machine]\nheadroom = '2G'\n"
                                                     "headroom_blocks = '64K'\n");
    const Policy policy = read("[machine]\nheadroom = '3G'\nheadroom_blocks = '4M'\n");

    EXPECT_EQ(policy.headroom->of(0), 2 * gib);
    EXPECT_EQ(policy.headroom_blocks, 65536U);
    EXPECT_EQ(policy.headroom_anonymous, true);
}

TEST_F(PolicyTest, TheObserverIsOnUnlessItSaysOtherwise) {
    EXPECT_TRUE(read("[machine]\n").observer.value_or(true));
    EXPECT_FALSE(read("[machine]\nobserver = false\n").observer.value_or(true));
}

TEST_F(PolicyTest, TotalIsSystemdsToSetOfServicesAlone) {
    const Rule rule = read("[[rule]]\nunit = 'ollama'\ntotal = '40G'\n").rules.at(0);

    EXPECT_EQ(rule.total.value_or(Amount()).bytes, 40ULL << 30);
    EXPECT_EQ(rule.change(0).charge, UMACCT_CHARGE_ON);
    for (const char *pattern : {"cgroup = '/a'", "container = 'web'", "pod = 'llm-0'",
                                "unit = 'a.slice'", "unit = '*'"}) {
        const auto found = problems(std::string("[[rule]]\n") + pattern + "\ntotal = '40G'\n");

        ASSERT_EQ(found.size(), 1U) << pattern;
        EXPECT_TRUE(found[0].starts_with("umacct.toml:3:9: total is MemoryMax= of services"))
            << found[0];
        EXPECT_NE(
            found[0].find("write charge = \"on\" here, and its limit where it is made: docker run "
                          "--memory, or resources.limits.memory"),
            std::string::npos);
    }
    EXPECT_EQ(read("[[rule]]\ncontainer = 'web'\ncharge = 'on'\n").rules.at(0).change(0).charge,
              UMACCT_CHARGE_ON)
        << "as the error says";
    expect_problem("[[rule]]\nunit = 'a'\ntotal = '1G'\ncharge = 'off'\n",
                   "umacct.toml:4:10: total needs charge = \"on\"");
}

TEST_F(PolicyTest, WhatIsWrongIsToldWithItsPlace) {
    expect_problem("[[rule]]\ncgroup = '/a'\nhard = '40X'\n",
                   "umacct.toml:3:8: hard: '40X' is not a size");
    expect_problem("[[rule]]\ncgroup = '/a'\nhard = 40\n",
                   "umacct.toml:3:8: hard is a text, in quotes");
    expect_problem("[[rule]]\ncgroup = '/a'\nhard = '120%'\n",
                   "umacct.toml:3:8: hard: '120%' is not a share: 1% to 100%");
    expect_problem("[[rule]]\ncgroup = 'a'\nhard = '1G'\n",
                   "umacct.toml:2:10: cgroup: 'a' does not begin with '/'");
    expect_problem("[[rule]]\ncgroup = '/a'\nview = 'yes'\n",
                   "umacct.toml:3:8: view is true or false");
    expect_problem("[[rule]]\ncgroup = '/a'\nhard = '1G'\npriority = '1'\n",
                   "umacct.toml:4:12: priority is a whole number");
    expect_problem("[[rule]]\ncgroup = '/a'\n",
                   "umacct.toml:1:1: a rule needs one of hard, soft, throttle, keep, view, charge, "
                   "total");
    expect_problem("[[rule]]\nhard = '1G'\n",
                   "umacct.toml:1:1: a rule needs one of cgroup, unit, container, image, pod, "
                   "namespace, label");
    expect_problem("[[rule]]\nlabel = '=x'\nhard = '1G'\n",
                   "umacct.toml:2:9: label: '=x' has no key: it is KEY or KEY=VALUE");
    expect_problem("[[rule]]\nunit = 'a'\nlabel = 'b'\nhard = '1G'\n",
                   "umacct.toml:1:1: a unit is neither a container nor a pod: make it two rules");
    expect_problem("[[rule]]\nunit = 'a'\npod = 'b'\nhard = '1G'\n",
                   "umacct.toml:1:1: a unit is neither a container nor a pod: make it two rules");
    expect_problem("[[rule]]\ncgroup = '/a'\nhard = '1G'\nsoft = '2G'\n",
                   "umacct.toml:1:1: soft is above hard");
    expect_problem("[rule]\ncgroup = '/a'\nhard = '1G'\n",
                   "umacct.toml:1:1: each rule is a table in a list: [[rule]]");
    expect_problem("[machine]\nreserve = 'max'\n",
                   "umacct.toml:2:11: reserve: 'max' would leave no memory at all");
    expect_problem("[machine]\nheadroom_blocks = '3M'\n",
                   "umacct.toml:2:19: headroom_blocks: '3M' is an invalid block size: it must be a "
                   "power of two, "
                   "at least 4.00 KiB");
    expect_problem("[machine]\nheadrom = '1G'\n",
                   "umacct.toml:2:1: [machine] has no 'headrom'; it may have reserve, charge, "
                   "view, headroom, headroom_blocks, headroom_anonymous, observer, notify: did you "
                   "mean headroom?");
    expect_problem("[machine\n", "umacct.toml:1:9: Error while parsing table header: "
                                 "expected ']', saw '\\n'");
}

TEST_F(PolicyTest, CharactersAboveAsciiAreForStringsAndComments) {
    const std::string rule = "[[rule]]\ncgroup = '/gr\u00fcn'\nhard = '1G' # \u00bd \u4e09\u2028\n";
    const std::string misplaced = "such a character may be in strings and comments alone";

    EXPECT_EQ(read(rule).rules.at(0).cgroup, "/gr\u00fcn");
    EXPECT_EQ(read("\ufeff" + rule).rules.size(), 1U);
    // A space that does not break, as web pages have them.
    expect_problem(rule + "\u00a0view = true\n", "umacct.toml:4:1: " + misplaced);
    expect_problem(rule + "\n  gr\u00f6\u00dfe = 1\n", "umacct.toml:5:5: " + misplaced);
    expect_problem("\ufeffview = \u201ctrue\u201d\n", "umacct.toml:1:8: " + misplaced);
    EXPECT_EQ(problems("a = 000B.\u023a\n").size(), 1U);
    expect_problem("a = 1 !\n", "umacct.toml:1:7: Error while parsing key-value pair: expected a "
                                "comment or whitespace, saw '!'");
    EXPECT_EQ(problems("a = '\xff'\n").size(), 1U);
    EXPECT_EQ(problems("a = \xff\n").size(), 1U);
    EXPECT_EQ(problems("a = 1\x80\n").size(), 1U);
}

// It ended the program: the parser's stack has an end.
TEST_F(PolicyTest, OddTextsAreRefusedWithAPlaceAndNothingElseHappens) {
    const auto repeated = [](const std::string &text, int count) {
        std::string all;

        for (int i = 0; i < count; ++i)
            all += text;
        return all;
    };
    const auto reserve = [](const std::string &text) {
        return "[machine]\nreserve = \"" + text + "\"\n";
    };
    const auto rule = [](const std::string &text) { return "[[rule]]\n" + text + '\n'; };
    const std::string of_all = "cgroup = '/a'\nhard = '1G'\n";

    for (const std::string &text : {"a = " + repeated("[", 200'000),
                                    repeated("[[", 1000) + "rule" + repeated("]]", 1000),
                                    reserve(std::string("8\0G", 3)),
                                    reserve("\xff\xfe"),
                                    reserve("nan%"),
                                    reserve("inf%"),
                                    reserve("1e400%"),
                                    reserve("0x10%"),
                                    reserve("100.0000001%"),
                                    reserve("1%%"),
                                    reserve("-5%"),
                                    reserve("900.G"),
                                    std::string("[machine]\nreserve = 8\n"),
                                    std::string("[machine]\nreserve = 1979-05-27\n"),
                                    std::string("[[machine]]\nreserve = '8G'\n"),
                                    std::string("[machien]\nreserve = '1G'\n"),
                                    std::string("[machine]\nreserve = '1G'\nreserve = '2G'\n"),
                                    std::string("[guard]\npressure = '0%'\n"),
                                    std::string("[guard]\nfloor = '4G'\nsteps = 'kill'\n"),
                                    std::string("[exporter]\ntop = -1\n"),
                                    std::string("rule = [1, 2]\n"),
                                    rule("priority = 9223372036854775808\n" + of_all),
                                    rule("priority = 1.5\n" + of_all),
                                    rule("cgroup = 'user.slice/**'\nhard = '1G'"),
                                    rule("cgroup = '/a'\nthrottle = '9999999999999s'")}) {
        const auto found = problems(text);

        EXPECT_FALSE(found.empty()) << text.substr(0, 80);
        for (const std::string &each : found) {
            EXPECT_TRUE(each.starts_with("umacct.toml:")) << each;
            EXPECT_LT(each.size(), 400U) << text.substr(0, 80);
        }
    }
    for (const std::string &text :
         {std::string(), "\xef\xbb\xbf" + reserve("8G"),
          std::string("[machine]\r\nreserve = '8G'\r\n"),
          std::string("[machine]\n\treserve\t=\t'8G'\n"), rule("name = '\u2603'\n" + of_all),
          std::string("rule = [{cgroup = '/a', hard = '1G'}]\n"),
          rule("cgroup = '/" + repeated("**a", 2000) + "'\nhard = '1G'")})
        EXPECT_TRUE(problems(text).empty()) << text.substr(0, 80) << problems(text).front();
}

TEST_F(PolicyTest, AKeyOfThousandsOfPartsIsRefused) {
    std::string key = "a";

    for (int i = 0; i < 50'000; ++i)
        key += ".a";
    expect_problem("# a comment. of. dots\n" + key + " = 1\n",
                   "umacct.toml:2:1: a key of more than 64 parts");
    expect_problem("[" + key + "]\n", "umacct.toml:1:1: a key of more than 64 parts");
    EXPECT_TRUE(problems("[[rule]]\nname = '" + key + "'\ncgroup = '/a'\nhard = '1G'\n").empty());
}

TEST_F(PolicyTest, TheMachinesView) {
    const Policy policy = read("[machine]\nview=true\n[[rule]]\ncgroup='/**'\nview=false\n");
    const Rule *rule = &policy.rules.at(0);

    EXPECT_EQ(policy.order("/", rule, gib).asked.view, true);
    EXPECT_EQ(policy.order("/", nullptr, gib).asked.view, true);
    EXPECT_EQ(policy.order("/a", rule, gib).asked.view, false);
    EXPECT_TRUE(policy.order("/a", nullptr, gib).asked.empty());
    expect_problem("[machine]\nview='on'\n", "umacct.toml:2:6: view is true or false");
}

TEST_F(PolicyTest, TheExporters) {
    EXPECT_EQ(read("[exporter]\ntop=7\n").exporter_top, 7U);
    EXPECT_FALSE(read("[exporter]\n").exporter_top);
    sandbox_.write("etc/umacct.toml.d/a.toml", "[exporter]\ntop=9\n");
    EXPECT_EQ(read("[exporter]\ntop=7\n").exporter_top, 9U);
    expect_problem("[exporter]\ntop=-1\n", "umacct.toml:2:5: top is how many: 0 or more");
    expect_problem("[exporter]\ntop='9'\n", "umacct.toml:2:5: top is a whole number");
    expect_problem("[exporter]\nport=1\n",
                   "umacct.toml:2:1: [exporter] has no 'port'; it may have top, page, page_token, "
                   "page_origins, page_hosts");
    expect_problem("exporter=1\n", "umacct.toml:1:10: exporter is a table: [exporter]");
}

TEST_F(PolicyTest, ThePages) {
    const PagePolicy page = read("[exporter]\npage = true\npage_token = '/etc/token'\n"
                                 "page_origins = ['https://a.example', 'http://127.0.0.1:3000']\n"
                                 "page_hosts = ['spark.lan']\n")
                                .page;

    EXPECT_EQ(page.on, true);
    EXPECT_EQ(page.token, "/etc/token");
    EXPECT_EQ(page.origins,
              (std::vector<std::string>{"https://a.example", "http://127.0.0.1:3000"}));
    EXPECT_EQ(page.hosts, std::vector<std::string>{"spark.lan"});
    EXPECT_EQ(read("").page, PagePolicy());
    // The file that is read first has the say.
    sandbox_.write("etc/umacct.toml.d/a.toml", "[exporter]\npage = false\n");
    EXPECT_EQ(read("[exporter]\npage = true\n").page.on, false);
    std::filesystem::remove(root() / "etc/umacct.toml.d/a.toml");

    expect_problem("[exporter]\npage_token = 'token'\n",
                   "umacct.toml:2:14: page_token: 'token' is no whole path");
    for (const char *origin :
         {"*", "null", "", "a.example", "https://", "https://*.a.example", "https://a.example/",
          "https://A.example", "https://a.example:", "https://a.example:x",
          "https://a.example:123456", "ftp://a.example", "https://a b"})
        EXPECT_EQ(problems(std::string("[exporter]\npage_origins = ['") + origin + "']\n").size(),
                  1U)
            << origin;
    for (const char *host : {"*", "", "Spark", "spark.lan:80", "http://spark", "a b", "[::1]"})
        EXPECT_EQ(problems(std::string("[exporter]\npage_hosts = ['") + host + "']\n").size(), 1U)
            << host;
}

std::string contents_of(const std::filesystem::path &file) {
    std::ostringstream text;

    text << std::ifstream(file).rdbuf();
    return text.str();
}

TEST_F(PolicyTest, WhatTheDocumentsShowIsAPolicy) {
    const std::string fence = "```toml\n";
    const std::string page = contents_of(test::source("docs/policy.md"));
    int blocks = 0;

    for (auto at = page.find(fence); at != std::string::npos; at = page.find(fence, at)) {
        at += fence.size();
        const std::string block = page.substr(at, page.find("```", at) - at);

        EXPECT_EQ(problems(block), std::vector<std::string>()) << block;
        EXPECT_TRUE(validate(read(block), {.total = 128 * gib}).empty()) << block;
        ++blocks;
    }
    EXPECT_GE(blocks, 5);
}

TEST_F(PolicyTest, TheFileThatIsInstalledIsOneAndSoAreItsExamples) {
    std::istringstream lines(contents_of(test::source("packaging/umacct.toml")));
    std::string examples;

    for (std::string line; std::getline(lines, line);) {
        EXPECT_TRUE(line.empty() || line[0] == '#') << "it says something: " << line;
        if (line.size() > 1 && line[1] != ' ')
            examples += line.substr(1) + "\n";
    }
    EXPECT_EQ(problems(examples), std::vector<std::string>()) << examples;
    EXPECT_EQ(read(examples).rules.size(), 1U);
    EXPECT_TRUE(validate(read(examples), {.total = 128 * gib}).empty());
}

TEST_F(PolicyTest, AllProblemsAreTold) {
    EXPECT_EQ(problems("[machine]\nreserve = 1\ncharge = 'perhaps'\nx = 1\n").size(), 3U);
}

struct Glob {
    const char *pattern;
    const char *text;
    bool fits;
};

TEST(Glob, LikeAShell) {
    for (const Glob &each :
         {Glob{"/a", "/a", true}, Glob{"/a", "/ab", false}, Glob{"/a*", "/ab", true},
          Glob{"/a*", "/a", true}, Glob{"/*", "/a/b", false}, Glob{"/**", "/a/b", true},
          Glob{"/a/**/d", "/a/b/c/d", true}, Glob{"/a/**/d", "/a/b/c", false},
          Glob{"/?/b", "/a/b", true}, Glob{"/a?b", "/a/b", false}, Glob{"*-*", "a-b-c", true},
          Glob{"*.service", "a.slice", false}, Glob{"**/x*y", "/a/xb/xcy", true},
          Glob{"", "", true}, Glob{"*", "", true}, Glob{"a*b*c", "aXbYbZc", true},
          Glob{"**a*b", "/xa/ya/zab", true}})
        EXPECT_EQ(glob_matches(each.pattern, each.text), each.fits)
            << each.pattern << " " << each.text;
}

TEST_F(PolicyTest, RulesAreForWhatTheySpeakOf) {
    const Policy policy = read("[[rule]]\nunit='a*.service'\nhard='1G'\n"
                               "[[rule]]\ncontainer='vllm'\nhard='2G'\n"
                               "[[rule]]\nnamespace='default'\npod='llm-*'\nhard='3G'\n"
                               "[[rule]]\nunit='x'\ncgroup='/inside/**'\nhard='4G'\n");
    const auto matched = [&](const Owner &owner, const char *path = "/x", bool inside = false) {
        const Rule *rule = policy.match({.path = path, .owner = &owner, .inside = inside});

        return rule == nullptr ? 0 : rule->change(0).hard.value_or(0) / gib;
    };
    Owner unit{.kind = OwnerKind::unit, .runtime = "systemd", .id = "ab.service"};
    Owner container{.kind = OwnerKind::container, .runtime = "docker", .id = "0123"};
    Owner pod{.kind = OwnerKind::pod, .runtime = "kubernetes", .id = "4567"};

    EXPECT_EQ(matched(unit), 1U);
    EXPECT_EQ(matched(unit, "/x", true), 0U) << "who made it chose its name";
    unit.id = "x.service";
    EXPECT_EQ(matched(unit), 0U);
    EXPECT_EQ(matched(unit, "/inside/x.service", true), 4U);

    EXPECT_EQ(matched(container), 0U) << "it has no name yet";
    container.name = "vllm";
    EXPECT_EQ(matched(container), 2U);
    container.kind = OwnerKind::unit;
    container.id = "vllm";
    EXPECT_EQ(matched(container), 0U);

    pod.kube_namespace = "default";
    EXPECT_EQ(matched(pod), 0U);
    pod.pod = "llm-0";
    EXPECT_EQ(matched(pod), 3U);
    pod.kube_namespace = "other";
    EXPECT_EQ(matched(pod), 0U);
    // A container in that pod is in its cgroup; what the pod gets holds for it.
    Owner inside = pod;
    inside.kind = OwnerKind::container;
    inside.kube_namespace = "default";
    EXPECT_EQ(matched(inside), 0U);
}

/// The rules for containers of users' runtimes, as docs/containers.md has them.
TEST_F(PolicyTest, RulesForRootlessContainersAreAsDocumented) {
    std::ifstream in(test::source("docs/containers.md"));
    std::string rules;
    bool inside = false;

    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("## "))
            inside = line == "## Rootless Podman and Docker";
        if (inside && line.starts_with("    "))
            rules += line.substr(4) + "\n";
    }
    const Policy policy = read(rules);
    const auto matched = [&](const std::string &below) -> const Rule * {
        return policy.match(
            {.path = "/user.slice/user-1000.slice" + below, .owner = nullptr, .inside = false});
    };
    const std::string manager = "/user@1000.service";

    ASSERT_EQ(policy.rules.size(), 2U) << rules;
    EXPECT_EQ(matched(""), policy.rules.data());
    for (const std::string podmans :
         {"/user.slice/libpod-0123.scope", "/app.slice/vllm.service/libpod-payload-0123"})
        EXPECT_EQ(matched(manager + podmans), &policy.rules[1]) << podmans;
    EXPECT_EQ(matched(manager + "/app.slice/docker.service"), nullptr);
    EXPECT_EQ(matched("/session-3.scope"), nullptr);
}

struct Image {
    const char *pattern;
    const char *image;
    bool fits;
};

TEST_F(PolicyTest, RulesByImage) {
    const auto fits = [&](const std::string &pattern, const std::string &image) {
        const Owner owner{.kind = OwnerKind::container, .runtime = "docker", .image = image};

        return fit(read("[[rule]]\nhard='1G'\nimage='" + pattern + "'\n").rules.at(0),
                   {.path = "/x", .owner = &owner})
            .fits;
    };

    for (const Image &each :
         {Image{"vllm/vllm-openai:v1", "vllm/vllm-openai:v1", true},
          Image{"vllm/vllm-openai:v1", "docker.io/vllm/vllm-openai:v1", true},
          Image{"redis", "docker.io/library/redis:7", true},
          Image{"vllm/*", "vllm/vllm-openai@sha256:0123", true},
          Image{"vllm/vllm-openai:*", "vllm/vllm-openai:v1", true},
          Image{"models/tiny", "localhost/models/tiny:v1", true},
          Image{"localhost:5000/vllm", "localhost:5000/vllm", true},
          Image{"localhost:5000/vllm", "localhost:5000/vllm:v1@sha256:0123", true},
          Image{"vllm/vllm-openai:v1", "vllm/vllm-openai:v2", false},
          Image{"vllm", "vllm/vllm-openai:v1", false},
          Image{"localhost", "localhost:5000/vllm", false}, Image{"*", "", false}})
        EXPECT_EQ(fits(each.pattern, each.image), each.fits) << each.pattern << " " << each.image;
}

TEST_F(PolicyTest, RulesByLabel) {
    const Policy policy = read("[[rule]]\ncontainer='vllm'\nlabel='tier=prod'\nhard='1G'\n"
                               "[[rule]]\nlabel='tier=batch*'\nhard='2G'\n"
                               "[[rule]]\nnamespace='lab'\nlabel='gpu'\nhard='3G'\n");
    const auto matched = [&](const Owner &owner) {
        const Rule *rule = policy.match({.path = "/x", .owner = &owner});

        return rule == nullptr ? 0 : rule->change(0).hard.value_or(0) / gib;
    };
    Owner container{.kind = OwnerKind::container, .runtime = "docker", .name = "vllm"};
    Owner pod{.kind = OwnerKind::pod, .runtime = "kubernetes", .kube_namespace = "lab"};

    EXPECT_EQ(matched(container), 0U);
    container.labels = {"x=y", "tier=prod"};
    EXPECT_EQ(matched(container), 1U);
    container.labels = {"x=y", "tier=batch-2"};
    EXPECT_EQ(matched(container), 2U);
    // A pod's limit is for all of its containers together.
    container.pod = "llm-0";
    EXPECT_EQ(matched(container), 0U);

    pod.pod = "llm-0";
    pod.labels = {"gpus=1"};
    EXPECT_EQ(matched(pod), 0U);
    pod.labels = {"gpu=registry/a"};
    EXPECT_EQ(matched(pod), 3U);
    pod.labels = {"tier=batch", "gpu="};
    EXPECT_EQ(matched(pod), 2U);
    EXPECT_EQ(matched({.kind = OwnerKind::unit, .labels = {"tier=batch"}}), 0U);
}

TEST_F(PolicyTest, TheGuard) {
    EXPECT_FALSE(read("").guard);

    const auto guard = read("[guard]\nfloor = '3%'\n").guard;
    ASSERT_TRUE(guard);
    EXPECT_EQ(guard->floor->of(100 * gib), 3 * gib);
    EXPECT_EQ(guard->steps,
              (std::vector{GuardStep::reclaim, GuardStep::reserve, GuardStep::freeze}));
    EXPECT_FALSE(guard->dry_run);
    EXPECT_FALSE(guard->failed);
    EXPECT_TRUE(read("[guard]\nfailed = true\n").guard.value_or(GuardPolicy()).failed);

    const auto all = read("[guard]\npressure = '20%'\nfor = '1s'\nwait = '3s'\nrelease = '30s'\n"
                          "steps = ['signal', 'kill']\nprotect = ['/prod.slice/**']\n"
                          "dry_run = true\n")
                         .guard;
    ASSERT_TRUE(all);
    EXPECT_FALSE(all->floor);
    EXPECT_EQ(all->pressure, 20);
    EXPECT_EQ(all->for_ns, 1'000'000'000U);
    EXPECT_EQ(all->wait_ns, 3'000'000'000U);
    EXPECT_EQ(all->release_ns, 30'000'000'000U);
    EXPECT_EQ(all->steps, (std::vector{GuardStep::signal, GuardStep::kill}));
    EXPECT_TRUE(all->dry_run);
}

TEST_F(PolicyTest, TheGuardsMistakesHaveAPlace) {
    expect_problem("[guard]\nfor = '1s'\n",
                   "umacct.toml:1:1: [guard] needs floor, pressure or failed");
    expect_problem("[guard]\nfailed = false\n",
                   "umacct.toml:1:1: [guard] needs floor, pressure or failed");
    expect_problem("[guard]\nfloor = '4G'\nsteps = ['freeze', 'shoot']\n",
                   "umacct.toml:3:20: steps: there is no step 'shoot'; the steps are reclaim, "
                   "reserve, freeze, signal, kill");
    expect_problem("[guard]\nfloor = '4G'\nsteps = 'freeze'\n",
                   "umacct.toml:3:9: steps is a list, in brackets");
    expect_problem("[guard]\nfloor = '4G'\nsteps = []\n",
                   "umacct.toml:3:9: steps: without any, the guard does nothing");
    expect_problem("[guard]\nfloor = 'max'\n",
                   "umacct.toml:2:9: floor: it cannot be 'max': that much is never available");
    expect_problem("[guard]\npressure = '20'\n",
                   "umacct.toml:2:12: pressure: '20' is not a share: 1% to 100%");
    expect_problem("[guard]\nfloor = '4G'\nprotect = ['ssh']\n",
                   "umacct.toml:3:12: protect: 'ssh' does not begin with '/'");
    expect_problem("guard = 'on'\n", "umacct.toml:1:9: guard is a table: [guard]");
    expect_problem("[guard]\nflor = '4G'\nfloor = '4G'\n",
                   "umacct.toml:2:1: [guard] has no 'flor'; it may have floor, pressure, failed, "
                   "for, steps, wait, release, protect, dry_run: did you mean floor?");
}

TEST_F(PolicyTest, WhatTheGuardNeverTouches) {
    const GuardPolicy guard = *read("[guard]\nfloor = '4G'\nprotect = ['/prod-*.slice']\n").guard;

    for (const char *path :
         {"/init.scope", "/system.slice/sshd.service", "/system.slice/ssh.service",
          "/system.slice/systemd-journald.service", "/system.slice/umacctd.service",
          "/system.slice/docker.service", "/system.slice/containerd.service",
          "/system.slice/crio.service", "/system.slice/kubelet.service",
          "/system.slice/gdm.service", "/system.slice/containerd.service/shim", "/prod-a.slice",
          "/prod-a.slice/llm.service/worker"})
        EXPECT_TRUE(guard.protects(path)) << path;
    for (const char *path :
         {"/", "/system.slice", "/system.slice/ollama.service", "/system.slice/docker-0a1b.scope",
          "/kubepods.slice", "/user.slice/user-1000.slice/session-3.scope", "/prod.slice",
          "/x/init.scope"})
        EXPECT_FALSE(guard.protects(path)) << path;
}

class LastGoodTest : public testing::Test {
protected:
    std::filesystem::path root() const { return sandbox_.root(); }

    std::vector<PolicyText> texts() const { return read_texts(policy_files(root())); }

    std::optional<std::uint64_t> hard() const {
        const auto policy = last_.policy();

        return policy && !policy->rules.empty() ? policy->rules[0].change(0).hard : std::nullopt;
    }

    test::Sandbox sandbox_;
    LastGood last_{sandbox_.root()};
};

constexpr const char *one_gib = "[[rule]]\ncgroup='/a'\nhard='1G'\n";

TEST_F(LastGoodTest, KeepsWhatWasParsed) {
    EXPECT_FALSE(last_.policy());
    sandbox_.write("etc/umacct.toml", one_gib);
    const auto parsed = texts();
    sandbox_.write("etc/umacct.toml", "[[rule]]\ncgroup='/a'\nhard='2G'\n");
    last_.keep(parsed);
    EXPECT_EQ(hard(), gib);
    EXPECT_FALSE(last_.is_of(texts()));
    last_.keep(texts());
    EXPECT_EQ(hard(), 2 * gib);
    EXPECT_TRUE(last_.is_of(texts()));
}

TEST_F(LastGoodTest, ItsMarkIsAnotherForEachPolicyThatIsKept) {
    std::set<std::string> marks = {policy_mark(root())};

    for (const char *hard : {"1G", "2G", "1G", "2G"}) {
        sandbox_.write("etc/umacct.toml", fmt::format("[[rule]]\ncgroup='/a'\nhard='{}'\n", hard));
        EXPECT_EQ(last_.keep(texts()), 0);
        EXPECT_TRUE(marks.insert(policy_mark(root())).second) << "one that was kept before, too";
        EXPECT_EQ(last_.keep(texts()), 0);
        EXPECT_TRUE(marks.contains(policy_mark(root()))) << "it is kept already";
    }
    const std::filesystem::path state = root() / "var/lib/umacctd";
    std::filesystem::remove_all(state);
    sandbox_.write(state, "");
    for (int i = 0; i < 2; ++i) {
        EXPECT_NE(last_.keep(texts()), 0);
        EXPECT_TRUE(marks.insert(policy_mark(root())).second) << "nothing can be kept";
    }
}

TEST_F(LastGoodTest, SaysThatItIsOutdatedWhereNothingCanBeKept) {
    const std::filesystem::path state = root() / "var/lib/umacctd";

    sandbox_.write("etc/umacct.toml", one_gib);
    sandbox_.write(state, "");
    EXPECT_NE(last_.keep(texts()), 0);
    EXPECT_TRUE(last_.is_outdated());
    std::filesystem::remove(state);
    EXPECT_EQ(last_.keep(texts()), 0);
    EXPECT_FALSE(last_.is_outdated());
}

TEST_F(LastGoodTest, WhatAPersonSetOfTheMachineIsNotKept) {
    sandbox_.write("run/umacct.toml.d/machine.toml", "[machine]\nreserve = '1G'\n");
    sandbox_.write("etc/umacct.toml", one_gib);
    last_.keep(texts());
    EXPECT_TRUE(last_.policy()->reserve);
    std::filesystem::remove_all(root() / "run");
    EXPECT_TRUE(last_.is_of(texts()));
    EXPECT_FALSE(last_.policy()->reserve) << "the machine has started again";
    EXPECT_EQ(hard(), gib);
}

TEST_F(LastGoodTest, APolicyThatIsMissingIsNone) {
    const std::filesystem::path file = root() / "etc/umacct.toml";

    sandbox_.write(file, one_gib);
    last_.keep(texts());
    EXPECT_TRUE(last_.missing(texts()).empty());
    sandbox_.write(file, "");
    ASSERT_EQ(last_.missing(texts()).size(), 1U);
    EXPECT_NE(last_.missing(texts())[0].text.find("it is empty"), std::string::npos);
    std::filesystem::remove(file);
    EXPECT_TRUE(last_.missing(texts()).empty()) << "a person took it away";
    std::filesystem::create_symlink("/nowhere/umacct.toml", file);
    EXPECT_THROW(read_policy(texts()), PolicyError) << "a link to what isn't mounted";
    std::filesystem::remove(file);
    std::filesystem::create_symlink("/nowhere", root() / "etc/umacct.toml.d");
    EXPECT_THROW(read_policy(texts()), PolicyError);
}

TEST_F(LastGoodTest, DropInsThatCannotBeReadAreNotNone) {
    const std::filesystem::path folder = root() / "etc/umacct.toml.d";

    sandbox_.write("etc/umacct.toml", one_gib);
    std::filesystem::create_directories(folder / "a.toml");
    EXPECT_THROW(read_policy(texts()), PolicyError) << "a folder in place of a file";
    std::filesystem::remove_all(folder);
    sandbox_.write(folder, "");
    EXPECT_THROW(read_policy(texts()), PolicyError) << "a file in place of the folder";
}

TEST_F(LastGoodTest, DropInsThatAreNotMountedAreMissing) {
    const std::filesystem::path mark = root() / "var/lib/umacctd/policy/mount";

    sandbox_.write("etc/umacct.toml.d/a.toml", one_gib);
    last_.keep(texts());
    std::filesystem::remove(root() / "etc/umacct.toml.d/a.toml");
    EXPECT_TRUE(last_.missing(texts()).empty()) << "a person took it away";
    // The folder was another file system's.
    sandbox_.write(mark, "");
    EXPECT_EQ(last_.missing(texts()).size(), 1U);
    sandbox_.write("etc/umacct.toml.d/b.toml", one_gib);
    EXPECT_TRUE(last_.missing(texts()).empty());
}

} // namespace
} // namespace umacct
