// SPDX-License-Identifier: GPL-2.0-or-later
/// "umacct config", on a sandbox's /etc.
#include "lib/policy/last_good.h"
#include "tests/runtime_folders.h"
#include "tests/tool_fixture.h"

namespace umacct {
namespace {

using nlohmann::json;
using test::Ran;

class Config : public test::ToolFixture {
protected:
    Config() : ollama_(sandbox_.add_cgroup("/system.slice/ollama.service")) {}

    void policy(const std::string &text) { sandbox_.write("etc/umacct.toml", text); }

    std::uint64_t ollama_;
};

TEST_F(Config, ChecksWithoutAModule) {
    loaded_ = false;
    EXPECT_EQ(run({"config", "check"}).out, "policy OK: 0 rules in 0 files\n");
    policy("[[rule]]\ncgroup='/a'\nhard='1G'\n");
    EXPECT_EQ(run({"config", "check"}).out, "policy OK: 1 rule in 1 file\n");

    policy("[machine]\nreserve = 1\n[[rule]]\ncgroup='/a'\nhrad='1G'\n");
    const Ran wrong = run({"config", "check"});
    EXPECT_EQ(wrong.code, 2);
    EXPECT_NE(wrong.err.find("umacct.toml:2:11: reserve is a text, in quotes\n"), std::string::npos)
        << wrong.err;
    EXPECT_NE(wrong.err.find("umacct.toml:5:1: a rule has no 'hrad'"), std::string::npos);
    const json document = run_json({"config", "check", "--json"});
    EXPECT_EQ(document["problems"].size(), 3U);
    EXPECT_EQ(document["problems"][0]["place"]["column"], 11);
    const Ran refused = run({"config", "explain", "/a"});
    EXPECT_EQ(refused.code, 2);
    EXPECT_NE(refused.err.find("umacct.toml:2:11: reserve is a text, in quotes, and 2 more\nhint: "
                               "'umacct config check' says all"),
              std::string::npos)
        << refused.err;
}

TEST_F(Config, ChecksSharesByTheMachinesMemory) {
    // 16 GiB on this machine.
    policy("[[rule]]\ncgroup='/a'\nsoft='50%'\nhard='4G'\n");
    const Ran wrong = run({"config", "check"});
    EXPECT_EQ(wrong.code, 2);
    EXPECT_NE(wrong.err.find("umacct.toml:1:1: soft is above hard on this machine: 8.00 GiB, and "
                             "4.00 GiB\n"),
              std::string::npos)
        << wrong.err;
    policy("[[rule]]\ncgroup='/a'\nsoft='20%'\nhard='4G'\n");
    EXPECT_EQ(run({"config", "check"}).code, 0);
}

TEST_F(Config, ChecksWhatTheMachineWouldRefuse) {
    policy("[machine]\nreserve='900G'\n[[rule]]\ncgroup='/user.slice/'\nhard='1G'\n");
    const Ran wrong = run({"config", "check"});
    EXPECT_EQ(wrong.code, 2);
    EXPECT_NE(wrong.err.find("umacct.toml:2:9: reserve is 900.00 GiB, and the machine has 16.00 "
                             "GiB\n"),
              std::string::npos)
        << wrong.err;
    EXPECT_NE(wrong.err.find("umacct.toml:4:8: cgroup '/user.slice/' never matches"),
              std::string::npos);
}

// "umacct headroom" writes it, and it beats the policy until the next start.
TEST_F(Config, ChecksSayWhatAPersonSetUntilTheNextStart) {
    EXPECT_EQ(run({"config", "check"}).err, "");
    sandbox_.write("run/umacct.toml.d/machine.toml", "[machine]\nheadroom='1G'\n");
    const Ran told = run({"config", "check"});
    EXPECT_EQ(told.code, 0);
    EXPECT_NE(told.err.find("run/umacct.toml.d/machine.toml goes before /etc until the machine's "
                            "next start; without that file, /etc holds again"),
              std::string::npos)
        << told.err;
}

/// A running umacctd applies the last policy that it accepted.
TEST_F(Config, ExplainsNoPolicyThatUmacctdRefused) {
    const std::string good = "[[rule]]\nname='good'\nunit='ollama'\nhard='1G'\n";
    const auto rule = [&] { return run_json({"config", "explain", "ollama", "--json"})["rule"]; };
    const auto hard_set = [&] {
        return test::attribute(fake_.changes.back().attributes, UMACCT_A_ACCOUNT_HARD);
    };

    sandbox_.write("var/lib/umacctd/policy/0000-umacct.toml", good);
    policy(good);
    std::optional<test::RunningDaemon> daemon(sandbox_.root());
    EXPECT_EQ(run({"config", "explain", "ollama"}).err, "");
    EXPECT_NE(run({"config", "explain", "ollama"}).out.find("/etc/umacct.toml:1"),
              std::string::npos);
    for (const char *wrong : {"[machine]\nreserve='900G'\n[[rule]]\nname='next'\nunit='ollama'\n"
                              "hard='2G'\n",
                              "no TOML"}) {
        policy(wrong);
        EXPECT_EQ(rule(), "good") << wrong;
        EXPECT_NE(run({"config", "explain", "ollama"}).err.find("the policy in /etc is wrong"),
                  std::string::npos);
        run({"config", "apply", "ollama"});
        ASSERT_FALSE(fake_.changes.empty());
        EXPECT_EQ(hard_set(), 1ULL << 30) << wrong;
    }
    // A policy that is yet to be loaded is explained, and not applied.
    policy("[[rule]]\nname='next'\nunit='ollama'\nhard='2G'\n");
    EXPECT_EQ(rule(), "next");
    EXPECT_NE(run({"config", "explain", "ollama"}).err.find("umacctd goes by another policy"),
              std::string::npos);
    EXPECT_NE(run({"config", "apply", "ollama"}).err.find("not what /etc says now"),
              std::string::npos);
    EXPECT_EQ(hard_set(), 1ULL << 30);
    daemon.reset();
    EXPECT_EQ(rule(), "next");
    EXPECT_EQ(run({"config", "explain", "ollama"}).err, "");
}

TEST_F(Config, ExplainsTheMachinesView) {
    policy("[machine]\nview=true\n");
    EXPECT_NE(run({"config", "explain", "/"}).out.find("  view on, by [machine], "),
              std::string::npos);
    EXPECT_NE(run({"config", "explain", "ollama"}).out.find("no rule matches"), std::string::npos);
}

TEST_F(Config, ExplainsWhichRuleAndWhy) {
    policy("[[rule]]\nname='web'\nunit='nginx'\nhard='1G'\n"
           "[[rule]]\nname='models'\nunit='ollama'\nhard='50%'\nview=true\n"
           "[[rule]]\nname='rest'\ncgroup='/**'\nsoft='2G'\n");
    const Ran told = run({"config", "explain", "ollama"});
    EXPECT_EQ(told.code, 0);
    EXPECT_NE(told.out.find("  not web ("), std::string::npos) << told.out;
    EXPECT_NE(told.out.find("): it is not unit 'nginx.service'\n"), std::string::npos);
    EXPECT_NE(told.out.find("  hard 8.00 GiB, by rule \"models\", "), std::string::npos);
    EXPECT_EQ(told.out.find("rest"), std::string::npos);

    const json document = run_json({"config", "explain", "ollama", "--json"});
    EXPECT_EQ(document["rule"], "models");
    EXPECT_EQ(document["place"]["line"], 5);
    EXPECT_EQ(document["passed"][0]["rule"], "web");
    EXPECT_EQ(document["settings"], (json{{"hard_bytes", 8ULL << 30}, {"view", true}}));
    EXPECT_EQ(document["orders"].size(), 2U);
    EXPECT_EQ(document["orders"][0]["setting"], "hard");
    EXPECT_EQ(document["orders"][0]["by"], "rule");

    policy("");
    EXPECT_NE(run({"config", "explain", "ollama"}).out.find("no rule matches"), std::string::npos);
    const json none = run_json({"config", "explain", "ollama", "--json"});
    EXPECT_TRUE(none["rule"].is_null());
    EXPECT_TRUE(none["settings"].is_null());

    policy("[[rule]]\nunit='ollama'\nhard='max'\nsoft='1K'\nthrottle='5ms'\nview=false\n"
           "charge='on'\n");
    EXPECT_EQ(run_json({"config", "explain", "ollama", "--json"})["settings"],
              (json{{"hard_bytes", nullptr},
                    {"soft_bytes", 1024},
                    {"throttle_ns", 5000000},
                    {"view", false},
                    {"charge", "on"}}));
}

TEST_F(Config, ExplainsWhatARuleCouldGoBy) {
    const std::string id = test::id_of('a');

    sandbox_.add_cgroup("/docker/" + id);
    test::RuntimeFolders(sandbox_).add_docker(id, "vllm", "vllm/vllm-openai:v1",
                                              {{"tier", "batch"}});
    policy("[[rule]]\nname='prod'\nlabel='tier=prod'\nhard='1G'\n"
           "[[rule]]\nname='batch'\nimage='vllm/*'\nlabel='tier'\nhard='2G'\n");
    const Ran told = run({"config", "explain", "vllm"});
    EXPECT_NE(told.out.find("  image vllm/vllm-openai:v1\n  label tier=batch\n"), std::string::npos)
        << told.out;
    EXPECT_NE(told.out.find("): it is not label 'tier=prod'\n"), std::string::npos);
    EXPECT_NE(told.out.find("  hard 2.00 GiB, by rule \"batch\", "), std::string::npos);

    const json document = run_json({"config", "explain", "vllm", "--json"});
    EXPECT_EQ(document["image"], "vllm/vllm-openai:v1");
    EXPECT_EQ(document["labels"], json({"tier=batch"}));
    EXPECT_EQ(document["rule"], "batch");
    EXPECT_EQ(run_json({"config", "explain", "ollama", "--json"})["image"], nullptr);
}

// Users ask before a thing runs.
TEST_F(Config, ExplainsWhatDoesNotRunYet) {
    policy("[[rule]]\nname='models'\nunit='llama'\nhard='1G'\n"
           "[[rule]]\nname='prod'\ncontainer='vllm'\nhard='2G'\n"
           "[[rule]]\nname='pods'\nnamespace='lab'\npod='llm-*'\nhard='3G'\n"
           "[[rule]]\nname='people'\ncgroup='/user.slice/*'\nhard='4G'\n");
    const Ran told = run({"config", "explain", "llama"});
    EXPECT_EQ(told.code, 0) << told.err;
    EXPECT_NE(
        told.out.find("/system.slice/llama.service\n  does not run; this is what it would get, "
                      "at that path\n"),
        std::string::npos)
        << told.out;
    EXPECT_NE(told.out.find("  hard 1.00 GiB, by rule \"models\", "), std::string::npos);
    const auto rule_of = [this](const char *target) {
        return run_json({"config", "explain", target, "--json"})["rule"];
    };
    EXPECT_EQ(rule_of("unit:llama.service"), "models");
    EXPECT_EQ(rule_of("container:vllm"), "prod");
    EXPECT_EQ(rule_of("pod:lab/llm-0"), "pods");
    EXPECT_EQ(rule_of("/user.slice/user-7.slice"), "people");
    EXPECT_EQ(rule_of("vllm"), nullptr) << "it may be a unit";
    EXPECT_EQ(run_json({"config", "explain", "llama", "--json"})["runs"], false);
    EXPECT_EQ(run_json({"config", "explain", "ollama", "--json"})["runs"], true);
    EXPECT_EQ(run({"config", "explain", "pid:999999"}).code, 1);
    EXPECT_EQ(run({"config", "apply", "llama"}).code, 1);
}

TEST_F(Config, AppliesOneRuleToOneCgroup) {
    policy("[[rule]]\nunit='ollama'\nhard='1G'\nview=true\n");
    const Ran applied = run({"config", "apply", "unit:ollama.service"});
    EXPECT_EQ(applied.code, 0) << applied.err;
    ASSERT_EQ(fake_.changes.size(), 1U);
    const auto &set = fake_.changes.front().attributes;
    EXPECT_EQ(test::attribute(set, UMACCT_A_ACCOUNT_ID), ollama_);
    EXPECT_EQ(test::attribute(set, UMACCT_A_ACCOUNT_HARD), 1U << 30);
    EXPECT_EQ(test::attribute(set, UMACCT_A_ACCOUNT_SOFT), std::nullopt);

    policy("");
    const Ran nothing = run({"config", "apply", "ollama"});
    EXPECT_EQ(nothing.code, 0);
    EXPECT_NE(nothing.err.find("no order asks for anything"), std::string::npos);
    EXPECT_EQ(fake_.changes.size(), 1U);
    EXPECT_TRUE(run_json({"config", "apply", "ollama", "--json"})["accounts"].empty());

    loaded_ = false;
    EXPECT_EQ(run({"config", "apply", "ollama"}).code, static_cast<int>(Failure::missing));
}

TEST_F(Config, TellsTheDropInsOfServices) {
    loaded_ = false;
    policy("[[rule]]\nunit='ollama'\nhard='1G'\n"
           "[[rule]]\nunit='llm-*'\nhard='1G'\n"
           "[[rule]]\nunit='vllm@*.service'\nhard='1G'\n"
           "[[rule]]\nunit='ollama.service'\ncgroup='/system.slice/**'\nsoft='1G'\n"
           // Too wide for a folder, no services, and no unit at all.
           "[[rule]]\nunit='a*b.service'\nhard='1G'\n"
           "[[rule]]\nunit='*'\nhard='1G'\n"
           "[[rule]]\nunit='models.slice'\nhard='1G'\n"
           "[[rule]]\ncontainer='web'\nhard='1G'\n");
    EXPECT_EQ(run({"config", "drop-ins"}).out,
              "llm-.service.d\nollama.service.d\nvllm@.service.d\n");
    EXPECT_EQ(run_json({"config", "drop-ins", "--json"})["drop_ins"].size(), 3U);
    policy("nonsense");
    EXPECT_EQ(run({"config", "drop-ins"}).code, 2);
}

TEST_F(Config, SystemdGetsTheTotalOfServices) {
    const std::string service = "cgroup/system.slice/ollama.service";

    policy("[[rule]]\nunit='llm-*'\ntotal='max'\n"
           "[[rule]]\nunit='ollama'\ntotal='25%'\n"
           "[[rule]]\nunit='ollama'\ncgroup='/system.slice/**'\ntotal='1G'\n");
    const std::string expected = "llm-.service.d infinity\nollama.service.d 4294967296\n";
    EXPECT_EQ(run({"config", "drop-ins"}).out, expected);
    sandbox_.add_cgroup("/system.slice/ollama.service");
    sandbox_.write(service + "/memory.max", "max\n");
    EXPECT_NE(run({"config", "explain", "ollama"})
                  .out.find("  total 4.00 GiB: MemoryMax= by systemd; memory.max is max\n"),
              std::string::npos)
        << run({"config", "explain", "ollama"}).out;
    EXPECT_EQ(run_json({"config", "explain", "ollama", "--json"})["total_bytes"], 4ULL << 30);

    // A mistake takes no limit away.
    const auto files = policy_files(sandbox_.root());
    ASSERT_EQ(LastGood(sandbox_.root()).keep(read_texts(files)), 0);
    policy("nonsense");
    EXPECT_EQ(run({"config", "drop-ins"}).out, expected);
}

TEST_F(Config, WrongUsage) {
    EXPECT_EQ(run({"config"}).code, 2);
    EXPECT_EQ(run({"config", "do"}).code, 2);
    EXPECT_EQ(run({"config", "check", "ollama"}).code, 2);
    EXPECT_EQ(run({"config", "explain"}).code, 2);
    EXPECT_EQ(run({"config", "apply"}).code, 2);
    EXPECT_EQ(run({"config", "drop-ins", "ollama"}).code, 2);
    policy("nonsense");
    EXPECT_EQ(run({"config", "explain", "ollama"}).code, 2);
}

TEST_F(Config, ExplainsWhatTheGuardMayDo) {
    sandbox_.add_cgroup("/system.slice/sshd.service");
    policy("[guard]\nfloor = '4G'\nsteps = ['freeze', 'kill']\n");
    EXPECT_NE(run({"config", "explain", "ollama"})
                  .out.find("the guard: where it is to blame: freeze, kill\n"),
              std::string::npos);
    EXPECT_NE(
        run({"config", "explain", "sshd"}).out.find("the guard: it never touches this cgroup\n"),
        std::string::npos);
    policy("[guard]\nfloor = '4G'\nsteps = ['freeze']\ndry_run = true\n");
    EXPECT_EQ(run_json({"config", "explain", "ollama", "--json"})["guard"],
              "it only says what it would do: freeze");
    policy("");
    EXPECT_EQ(run_json({"config", "explain", "ollama", "--json"})["guard"], nullptr);
}

} // namespace
} // namespace umacct
