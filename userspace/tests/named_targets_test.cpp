// SPDX-License-Identifier: GPL-2.0-or-later
/// The tool and names from runtimes.
#include <gtest/gtest.h>

#include "tests/runtime_folders.h"
#include "tests/tool_fixture.h"

namespace umacct {
namespace {

using nlohmann::json;
using test::id_of;
using test::pod_slice;
using test::pod_uid;
using test::Ran;

class NamedTargets : public test::ToolFixture, protected test::RuntimeFolders {
protected:
    using ToolFixture::sandbox_;

    NamedTargets() : RuntimeFolders(sandbox_) {
        add_docker(id_of('a'), "vllm");
        add_docker(id_of('c'), "ollama");
        add_containerd("k8s.io", id_of('b'), cri("server"));
        add_containerd("k8s.io", id_of('d'), cri("side"));
        add_containerd("default", "web", json::object(), "/default/web");
        write("var/log/pods/prod_llm-0_" + pod_uid + "/x", "");
        add_account(docker_, 100);
        add_account("/docker/" + id_of('c'), 1);
        add_account("/system.slice/ollama.service", 1);
        add_account(pod_slice, 300);
        add_account(server_, 200);
        add_account(pod_slice + "/cri-containerd-" + id_of('d') + ".scope", 1);
        add_account("/default/web", 50);
    }

    /// Makes an account for each cgroup, with that many MiB.
    void add_account(const std::string &path, std::uint64_t mib) {
        Account account;

        account.id = sandbox_.add_cgroup(path);
        account.path = path;
        account.level = 1;
        account.usage = account.local = account.peak = mib << 20;
        fake_.accounts.push_back(account);
    }

    /// The path of what TARGET names, or the error.
    std::string shown(const char *target) {
        const Ran ran = run({"show", "--json", target});

        return ran.code == 0 ? json::parse(ran.out)["account"]["path"].get<std::string>() : ran.err;
    }

    const std::string docker_ = "/system.slice/docker-" + id_of('a') + ".scope";
    const std::string server_ = pod_slice + "/cri-containerd-" + id_of('b') + ".scope";
};

TEST_F(NamedTargets, AreFoundByName) {
    EXPECT_EQ(shown("vllm"), docker_);
    EXPECT_EQ(shown("web"), "/default/web");
    EXPECT_EQ(shown("prod/llm-0"), pod_slice);
    EXPECT_EQ(shown("llm-0"), pod_slice);
    EXPECT_EQ(shown("prod/llm-0/server"), server_);
    EXPECT_EQ(shown("server"), server_);
    EXPECT_EQ(shown("aaaa"), docker_);
    EXPECT_NE(shown("prod").find("there is no such cgroup"), std::string::npos);
    EXPECT_NE(shown("prod/llm-0/").find("there is no such cgroup"), std::string::npos);
    EXPECT_NE(shown("vll").find("there is no such cgroup"), std::string::npos);
    add_containerd("default", "website", json::object(), "/default/website");
    add_account("/default/website", 1);
    EXPECT_NE(shown("webs").find("there is no such cgroup"), std::string::npos);
}

TEST_F(NamedTargets, AreListedWhenThereAreSeveral) {
    EXPECT_EQ(shown("ollama"), "/system.slice/ollama.service") << "a unit comes first";
    EXPECT_EQ(shown("container:ollama"), "/docker/" + id_of('c'));
    EXPECT_EQ(shown("ollama.service"), "/system.slice/ollama.service");
    add_containerd("default", "vllm", json::object(), "/default/vllm");
    add_account("/default/vllm", 1);
    EXPECT_NE(shown("vllm").find("(containerd vllm)"), std::string::npos);
    EXPECT_NE(shown("vllm").find("(docker vllm)"), std::string::npos);
    EXPECT_NE(shown("vllm").find("names 2 cgroups"), std::string::npos);
    EXPECT_EQ(run({"limit", "vllm", "--hard", "1G"}).code, 1);
    EXPECT_TRUE(fake_.changes.empty());
}

TEST_F(NamedTargets, ANameComesBeforeTheBeginningOfAnIdButNotBeforeAWholeOne) {
    add_docker(id_of('c'), id_of('a').substr(0, 12));
    EXPECT_EQ(shown("aaaaaaaaaaaa"), "/docker/" + id_of('c'));
    add_docker(id_of('c'), id_of('a'));
    EXPECT_EQ(shown(id_of('a').c_str()), docker_);
}

TEST_F(NamedTargets, AreNamedInEveryList) {
    const std::string tree = run({"ls"}).out;
    EXPECT_NE(tree.find("\ndocker vllm "), std::string::npos) << tree;
    EXPECT_NE(tree.find("\npod prod/llm-0 "), std::string::npos) << tree;
    EXPECT_NE(run({"ls", "--flat"}).out.find("\ncontainerd prod/llm-0/server "), std::string::npos);
    EXPECT_NE(run({"show", "vllm"}).out.find("(docker vllm, id " + id_of('a') + ")"),
              std::string::npos);
    EXPECT_NE(run({"limit", "vllm", "--hard", "1G"})
                  .out.find("docker vllm (" + docker_ + "): hard limit "),
              std::string::npos)
        << "what was changed is the path, whoever has the name";
    EXPECT_NE(run({"limit", "vllm"}).out.find("\ndocker vllm "), std::string::npos);
    EXPECT_NE(run({"charge"}).out.find("\ncontainerd web "), std::string::npos);
    EXPECT_NE(run({}).out.find("docker vllm"), std::string::npos);
    EXPECT_NE(run({"audit"}).out.find("\ncontainerd web "), std::string::npos);
}

TEST_F(NamedTargets, AreOwnersInJson) {
    const json all = run_json({"ls", "--json", "--flat", "--sort", "usage"})["accounts"];

    EXPECT_EQ(all[1]["owner"], (json{{"kind", "container"},
                                     {"runtime", "containerd"},
                                     {"id", id_of('b')},
                                     {"name", "prod/llm-0/server"},
                                     {"container_id", id_of('b')},
                                     {"namespace", "prod"},
                                     {"pod", "llm-0"},
                                     {"container", "server"}}));
    EXPECT_EQ(all[0]["owner"]["name"], "prod/llm-0");
    EXPECT_EQ(all[0]["owner"]["container_id"], nullptr);
    EXPECT_EQ(all[2]["owner"]["name"], "vllm");
    EXPECT_EQ(all[2]["owner"]["pod"], nullptr);
}

TEST_F(NamedTargets, GetTheirLimits) {
    EXPECT_EQ(run({"limit", "prod/llm-0/server", "--hard", "1G"}).code, 0);
    ASSERT_EQ(fake_.changes.size(), 1U);
    EXPECT_EQ(test::attribute(fake_.changes[0].attributes, UMACCT_A_ACCOUNT_ID),
              sandbox_.add_cgroup(server_));
}

} // namespace
} // namespace umacct
