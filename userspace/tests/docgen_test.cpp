// SPDX-License-Identifier: GPL-2.0-or-later
/// The manual and the completions, and what they are made from.
#include <sstream>

#include "docgen/completions.h"
#include "docgen/interface.h"
#include "docgen/manual.h"
#include "tests/tool_fixture.h"

namespace umacct {
namespace {

using namespace docgen;

class Docgen : public test::ToolFixture {
protected:
    Docgen()
        : context_({.connect = [this] { return connect(); },
                    .proc = sandbox_.proc(),
                    .out = out_,
                    .err = out_,
                    .root = sandbox_.proc().parent_path()}),
          interface_(read_interface(*tool::make_app(context_))) {}

    const Verb &verb(const std::string &name) const {
        for (const Verb &each : interface_.verbs) {
            if (each.name == name)
                return each;
        }
        throw std::runtime_error("no verb " + name);
    }

    static Kind kind_of(const std::vector<Argument> &arguments, const std::string &name) {
        for (const Argument &argument : arguments) {
            if (argument.names.back() == name)
                return argument.kind;
        }
        throw std::runtime_error("no argument " + name);
    }

    std::ostringstream out_;
    tool::Context context_;
    Interface interface_;
};

TEST_F(Docgen, TheInterfaceIsAsTheParserHasIt) {
    EXPECT_EQ(kind_of(verb("show").positionals, "TARGET"), Kind::target);
    EXPECT_EQ(kind_of(verb("charge").positionals, "MODE"), Kind::words);
    EXPECT_EQ(verb("charge").positionals[0].words,
              (std::vector<std::string>{"on", "off", "inherit"}));
    EXPECT_EQ(kind_of(verb("run").positionals, "CMD"), Kind::command);
    EXPECT_EQ(kind_of(verb("audit").options, "--svg"), Kind::file);
    EXPECT_EQ(kind_of(verb("ls").options, "--sort"), Kind::words);
    EXPECT_EQ(kind_of(verb("ls").options, "--all"), Kind::flag);
    EXPECT_EQ(kind_of(verb("limit").options, "--hard"), Kind::text);
    EXPECT_TRUE(verb("show").positionals[0].required);
    EXPECT_FALSE(verb("ls").positionals[0].required);
    EXPECT_EQ(interface_.tool.exit_codes.size(), 5U);
    EXPECT_EQ(interface_.tool.exit_codes[3], "3 module or driver missing");
    EXPECT_THROW(verb("complete-targets"), std::runtime_error);
    for (const Verb &each : interface_.verbs) {
        EXPECT_FALSE(each.examples.empty()) << each.name;
        EXPECT_FALSE(each.paragraphs.empty()) << each.name;
    }
}

TEST_F(Docgen, TextIsNoRequestOfRoffs) {
    EXPECT_EQ(roff(".SH x"), "\\&.SH x");
    EXPECT_EQ(roff("'x'"), "\\&\\(aqx\\(aq");
    EXPECT_EQ(roff("a\\b-c ~^`\""), "a\\eb\\-c \\(ti\\(ha\\(ga\\(dq");
}

TEST_F(Docgen, ThePageOfAVerb) {
    print_manual(out_, interface_, verb("ls"), {.version = "1.2.3", .date = "2026-01-02"});
    const std::string page = out_.str();

    EXPECT_NE(page.find(".TH UMACCT\\-LS 1 2026-01-02 \"umacct 1.2.3\""), std::string::npos)
        << page;
    EXPECT_NE(page.find("\n\\fB\\-a\\fR, \\fB\\-\\-all\\fR\n"), std::string::npos) << page;
    EXPECT_NE(page.find("Default: usage."), std::string::npos) << page;
}

class CompleteTargets : public Docgen {
protected:
    CompleteTargets() {
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

    const std::string id_ = std::string(64, 'a');
};

TEST_F(CompleteTargets, NamesAndAccountsFirst) {
    EXPECT_EQ(run({"complete-targets"}).out, "/docker/plain\tcgroup\n"
                                             "ollama.service\tunit\n"
                                             "system.slice\tunit\n"
                                             "vllm\tdocker\n");
    EXPECT_EQ(run({"complete-targets", "--", "vl"}).out, "vllm\tdocker\n");
    EXPECT_EQ(run({"complete-targets", "--", "aaa"}).out, id_ + "\tcontainer\n");
    EXPECT_EQ(run({"complete-targets", "--", "-x"}).out, "");
}

TEST_F(CompleteTargets, PathsForWhoBeginsOne) {
    EXPECT_EQ(run({"complete-targets", "--", "/docker/p"}).out, "/docker/plain\tcgroup\n");
    EXPECT_EQ(run({"complete-targets", "--", "/it"}).out, "");
}

TEST_F(CompleteTargets, NeverComplains) {
    loaded_ = false;
    EXPECT_EQ(run({"complete-targets", "--", "vl"}).out, "vllm\tdocker\n");
    std::filesystem::remove_all(sandbox_.proc());
    const test::Ran ran = run({"complete-targets"});
    EXPECT_EQ(ran.code, 0);
    EXPECT_EQ(ran.out + ran.err, "");
}

TEST_F(CompleteTargets, IsNotShown) {
    EXPECT_EQ(run({"--help"}).out.find("complete-targets"), std::string::npos);
}

} // namespace
} // namespace umacct
