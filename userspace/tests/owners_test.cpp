// SPDX-License-Identifier: GPL-2.0-or-later
/// Names from state folders as each runtime makes them, and what the tool does with them.
#include "lib/owners/owners.h"

#include <chrono>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/tool_fixture.h"

namespace umacct {
namespace {

using nlohmann::json;
using test::Ran;

std::string id_of(char digit) {
    return std::string(63, digit) + '0';
}

const std::string pod_uid = "8d1e7b0c-3f5a-4c6e-9b2d-0123456789ab";
const std::string pod_slice = "/kubepods.slice/kubepods-burstable.slice/"
                              "kubepods-burstable-pod8d1e7b0c_3f5a_4c6e_9b2d_0123456789ab.slice";
const std::string pod_folder = "/kubepods/burstable/pod" + pod_uid;

class OwnersTest : public test::ToolFixture {
protected:
    std::filesystem::path root() const { return sandbox_.proc().parent_path(); }

    void write(const std::string &file, const std::string &text) const {
        sandbox_.write(file, text);
    }

    void add_docker(const std::string &id, const std::string &name,
                    const std::string &folder = "var/lib/docker") const {
        write(folder + "/containers/" + id + "/config.v2.json",
              R"({"ID":")" + id + R"(","Name":"/)" + name + R"("})");
    }

    void add_stored(const std::string &id, const std::string &name, const std::string &file) const {
        write(file, R"([{"id":")" + id + R"(","names":[")" + name + R"("]}])");
    }

    void add_containerd(const std::string &name_space, const std::string &id,
                        const json &annotations, const std::string &cgroup = "") const {
        write("run/containerd/io.containerd.runtime.v2.task/" + name_space + "/" + id +
                  "/config.json",
              json{{"annotations", annotations}, {"linux", {{"cgroupsPath", cgroup}}}}.dump());
    }

    static json cri(const std::string &container) {
        return {{"io.kubernetes.cri.container-type", "container"},
                {"io.kubernetes.cri.container-name", container},
                {"io.kubernetes.cri.sandbox-name", "llm-0"},
                {"io.kubernetes.cri.sandbox-namespace", "prod"}};
    }

    std::string label(const std::string &path) const {
        const auto owner = Owners(root()).of(path);

        return owner ? owner->label() : "";
    }

    /// An account for each cgroup, with so many MiB.
    void add_account(const std::string &path, std::uint64_t mib) {
        Account account;

        account.id = sandbox_.add_cgroup(path);
        account.path = path;
        account.level = 1;
        account.usage = account.own = account.peak = mib << 20;
        fake_.accounts.push_back(account);
    }
};

TEST_F(OwnersTest, WithoutStateFoldersThePathHasToDo) {
    EXPECT_EQ(label("/docker/" + id_of('a')), "docker aaaaaaaaaaaa");
    EXPECT_EQ(label(pod_slice), "pod " + pod_uid);
    EXPECT_EQ(label(pod_slice + "/crio-" + id_of('a') + ".scope"), "cri-o aaaaaaaaaaaa");
    EXPECT_EQ(label("/default/web"), "");
    EXPECT_EQ(label("/system.slice/ollama.service"), "ollama.service");
    EXPECT_FALSE(Owners(root()).nearest("/default/web/x"));
}

TEST_F(OwnersTest, Docker) {
    add_docker(id_of('a'), "vllm");
    add_docker(id_of('b'), "moved", "data");
    add_docker(id_of('c'), "mine", "home/u/.local/share/docker");
    write("etc/docker/daemon.json", R"({"data-root":"/data"})");
    write("etc/passwd", "u:x:" + std::to_string(getuid()) + ":0::/home/u:/bin/sh\n");

    EXPECT_EQ(label("/system.slice/docker-" + id_of('a') + ".scope"), "docker vllm");
    EXPECT_EQ(label("/docker/" + id_of('a')), "docker vllm");
    EXPECT_EQ(label("/docker/" + id_of('b')), "docker moved");
    EXPECT_EQ(label("/docker/" + id_of('c')), "docker cccccccccccc");
    EXPECT_EQ(Owners(root()).nearest("/docker/" + id_of('a') + "/x/y")->label(), "docker vllm");
}

TEST_F(OwnersTest, Podman) {
    add_stored(id_of('a'), "vllm", "var/lib/containers/storage/overlay-containers/containers.json");
    add_stored(id_of('b'), "once",
               "var/lib/containers/storage/vfs-containers/volatile-containers.json");

    EXPECT_EQ(label("/machine.slice/libpod-" + id_of('a') + ".scope"), "podman vllm");
    EXPECT_EQ(label("/libpod_parent/libpod-" + id_of('b')), "podman once");

    write("etc/containers/storage.conf", "[storage]\ngraphroot = \"/data/storage\"\n");
    add_stored(id_of('a'), "moved", "data/storage/btrfs-containers/containers.json");
    EXPECT_EQ(label("/machine.slice/libpod-" + id_of('a') + ".scope"), "podman moved");
}

// The files are ours, so a user other than us and not root is not believed.
TEST_F(OwnersTest, RootlessContainersAreNamedByTheirUsersOwnFiles) {
    const std::string user = std::to_string(getuid() == 0 ? 1000 : getuid());
    const std::string place =
        "/user.slice/user-" + user + ".slice/user@" + user + ".service/user.slice/";

    write("etc/passwd", "u:x:" + user + ":0::/home/u:/bin/sh\n");
    add_stored(id_of('a'), "mine",
               "home/u/.local/share/containers/storage/overlay-containers/containers.json");
    add_docker(id_of('b'), "mine", "home/u/.local/share/docker");
    add_docker(id_of('b'), "not-mine");
    if (getuid() == 0) {
        EXPECT_EQ(label(place + "libpod-" + id_of('a') + ".scope"), "podman aaaaaaaaaaaa");
        for (const auto &entry : std::filesystem::recursive_directory_iterator(root() / "home"))
            ASSERT_EQ(chown(entry.path().c_str(), 1000, 1000), 0);
    }
    EXPECT_EQ(label(place + "libpod-" + id_of('a') + ".scope"), "podman mine");
    EXPECT_EQ(label(place + "docker-" + id_of('b') + ".scope"), "docker mine");
    EXPECT_EQ(label("/user.slice/user@4242.service/libpod-" + id_of('a') + ".scope"),
              "podman aaaaaaaaaaaa");
}

TEST_F(OwnersTest, ContainerdBelowKubernetes) {
    add_containerd("k8s.io", id_of('a'), cri("vllm"));
    write("var/log/pods/prod_llm-0_" + pod_uid + "/x", "");

    EXPECT_EQ(label(pod_slice), "pod prod/llm-0");
    EXPECT_EQ(label(pod_folder), "pod prod/llm-0");
    EXPECT_EQ(label(pod_slice + "/cri-containerd-" + id_of('a') + ".scope"),
              "containerd prod/llm-0/vllm");
    EXPECT_EQ(label(pod_folder + "/" + id_of('a')), "containerd prod/llm-0/vllm");

    const auto unknown = Owners(root()).of(pod_folder + "/" + id_of('b'));
    EXPECT_EQ(unknown->label(), "kubernetes bbbbbbbbbbbb");
    EXPECT_EQ(unknown->pod, "llm-0");
    EXPECT_EQ(unknown->container, "");
}

TEST_F(OwnersTest, TheKubeletsLogsNameWhatTheRuntimeHides) {
    write("var/log/containers/llm-0_prod_vllm-" + id_of('a') + ".log", "");

    EXPECT_EQ(label(pod_slice + "/cri-containerd-" + id_of('a') + ".scope"),
              "containerd prod/llm-0/vllm");
    EXPECT_EQ(label(pod_slice + "/crio-" + id_of('a') + ".scope"), "cri-o prod/llm-0/vllm");
    EXPECT_EQ(label(pod_slice + "/docker-" + id_of('a') + ".scope"), "docker prod/llm-0/vllm");
}

TEST_F(OwnersTest, CriO) {
    const std::string folder = "var/lib/containers/storage/overlay-containers/";

    write(folder + id_of('a') + "/userdata/config.json",
          json{{"annotations",
                {{"io.kubernetes.container.name", "vllm"},
                 {"io.kubernetes.pod.name", "llm-0"},
                 {"io.kubernetes.pod.namespace", "prod"}}}}
              .dump());
    add_stored(id_of('b'), "k8s_side_llm-0_prod_" + pod_uid + "_0",
               folder + "volatile-containers.json");

    EXPECT_EQ(label(pod_slice + "/crio-" + id_of('a') + ".scope"), "cri-o prod/llm-0/vllm");
    EXPECT_EQ(label(pod_folder + "/crio-" + id_of('b')), "cri-o prod/llm-0/side");
    EXPECT_EQ(label(pod_folder + "/crio-conmon-" + id_of('b')), "");
}

TEST_F(OwnersTest, ContainerdByItself) {
    add_containerd("default", "web", json::object(), "/default/web");
    add_containerd("jobs", id_of('a'), {{"nerdctl/name", "trainer"}}, "/jobs/" + id_of('a'));
    add_containerd("default", id_of('b'), {{"nerdctl/name", "scoped"}},
                   "system.slice:nerdctl:" + id_of('b'));
    add_containerd("default", "odd", json::object(), "/");

    EXPECT_EQ(label("/default/web"), "containerd web");
    EXPECT_EQ(label("/jobs/" + id_of('a')), "containerd trainer");
    EXPECT_EQ(label("/system.slice/nerdctl-" + id_of('b') + ".scope"), "containerd scoped");
    EXPECT_EQ(label("/"), "");
    EXPECT_EQ(label("/default"), "");
}

TEST_F(OwnersTest, BrokenFilesAndFoldersAreAsIfTheyWereNotThere) {
    const std::string docker = "/docker/" + id_of('a');

    write("var/lib/docker/containers/" + id_of('a') + "/config.v2.json", "{\"Name\":");
    EXPECT_EQ(label(docker), "docker aaaaaaaaaaaa");
    add_docker(id_of('a'), std::string(2U << 20, 'x'));
    EXPECT_EQ(label(docker), "docker aaaaaaaaaaaa");

    write("run/containerd/io.containerd.runtime.v2.task", "a file");
    write("var/log/pods", "a file");
    write("var/lib/containers/storage/overlay-containers/containers.json/x", "a folder");
    EXPECT_EQ(label("/default/web"), "");
    EXPECT_EQ(label(pod_slice), "pod " + pod_uid);
    EXPECT_EQ(label("/machine.slice/libpod-" + id_of('a') + ".scope"), "podman aaaaaaaaaaaa");
}

TEST_F(OwnersTest, WhatWasReadIsKeptUntilRefreshed) {
    Owners owners(root());
    const std::string path = "/docker/" + id_of('a');

    add_docker(id_of('a'), "before");
    EXPECT_EQ(owners.of(path)->name, "before");
    std::filesystem::remove_all(root() / "var");
    EXPECT_EQ(owners.of(path)->name, "before");
    owners.refresh();
    EXPECT_EQ(owners.of(path)->name, "");
}

TEST_F(OwnersTest, ThousandsOfContainersTakeNoTime) {
    constexpr int count = 3000;
    json stored = json::array();
    Owners owners(root());
    const auto id = [](int i) { return fmt::format("{:064x}", i); };

    for (int i = 0; i < count; ++i)
        stored.push_back({{"id", id(i)},
                          {"names", {fmt::format("c{}", i)}},
                          {"metadata", std::string(1000, 'm')}});
    write("var/lib/containers/storage/overlay-containers/containers.json", stored.dump());

    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i)
        EXPECT_EQ(owners.of("/machine.slice/libpod-" + id(i) + ".scope")->name,
                  fmt::format("c{}", i));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

// --- what the tool does with the names ------------------------------------------

class NamedTargets : public OwnersTest {
protected:
    NamedTargets() {
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
    const std::string refusal = shown("ollama");

    EXPECT_NE(refusal.find("names 2 cgroups"), std::string::npos) << refusal;
    EXPECT_NE(refusal.find("/system.slice/ollama.service"), std::string::npos) << refusal;
    EXPECT_NE(refusal.find("(docker ollama)"), std::string::npos) << refusal;
    EXPECT_EQ(shown("ollama.service"), "/system.slice/ollama.service");
    add_containerd("default", "vllm", json::object(), "/default/vllm");
    add_account("/default/vllm", 1);
    EXPECT_NE(shown("vllm").find("(containerd vllm)"), std::string::npos);
    EXPECT_NE(shown("vllm").find("(docker vllm)"), std::string::npos);
    EXPECT_EQ(run({"limit", "ollama", "--hard", "1G"}).code, 1);
    EXPECT_TRUE(fake_.changes.empty());
}

TEST_F(NamedTargets, ANameThatLooksLikeAnIdIsAmbiguousButAFullIdIsNot) {
    add_docker(id_of('c'), id_of('a').substr(0, 12));
    EXPECT_NE(shown("aaaaaaaaaaaa").find("names 2 cgroups"), std::string::npos);
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
    EXPECT_EQ(
        AttributeReader(fake_.changes[0].attributes, UMACCT_A_ACCOUNT_MAX).u64(UMACCT_A_ACCOUNT_ID),
        sandbox_.add_cgroup(server_));
}

} // namespace
} // namespace umacct
