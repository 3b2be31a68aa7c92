// SPDX-License-Identifier: GPL-2.0-or-later
/// Names from state folders as each runtime makes them.
#include "lib/owners/owners.h"

#include <chrono>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/podman_database.h"
#include "tests/runtime_folders.h"

namespace umacct {
namespace {

using nlohmann::json;
using test::id_of;
using test::pod_slice;
using test::pod_uid;

const std::string pod_folder = "/kubepods/burstable/pod" + pod_uid;

class OwnersTest : public testing::Test, protected test::RuntimeFolders {
protected:
    OwnersTest() : RuntimeFolders(sandbox_) {}

    std::string label(const std::string &path) const {
        const auto owner = Owners(root()).of(path);

        return owner ? owner->label() : "";
    }

    test::Sandbox sandbox_;
};

TEST_F(OwnersTest, WithoutStateFoldersThePathHasToDo) {
    EXPECT_EQ(label("/docker/" + id_of('a')), "docker aaaaaaaaaaaa");
    EXPECT_EQ(label(pod_slice), "pod " + pod_uid);
    EXPECT_EQ(label(pod_slice + "/crio-" + id_of('a') + ".scope"), "cri-o aaaaaaaaaaaa");
    EXPECT_EQ(label("/default/web"), "");
    EXPECT_EQ(label("/system.slice/ollama.service"), "ollama.service");
    EXPECT_FALSE(Owners(root()).nearest("/default/web/x"));
    EXPECT_FALSE(Owners(root()).nearest("no path at all"));
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

TEST_F(OwnersTest, PodmansLabelsAreInItsDatabase) {
    const std::string storage = "var/lib/containers/storage/";
    const auto of = [&](char digit) {
        return Owners(root()).of("/machine.slice/libpod-" + id_of(digit) + ".scope").value();
    };

    add_stored(id_of('b'), "old", storage + "overlay-containers/containers.json");
    for (const char *place : {"libpod/db.sql", "db.sql"}) {
        const std::string name = place == std::string("db.sql") ? "older" : "newer";

        write(storage + place,
              test::podman_database(
                  {{id_of('a'), R"({"name":")" + name +
                                    R"(","rootfsImageName":"localhost/llm","labels":{"a":"b"}})"},
                   {id_of('c'), R"({"name":"other","labels":{"a":"c"}})"}}));
        EXPECT_EQ(of('a').label(), "podman " + name);
        EXPECT_EQ(of('a').image, "localhost/llm");
        EXPECT_EQ(of('a').labels, std::vector<std::string>{"a=b"});
        EXPECT_EQ(of('b').label(), "podman old") << "a database that is no longer in use";
        EXPECT_EQ(of('d').label(), "podman dddddddddddd");
    }
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
    EXPECT_EQ(
        label("/user.slice/user-4242.slice/user@4242.service/libpod-" + id_of('a') + ".scope"),
        "podman aaaaaaaaaaaa");
}

// A user called a scope as root's runtime calls a pod's container: it had that one's name.
TEST_F(OwnersTest, NothingOfAUsersIsNamedByRootsRuntimes) {
    const std::string manager = "/user.slice/user-1000.slice/user@1000.service/";
    const std::string scope = "cri-containerd-" + id_of('a') + ".scope";

    add_containerd("k8s.io", id_of('a'), cri("vllm"));
    add_docker(id_of('b'), "vllm");
    EXPECT_EQ(label(pod_slice + "/" + scope), "containerd prod/llm-0/vllm");
    EXPECT_EQ(label(manager + scope), "containerd aaaaaaaaaaaa");
    EXPECT_EQ(label("/system.slice/x.service/docker/" + id_of('b')), "docker bbbbbbbbbbbb")
        << "made inside of a service";
    EXPECT_EQ(label("/lxc.payload.t/docker/" + id_of('b')), "docker bbbbbbbbbbbb");
    EXPECT_EQ(label("/lxc.payload.t"), "lxc t");
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

TEST_F(OwnersTest, ImagesAndLabels) {
    using Labels = std::vector<std::string>;
    const std::string storage = "var/lib/containers/storage/overlay-containers/";

    add_docker(id_of('a'), "vllm", "vllm/vllm-openai:v1", {{"tier", "batch"}});
    const auto docker = Owners(root()).of("/docker/" + id_of('a'));
    EXPECT_EQ(docker->name, "vllm");
    EXPECT_EQ(docker->image, "vllm/vllm-openai:v1");
    EXPECT_EQ(docker->labels, Labels{"tier=batch"});

    write(storage + "volatile-containers.json",
          json{{{"id", id_of('b')},
                {"names", {"once"}},
                {"metadata", json{{"image-name", "docker.io/library/redis:7"}}.dump()}}}
              .dump());
    const auto podman = Owners(root()).of("/machine.slice/libpod-" + id_of('b') + ".scope");
    EXPECT_EQ(podman->name, "once");
    EXPECT_EQ(podman->image, "docker.io/library/redis:7");

    json annotations = cri("vllm");
    annotations["io.kubernetes.cri.image-name"] = "docker.io/vllm/vllm-openai:v1";
    add_containerd("k8s.io", id_of('c'), annotations);
    const auto containerd =
        Owners(root()).of(pod_slice + "/cri-containerd-" + id_of('c') + ".scope");
    EXPECT_EQ(containerd->image, "docker.io/vllm/vllm-openai:v1");
    EXPECT_EQ(containerd->container, "vllm");
    EXPECT_TRUE(Owners(root()).of(pod_slice)->labels.empty());

    add_sandbox(id_of('d'), {{"app", "llm"}, {"tier", "batch"}});
    write(storage + id_of('e') + "/userdata/config.json",
          json{{"annotations",
                {{"io.kubernetes.cri-o.ImageName", "quay.io/a/vllm:v1"},
                 {"io.kubernetes.cri-o.Labels", json{{"own", "x"}}.dump()}}}}
              .dump());
    EXPECT_EQ(Owners(root()).of(pod_slice)->labels, (Labels{"app=llm", "tier=batch"}));
    const auto crio = Owners(root()).of(pod_slice + "/crio-" + id_of('e') + ".scope");
    EXPECT_EQ(crio->image, "quay.io/a/vllm:v1");
    EXPECT_EQ(crio->labels, (Labels{"own=x", "app=llm", "tier=batch"}));
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
    add_docker(id_of('a'), std::string(17U << 20, 'x'));
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

    const std::string pod_container = pod_slice + "/" + id_of('c');

    add_docker(id_of('a'), "before");
    add_containerd("default", "web", json::object(), "/default/web");
    write("var/log/pods/prod_llm-0_" + pod_uid + "/x", "");
    write("var/log/containers/llm-0_prod_vllm-" + id_of('c') + ".log", "");
    EXPECT_EQ(owners.of(path)->name, "before");
    EXPECT_TRUE(owners.of("/default/web"));
    EXPECT_EQ(owners.of(pod_slice)->pod, "llm-0");
    EXPECT_EQ(owners.of(pod_container)->container, "vllm");
    std::filesystem::remove_all(root() / "var");
    std::filesystem::remove_all(root() / "run");
    EXPECT_EQ(owners.of(path)->name, "before");
    owners.refresh();
    EXPECT_EQ(owners.of(path)->name, "");
    EXPECT_FALSE(owners.of("/default/web"));
    EXPECT_EQ(owners.of(pod_slice)->pod, "");
    EXPECT_EQ(owners.of(pod_container)->container, "");
}

// A user's file there once exhausted the stack of root's tool, or took a minute of its time.
TEST_F(OwnersTest, AUserCanNeitherStopNorSlowTheTool) {
    const std::string user = std::to_string(getuid() == 0 ? 1000 : getuid());
    const std::string place =
        "/user.slice/user-" + user + ".slice/user@" + user + ".service/libpod-";
    const std::string docker =
        "/user.slice/user-" + user + ".slice/user@" + user + ".service/docker-";
    const std::string file =
        "home/u/.local/share/containers/storage/overlay-containers/containers.json";
    const auto start = std::chrono::steady_clock::now();
    std::string flat = "[{}";

    for (int i = 0; i < 2'000'000; ++i)
        flat += ",{}";
    write("etc/passwd", "u:x:" + user + ":0::/home/u:/bin/sh\n");
    for (const std::string &text : {std::string(8U << 20, '['), flat + "]"}) {
        write(file, text);
        ASSERT_TRUE(getuid() != 0 || chown((root() / file).c_str(), 1000, 1000) == 0);
        EXPECT_EQ(label(place + id_of('a') + ".scope"), "podman aaaaaaaaaaaa");
    }

    Owners owners(root());
    for (int i = 0; i < 3000; ++i)
        owners.of(docker + fmt::format("{:064x}", i) + ".scope");
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(8));
}

TEST_F(OwnersTest, WhatDidNotChangeIsNotReadAgain) {
    Owners owners(root());

    for (int i = 0; i < 40; ++i)
        add_docker(fmt::format("{:064x}", i), fmt::format("c{}", i));
    for (int refreshed = 0; refreshed < 3; ++refreshed) {
        for (int i = 0; i < 40; ++i)
            EXPECT_EQ(owners.of(fmt::format("/docker/{:064x}", i))->name, fmt::format("c{}", i));
        EXPECT_EQ(owners.files().children(), 40U);
        owners.refresh();
    }
}

TEST_F(OwnersTest, ThousandsOfContainersTakeNoTime) {
    constexpr int count = 3000;
    json stored = json::array();
    Owners owners(root());
    const auto id = [](int i) { return fmt::format("{:064x}", i); };

    for (int i = 0; i < count; ++i)
        stored.push_back({{"id", id(i)},
                          {"names", {fmt::format("c{}", i)}},
                          {"metadata", std::string(300, 'm')}});
    write("var/lib/containers/storage/overlay-containers/containers.json", stored.dump());

    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i)
        EXPECT_EQ(owners.of("/machine.slice/libpod-" + id(i) + ".scope")->name,
                  fmt::format("c{}", i));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

} // namespace
} // namespace umacct
