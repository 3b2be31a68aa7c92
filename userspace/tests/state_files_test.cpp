// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/owners/state_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/sandbox.h"

namespace umacct {
namespace {

const std::string id = "4f5a9c0b7d1e2f3a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9001ab";

std::string quoted(const std::string &text) {
    return '"' + text + '"';
}

TEST(StateFiles, DockersNameIsWithoutItsSlash) {
    EXPECT_EQ(docker_name(R"({"State":{"Running":true,"Name":"no"},"ID":"x","Name":"/vllm"})"),
              "vllm");
    EXPECT_EQ(docker_name(R"({"Name":7})"), "");
    EXPECT_EQ(docker_name(R"({"Config":{"Name":"/inner"}})"), "");
    EXPECT_EQ(docker_data_root(R"({"data-root":"/data/docker","debug":true})"), "/data/docker");
    EXPECT_EQ(docker_data_root("[]"), "");
}

TEST(StateFiles, ContainersJsonHasManyContainers) {
    const std::string other(64, 'b');
    const auto names = storage_names(
        R"([{"id":)" + quoted(id) +
        R"(,"names":["vllm","second"],"image":"x","metadata":"{\"id\":\"y\"}","flags":{"a":[1]}},)" +
        R"({"id":)" + quoted(other) + R"(,"layer":"z"},{"id":"short","names":["n"]},7,null])");

    EXPECT_EQ(names.size(), 1U);
    EXPECT_EQ(names.at(id), "vllm");
}

TEST(StateFiles, StorageConfMayMoveTheContainers) {
    EXPECT_EQ(storage_graphroot("[storage]\ndriver = \"vfs\"\n  graphroot = \"/data/c\" # x\n"),
              "/data/c");
    EXPECT_EQ(storage_graphroot("graphroot='/data/c'"), "/data/c");
    EXPECT_EQ(storage_graphroot("# graphroot = \"/data/c\"\n"), "");
    EXPECT_EQ(storage_graphroot("graphroot_old = \"/data/c\"\ngraphroot = \"/open"), "");
    EXPECT_EQ(storage_graphroot("graphroot"), "");
}

TEST(StateFiles, AnnotationsTellThePod) {
    const auto containerd = runtime_spec(R"({"linux":{"cgroupsPath":"/a/b","seccomp":{}},
        "annotations":{"io.kubernetes.cri.container-name":"vllm",
        "io.kubernetes.cri.container-type":"container",
        "io.kubernetes.cri.sandbox-name":"llm-0","io.kubernetes.cri.sandbox-namespace":"prod"}})");
    ASSERT_TRUE(containerd && containerd->kube_name());
    EXPECT_EQ(containerd->cgroups_path, "/a/b");
    EXPECT_EQ(containerd->kube_name()->name_space, "prod");
    EXPECT_EQ(containerd->kube_name()->pod, "llm-0");
    EXPECT_EQ(containerd->kube_name()->container, "vllm");

    const auto sandbox = runtime_spec(R"({"annotations":{
        "io.kubernetes.cri.container-type":"sandbox","io.kubernetes.cri.sandbox-name":"llm-0",
        "io.kubernetes.cri.sandbox-namespace":"prod"}})");
    EXPECT_EQ(sandbox->kube_name()->container, "POD");

    const auto crio = runtime_spec(R"({"annotations":{"io.kubernetes.container.name":"vllm",
        "io.kubernetes.pod.name":"llm-0","io.kubernetes.pod.namespace":"prod","n":7}})");
    EXPECT_EQ(crio->kube_name()->container, "vllm");
    EXPECT_EQ(crio->annotation("n"), "");

    EXPECT_FALSE(runtime_spec(R"({"annotations":[]})")->kube_name());
    EXPECT_FALSE(runtime_spec("[]"));
}

TEST(StateFiles, NamesThatTheKubeletMakesUp) {
    const auto made = kube_name_of("k8s_vllm_llm-0_prod_8d1e7b0c-3f5a-4c6e-9b2d-0123456789ab_1");
    ASSERT_TRUE(made);
    EXPECT_EQ(made->name_space + "/" + made->pod + "/" + made->container, "prod/llm-0/vllm");
    EXPECT_FALSE(kube_name_of("k8s_vllm"));
    EXPECT_FALSE(kube_name_of("my_own_name_of_six_parts"));
    EXPECT_FALSE(kube_name_of(""));

    const auto pod = pod_of_log("prod_llm-0_8d1e7b0c-3f5a-4c6e-9b2d-0123456789ab");
    ASSERT_TRUE(pod);
    EXPECT_EQ(pod->first, "8d1e7b0c-3f5a-4c6e-9b2d-0123456789ab");
    EXPECT_EQ(pod->second.name_space + "/" + pod->second.pod, "prod/llm-0");
    EXPECT_FALSE(pod_of_log("__x"));
    EXPECT_FALSE(pod_of_log("lost+found"));

    const auto container = container_of_log("llm-0_prod_vllm-main-" + id + ".log");
    ASSERT_TRUE(container);
    EXPECT_EQ(container->first, id);
    EXPECT_EQ(container->second.container, "vllm-main");
    EXPECT_EQ(container->second.pod, "llm-0");
    EXPECT_FALSE(container_of_log("llm-0_prod_vllm-" + id));
    EXPECT_FALSE(container_of_log("llm-0_prod_vllm-0123.log"));
    EXPECT_FALSE(container_of_log(id + ".log"));
}

TEST(StateFiles, WhatIsBrokenTellsNothing) {
    for (const std::string &text :
         {std::string(), std::string("{"), std::string("null"), std::string("\0\xff", 2),
          std::string("{\"Name\""), std::string(1U << 16, '['), std::string("[{\"id\":[]}]"),
          R"([{"id":)" + quoted(id) + R"(,"names":7}])",
          R"([{"id":)" + quoted(id) + R"(,"names":[]}])",
          R"([{"id":)" + quoted(id) + R"(,"names":[{}]}])"}) {
        EXPECT_EQ(docker_name(text), "");
        EXPECT_TRUE(storage_names(text).empty());
        EXPECT_FALSE(runtime_spec(text) && runtime_spec(text)->kube_name());
        EXPECT_EQ(docker_data_root(text), "");
        EXPECT_EQ(storage_graphroot(text), "");
        EXPECT_EQ(home_of(text, 0), "");
    }
}

TEST(StateFiles, NamesAreShortAndHarmless) {
    EXPECT_EQ(docker_name(R"({"Name":"/\u001b[2Ja\nb/c d\u00e9"})"), "??2Ja?b?c?d??");
    EXPECT_EQ(docker_name(R"({"Name":")" + std::string(5000, 'a') + R"("})"),
              std::string(253, 'a'));
}

TEST(StateFiles, OnlyRegularFilesOfBoundedSizeAreRead) {
    const test::Sandbox sandbox;
    const auto folder = sandbox.proc();

    sandbox.write(folder / "file", "12345");
    EXPECT_EQ(read_state_file(folder / "file", 5), "12345");
    EXPECT_EQ(read_state_file(folder / "file", 5, getuid()), "12345");
    EXPECT_FALSE(read_state_file(folder / "file", 5, getuid() + 1));
    EXPECT_FALSE(read_state_file(folder / "file", 4));
    EXPECT_FALSE(read_state_file(folder / "gone", 5));
    EXPECT_FALSE(read_state_file(folder, 5));
    EXPECT_FALSE(read_state_file("/dev/zero", 5));
    ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
    EXPECT_FALSE(read_state_file(folder / "fifo", 5));
    std::filesystem::create_symlink("file", folder / "link");
    EXPECT_FALSE(read_state_file(folder / "link", 5));
}

TEST(StateFiles, TheHomeOfAUser) {
    const std::string passwd = "root:x:0:0:root:/root:/bin/sh\nbroken\nu:x:1000:1000::/home/u:\n";

    EXPECT_EQ(home_of(passwd, 1000), "/home/u");
    EXPECT_EQ(home_of(passwd, 100), "");
}

} // namespace
} // namespace umacct
