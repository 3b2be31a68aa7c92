// SPDX-License-Identifier: GPL-2.0-or-later
/// Completions that a shell gets.
#include "tests/tool_fixture.h"

namespace umacct {
namespace {

class Complete : public test::ToolFixture {
protected:
    Complete() {
        Account account;

        for (const char *path : {"/system.slice/ollama.service", "/docker/plain", "/it's; rm"})
            sandbox_.add_cgroup(path);
        sandbox_.add_cgroup("/docker/" + id_);
        sandbox_.write("var/lib/docker/containers/" + id_ + "/config.v2.json",
                       R"({"Name":"/vllm"})");
        account.path = "/docker/plain";
        account.usage = 1;
        fake_.accounts = {account};
    }

    /// The words alone, after those.
    std::string after(std::vector<const char *> words) {
        words.insert(words.begin(), {"complete", "--"});

        std::istringstream lines(run(words).out);
        std::string found;
        for (std::string line; std::getline(lines, line);)
            found += (found.empty() ? "" : " ") + line.substr(0, line.find('\t'));
        return found;
    }

    const std::string id_ = std::string(64, 'a');
};

TEST_F(Complete, VerbsAndTheirOptions) {
    EXPECT_EQ(after({"doc"}), "doctor");
    EXPECT_EQ(after({"help", "ve"}), "verify");
    EXPECT_EQ(after({"--js"}), "--json");
    EXPECT_EQ(after({"-j", "he"}), "headroom");
    EXPECT_EQ(after({"limit", "vllm", "--thr"}), "--throttle");
    EXPECT_EQ(after({"ls", "--a"}), "--all");
    EXPECT_EQ(after({"nothing", ""}), "");
    EXPECT_EQ(after({""}).find("complete"), std::string::npos);
}

TEST_F(Complete, ValuesOfOptions) {
    EXPECT_EQ(after({"ls", "--sort", "unch"}), "uncharged");
    EXPECT_EQ(after({"ls", "-o", "usage,refu"}), "usage,refusals");
    EXPECT_EQ(after({"ls", "-o", "+refu"}), "+refusals");
    EXPECT_EQ(after({"ps", "--sort", "har"}), "");
    EXPECT_EQ(after({"audit", "--diff", ""}), ":file");
    EXPECT_EQ(after({"config", "load", ""}), ":file");
    EXPECT_EQ(after({"history", "--html", ""}), ":file");
    EXPECT_EQ(after({"limit", "--hard", ""}), "");
}

TEST_F(Complete, TargetsByNameFirst) {
    EXPECT_EQ(run({"complete", "--", "show", ""}).out, "/docker/plain\tcgroup\n"
                                                       "guard\tumacctd's guard\n"
                                                       "ollama.service\tunit\n"
                                                       "system.slice\tunit\n"
                                                       "vllm\tdocker\n");
    EXPECT_EQ(after({"limit", "--hard", "1G", "vl"}), "vllm");
    EXPECT_EQ(after({"ls", "aaa"}), id_);
    EXPECT_EQ(after({"show", "vllm", ""}), "");
    EXPECT_EQ(after({"show", "/docker/p"}), "/docker/plain");
    EXPECT_EQ(after({"show", "/it"}), "");
    EXPECT_EQ(after({"charge", "o"}), "off ollama.service on");
    EXPECT_EQ(after({"charge", "vllm", "inh"}), "inherit");
}

TEST_F(Complete, SettingsByNameAndByWhatTheyTake) {
    EXPECT_EQ(after({"set", "mach"}), "machine");
    EXPECT_EQ(after({"set", "vllm", ""}), "charge= hard= keep= soft= throttle= total= view=");
    EXPECT_EQ(after({"set", "vllm", "hard=1G", "view=on", "h"}), "");
    EXPECT_EQ(after({"set", "machine", "re"}), "reserve=");
    EXPECT_EQ(after({"set", "vllm", "re"}), "");
    EXPECT_EQ(after({"set", "vllm", "hard="}), "hard=max hard=none");
    EXPECT_EQ(after({"set", "vllm", "charge=o"}), "charge=off charge=on");
    EXPECT_EQ(after({"set", "vllm", "hard=1G", "view="}), "view=none view=off view=on");
}

TEST_F(Complete, TheCommandIsTheShells) {
    EXPECT_EQ(after({"run", ""}), ":command 1");
    EXPECT_EQ(after({"run", "--hard", "1G", "--", "ma"}), ":command 4");
    EXPECT_EQ(after({"run", "--hard", "1G", "make", "-j"}), ":command 3");
    EXPECT_EQ(after({"run", "--har"}), "--hard");
    EXPECT_EQ(after({"run", "--report", ""}), ":file");
}

TEST_F(Complete, NeverComplains) {
    loaded_ = false;
    EXPECT_EQ(after({"show", "vl"}), "vllm");
    std::filesystem::remove_all(sandbox_.proc());
    for (const auto &words : std::vector<std::vector<const char *>>{
             {"complete"}, {"complete", "--"}, {"complete", "--", "show", ""}}) {
        const test::Ran ran = run(words);

        EXPECT_EQ(ran.code, 0);
        EXPECT_EQ(ran.err, "");
    }
}

TEST_F(Complete, IsNotShown) {
    EXPECT_EQ(run({"--help"}).out.find("complete"), std::string::npos);
}

} // namespace
} // namespace umacct
