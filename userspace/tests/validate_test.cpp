// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/policy/validate.h"

#include <gtest/gtest.h>

#include "tests/sandbox.h"

namespace umacct {
namespace {

constexpr std::uint64_t gib = 1ULL << 30;

/// Errors of a policy on a machine of 32 GiB, whose largest block has 4 MiB.
std::vector<std::string> problems(const std::string &text, std::uint64_t total = 32 * gib) {
    std::vector<std::string> lines;

    for (const Diagnostic &problem :
         validate(read_policy(text, "p"), {.total = total, .largest_block = 4U << 20}))
        lines.push_back(problem.line());
    return lines;
}

void expect_problem(const std::string &text, const std::string &problem) {
    EXPECT_EQ(problems(text), std::vector{problem}) << text;
}

void expect_none(const std::string &text) {
    EXPECT_EQ(problems(text), std::vector<std::string>()) << text;
}

std::string rule(const std::string &pattern) {
    return "[[rule]]\n" + pattern + "\nhard = '1G'\n";
}

TEST(Validate, WhatIsMoreThanTheMachineHas) {
    expect_problem("[machine]\nreserve = '900G'\n",
                   "p:2:11: reserve is 900.00 GiB, and the machine has 32.00 GiB");
    expect_problem("[machine]\nheadroom = '100%'\n",
                   "p:2:12: headroom is 32.00 GiB, and the machine has 32.00 GiB");
    expect_problem("[guard]\nsteps = ['kill']\nfloor = '40G'\n",
                   "p:3:9: floor is 40.00 GiB, and the machine has 32.00 GiB");
    expect_problem("[machine]\nreserve = '20G'\n[guard]\nfloor = '12G'\n",
                   "p:4:9: floor and reserve are 32.00 GiB together, and the machine has 32.00 "
                   "GiB: the guard would always act");
    expect_problem("[machine]\nheadroom = '1G'\nheadroom_blocks = '8M'\n",
                   "p:3:19: headroom_blocks is 8.00 MiB, and the kernel's largest block is "
                   "4.00 MiB");
    expect_none("[machine]\nreserve = '10%'\nheadroom = '99%'\nheadroom_blocks = '4M'\n"
                "[guard]\nfloor = '4G'\n");
    expect_none("[machine]\nreserve = 'off'\nheadroom = 'off'\n");
}

TEST(Validate, BlocksAreNotJudgedWhereTheLargestIsNotKnown) {
    const test::Sandbox sandbox;
    const Machine machine(sandbox.proc(), sandbox.root());
    const MachineFacts facts = MachineFacts::of(machine, 32 * gib);

    EXPECT_EQ(facts.total, 32 * gib);
    EXPECT_EQ(facts.largest_block, 0U);
    EXPECT_TRUE(validate(read_policy("[machine]\nheadroom_blocks = '1G'\n", "p"), facts).empty());
}

TEST(Validate, NoLargerBlockIsKeptFreeThanTheKernelHas) {
    const MachineFacts facts{.total = 32 * gib, .largest_block = 4U << 20};

    EXPECT_EQ(facts.block_of(1 * gib), 4U << 20);
    EXPECT_EQ(facts.block_of(2U << 20), 2U << 20);
    EXPECT_EQ(MachineFacts{}.block_of(1 * gib), 1 * gib);
}

TEST(Validate, TimesThatTheModuleRefusesOrThatAreNone) {
    expect_problem("[[rule]]\ncgroup = '/a'\nthrottle = '10s'\n",
                   "p:3:12: throttle is 10 s, and 2 s is the most");
    expect_none("[[rule]]\ncgroup = '/a'\nthrottle = '2s'\n");
    expect_problem("[guard]\nfloor = '1G'\nfor = '0'\n",
                   "p:3:7: for is 0: the guard would act for a moment's shortage; 100ms is short");
    expect_problem("[guard]\nfloor = '1G'\nwait = 'off'\n",
                   "p:3:8: wait is 0: no step would have time to help before the next one");
    expect_problem("[guard]\nfloor = '0'\n", "p:2:9: floor is 0: the guard would never act by it");
    expect_none("[guard]\npressure = '10%'\nfor = '100ms'\nwait = '1ms'\n");
}

TEST(Validate, SharesAreJudgedByTheMachine) {
    const std::string text = "[[rule]]\ncgroup='/a'\nsoft='50%'\nhard='4G'\n"
                             "[[rule]]\ncgroup='/b'\nsoft='4G'\nhard='50%'\n"
                             "[[rule]]\ncgroup='/c'\nsoft='max'\nhard='50%'\n";

    EXPECT_TRUE(problems(text, 8 * gib).empty());
    EXPECT_EQ(problems(text, 128 * gib),
              std::vector<std::string>{
                  "p:1:1: soft is above hard on this machine: 64.00 GiB, and 4.00 GiB"});
    EXPECT_EQ(problems(text, 4 * gib).size(), 1U);
}

TEST(Validate, PathsThatNoCgroupHas) {
    expect_problem(rule("cgroup = '/user.slice/'"),
                   "p:2:10: cgroup '/user.slice/' never matches: a cgroup's path does not end "
                   "with '/'; what is below it is '/user.slice/**'");
    expect_problem(rule("cgroup = '/a//b'"),
                   "p:2:10: cgroup '/a//b' never matches: a cgroup's path has no '//'");
    expect_problem(rule("cgroup = '/a/../b'"),
                   "p:2:10: cgroup '/a/../b' never matches: a cgroup's path has no '..'");
    expect_problem(rule("cgroup = '/user-[0-9].slice'"),
                   "p:2:10: cgroup '/user-[0-9].slice' never matches: '[' is no set of "
                   "characters here; '?' is any one, '*' any number");
    expect_problem("[guard]\nfloor = '1G'\nprotect = ['/a', '/{b,c}']\n",
                   "p:3:11: '/{b,c}' never matches: '{' is no list of choices here; write a rule "
                   "for each");
    for (const char *path : {"/", "/**", "/a/*/b?", "/a.b/..c", "/odd ] name"})
        expect_none(rule("cgroup = '" + std::string(path) + "'"));
}

TEST(Validate, NamesThatNothingHas) {
    expect_problem(rule("unit = '{a,b}.service'"),
                   "p:2:8: unit '{a,b}.service' never matches: '{' is no list of choices here; "
                   "write a rule for each");
    expect_problem(rule("unit = 'a/b.service'"),
                   "p:2:8: unit 'a/b.service' never matches: such a name has no '/'");
    expect_problem(rule("unit = 'backup.timer'"),
                   "p:2:8: unit 'backup.timer' never matches: units of type '.timer' have no "
                   "cgroup; if a service's name contains a dot, append '.service'");
    expect_problem(rule("container = 'a b'"),
                   "p:2:13: container 'a b' never matches: such a name has no ' '");
    expect_problem(rule("pod = 'lab/llm'"),
                   "p:2:7: pod 'lab/llm' never matches: such a name has no '/'");
    expect_problem(rule("namespace = 'a.b'"),
                   "p:2:13: namespace 'a.b' never matches: such a name has no '.'");
    for (const char *pattern :
         {"unit = 'ollama'", "unit = 'a@b\\x2dc.service'", "unit = 'llm-*'", "unit = 'a.*'",
          "unit = '*.slice'", "container = 'vllm_1'", "image = 'localhost:5000/a@sha256:0'",
          "label = 'a={\"b\": [1]}'", "namespace = '*'"})
        expect_none(rule(pattern));
}

TEST(Validate, ARuleThatIsNeverReached) {
    const std::string all = rule("cgroup = '/**'");
    const std::string unit = rule("unit = 'a'");

    expect_problem(
        all + unit,
        "p:4:1: this rule is never reached: rule 1 (p:1:1) matches everything that it matches");
    expect_problem(
        unit + unit,
        "p:4:1: this rule is never reached: rule 1 (p:1:1) matches everything that it matches");
    expect_none(unit + all);
    expect_none(unit + rule("unit = 'a'\ncgroup = '/user.slice/**'"));
    expect_none(all + rule("unit = 'a'\npriority = 1"));

    // A drop-in goes before another file's rule, and that is its purpose.
    const test::Sandbox sandbox;
    sandbox.write("etc/umacct.toml.d/a.toml", unit);
    sandbox.write("etc/umacct.toml", unit);
    EXPECT_TRUE(validate(read_policy(policy_files(sandbox.root())), {.total = 32 * gib}).empty());
}

} // namespace
} // namespace umacct
