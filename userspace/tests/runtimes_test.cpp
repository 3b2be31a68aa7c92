// SPDX-License-Identifier: GPL-2.0-or-later
/// Files of each container runtime, format by format.
#include <algorithm>
#include <chrono>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lib/owners/runtimes.h"
#include "tests/podman_database.h"
#include "tests/sandbox.h"

namespace umacct {
namespace {

const std::string id = "4f5a9c0b7d1e2f3a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9001ab";

std::string quoted(const std::string &text) {
    return '"' + text + '"';
}

TEST(Runtimes, DockersNameIsWithoutItsSlash) {
    EXPECT_EQ(read_docker_config(
                  R"({"State":{"Running":true,"Name":"no"},"ID":"x","Name":"/vllm","x":["a"]})"),
              "vllm\n\n");
    EXPECT_EQ(read_docker_config(R"({"Name":7})"), "");
    EXPECT_EQ(read_docker_config(R"({"Config":{"Name":"/inner"}})"), "");
    EXPECT_EQ(read_docker_settings(R"({"data-root":"/data/docker","debug":true})"), "/data/docker");
    EXPECT_EQ(read_docker_settings("[]"), "");
    EXPECT_EQ(read_docker_runtime(R"({"Binds":null,"Runtime":"umacct","A":{"Runtime":"b"}})"),
              "umacct\n");
    EXPECT_EQ(read_docker_runtime(R"({"Runtime":""})"), "\n") << "Docker's default";
    EXPECT_EQ(read_docker_runtime(R"({"Runtime":"\u001b[2J\n"})"), "??2J?\n");
    EXPECT_EQ(read_docker_runtime(R"({"Runtime":"umacct")"), "");
}

TEST(Runtimes, DockerTellsImageAndLabels) {
    EXPECT_EQ(read_docker_config(
                  R"({"Name":"/vllm","Image":"sha256:0a","Config":{"Image":"vllm/vllm-openai:v1",)"
                  R"("Env":["A=b"],"Labels":{"tier":"batch","n":7,"com.example/a":"b c\nd"}}})"),
              "vllm\nvllm/vllm-openai:v1\ntier=batch\ncom.example/a=b c?d\n");
    EXPECT_EQ(read_docker_config(R"({"Name":"/a","Config":{"Image":"i","Labels":{"long":")" +
                                 std::string(2000, 'x') + R"(","short":"x"}}})"),
              "a\ni\nshort=x\n")
        << "what is cut off would be another label";

    std::string many;
    for (int i = 0; i < 1000; ++i)
        many += fmt::format(R"({}"l{}":"x")", i == 0 ? "" : ",", i);
    const std::string text = read_docker_config(R"({"Config":{"Labels":{)" + many + "}}}");
    EXPECT_EQ(std::ranges::count(text, '\n'), 2 + 128);
}

TEST(Runtimes, ContainersJsonHasManyContainers) {
    const std::string other(64, '0');

    EXPECT_EQ(
        read_storage(
            R"([{"id":)" + quoted(id) +
            R"(,"names":["vllm","second"],"image":"x","metadata":"{\"id\":\"y\"}","flags":{"a":[1]}},)" +
            R"({"names":["late"],"flags":{"id":"no"},"id":)" + quoted(other) + "}," + R"({"id":)" +
            quoted(std::string(64, 'c')) + R"(,"layer":"z"},{"id":"short","names":["n"]},7,null])"),
        other + " late\n" + id + " vllm\n");
    EXPECT_EQ(read_storage(R"([{"id":)" + quoted(id) + R"(,"names":["vllm"],"metadata":)" +
                           R"("{\"image-name\":\"docker.io/library/a:b c\",\"n\":1}"}])"),
              id + " vllm docker.io/library/a:b?c\n");
}

TEST(Runtimes, PodmansDatabaseHasNamesImagesAndLabels) {
    const std::string other(64, '0');
    const std::string config = R"({"spec":{"annotations":{"name":"no"}},"name":"vllm",)"
                               R"("rootfsImageName":"docker.io/library/a:b","rawImageName":"a:b",)"
                               R"("labels":{"tier":"batch","n":7,"a":"b\nc"},"x":{"name":"no"}})";

    EXPECT_EQ(
        read_podman_database(test::podman_database(
            {{id, config}, {other, R"({"name":"bare"})"}, {"short", config}, {other + "0", "{"}})),
        "\n" + other + " bare\n" + other + " \n" + id + " vllm\n" + id +
            " docker.io/library/a:b\n" + id + " tier=batch\n" + id + " a=b?c\n")
        << "in the order of ids";
    EXPECT_EQ(read_podman_database(test::podman_database({})), "\n")
        << "not the same as no database";
    EXPECT_EQ(read_podman_database(test::podman_database({{id, "{"}, {other, "[7]"}})), "\n");
}

TEST(Runtimes, WhatIsNotPodmansDatabaseTellsNothing) {
    const std::string database = test::podman_database({{id, R"({"name":"vllm"})"}});
    std::string broken = database;

    EXPECT_EQ(read_podman_database(""), "");
    EXPECT_EQ(read_podman_database(R"([{"id":1}])"), "");
    EXPECT_EQ(read_podman_database(test::database("CREATE TABLE Other(ID TEXT, JSON TEXT)")), "");
    EXPECT_EQ(read_podman_database(database.substr(0, 100)), "") << "its header alone";
    broken.replace(100, 200, 200, '\xff');
    EXPECT_EQ(read_podman_database(broken), "");
    // A file that a tenant may leave behind: anything, in clean words.
    EXPECT_EQ(read_podman_database(test::database(
                  fmt::format("CREATE VIEW ContainerConfig AS SELECT '{}' AS ID, '{}' AS JSON", id,
                              R"({"name":"a b"})"))),
              "\n" + id + " a?b\n" + id + " \n");
}

TEST(Runtimes, StorageConfMayMoveTheContainers) {
    EXPECT_EQ(read_storage_settings("[storage]\ndriver = \"vfs\"\n  graphroot = \"/data/c\" # x\n"),
              "/data/c");
    EXPECT_EQ(read_storage_settings("graphroot='/data/c'"), "/data/c");
    EXPECT_EQ(read_storage_settings("# graphroot = \"/data/c\"\n"), "");
    EXPECT_EQ(read_storage_settings("graphroot_old = \"/data/c\"\ngraphroot = \"/open"), "");
    EXPECT_EQ(read_storage_settings("graphroot"), "");
}

TEST(Runtimes, AnnotationsTellThePod) {
    EXPECT_EQ(read_spec(R"({"linux":{"cgroupsPath":"/a/b","seccomp":{}},
        "annotations":{"io.kubernetes.cri.container-name":"vllm",
        "io.kubernetes.cri.container-type":"container","nerdctl/name":"n",
        "io.kubernetes.cri.sandbox-name":"llm-0","io.kubernetes.cri.sandbox-namespace":"prod"}})"),
              "/a/b\nprod\nllm-0\nvllm\nn\n\n");
    EXPECT_EQ(read_spec(R"({"annotations":{
        "io.kubernetes.cri.container-type":"sandbox","io.kubernetes.cri.sandbox-name":"llm-0",
        "io.kubernetes.cri.sandbox-namespace":"prod"}})"),
              "\nprod\nllm-0\nPOD\n");
    EXPECT_EQ(read_spec(R"({"annotations":{"io.kubernetes.container.name":"vllm",
        "io.kubernetes.pod.name":"llm-0","io.kubernetes.pod.namespace":"prod","n":7}})"),
              "\nprod\nllm-0\nvllm\n");
    EXPECT_EQ(read_spec(R"({"annotations":[]})"), "\n\n\n\n");
    EXPECT_EQ(read_spec(R"({"linux":{"cgroupsPath":"/a\nb"}})"), "");
}

TEST(Runtimes, AnnotationsTellImageAndLabels) {
    EXPECT_EQ(read_spec(R"({"annotations":{"io.kubernetes.cri.image-name":"docker.io/a/b:1"}})"),
              "\n\n\n\n\ndocker.io/a/b:1\n");
    EXPECT_EQ(read_spec(R"({"annotations":{"io.kubernetes.cri-o.ImageName":"quay.io/a/b:1",)"
                        R"("io.kubernetes.cri-o.Labels":"{\"tier\":\"batch\",\"x\":\"\"}"}})"),
              "\n\n\n\n\nquay.io/a/b:1\ntier=batch\nx=\n");
    EXPECT_EQ(read_spec(R"({"annotations":{"io.kubernetes.cri-o.Labels":"{\"tier\":"}})"),
              "\n\n\n\n");
}

TEST(Runtimes, NamesThatTheKubeletMakesUp) {
    const auto made = kube_name_of("k8s_vllm_llm-0_prod_8d1e7b0c-3f5a-4c6e-9b2d-0123456789ab_1");
    ASSERT_TRUE(made);
    EXPECT_EQ(made->name_space + "/" + made->pod + "/" + made->container, "prod/llm-0/vllm");
    EXPECT_FALSE(kube_name_of("k8s_vllm"));
    EXPECT_FALSE(kube_name_of("my_own_name_of_six_parts"));
    EXPECT_FALSE(kube_name_of(""));
    EXPECT_EQ(sandbox_of_pod("k8s_POD_llm-0_prod_8d1e7b0c_0"), "8d1e7b0c");
    EXPECT_FALSE(sandbox_of_pod("k8s_vllm_llm-0_prod_8d1e7b0c_0"));
    EXPECT_FALSE(sandbox_of_pod("POD"));

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

TEST(Runtimes, WhatIsBrokenTellsNothing) {
    for (const std::string &text :
         {std::string(), std::string("{"), std::string("null"), std::string("\0\xff", 2),
          std::string(R"({"Name")"), std::string(R"({"Name":"/x",)"), std::string(1U << 16, '['),
          R"({"Name":"/x","a":)" + std::string(1000, '[') + std::string(1000, ']') + "}",
          std::string(R"([{"id":[]}])"), R"([{"id":)" + quoted(id) + R"(,"names":7}])",
          R"([{"id":)" + quoted(id) + R"(,"names":[]}])",
          R"([{"id":)" + quoted(id) + R"(,"names":[{}]}])"}) {
        EXPECT_EQ(read_docker_config(text), "") << text.substr(0, 80);
        EXPECT_EQ(read_storage(text), "");
        EXPECT_TRUE(read_spec(text).empty() || read_spec(text) == "\n\n\n\n");
        EXPECT_EQ(read_docker_settings(text), "");
        EXPECT_EQ(read_storage_settings(text), "");
    }
}

// 400 KB of empty objects took 50 s, and as many brackets the whole stack.
TEST(Runtimes, WhatIsLargeOrDeepTakesNoTime) {
    const auto start = std::chrono::steady_clock::now();
    std::string flat = "[";

    for (int i = 0; i < 1'000'000; ++i)
        flat += "{},";
    EXPECT_EQ(read_storage(flat + R"({"id":)" + quoted(id) + R"(,"names":["x"]}])"), id + " x\n");
    EXPECT_EQ(read_storage(std::string(8U << 20, '[')), "");
    EXPECT_EQ(read_spec(R"({"annotations":)" + std::string(8U << 20, '{')), "");
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(Runtimes, NamesAreShortAndHarmless) {
    EXPECT_EQ(read_docker_config(R"({"Name":"/\u001b[2Ja\nb/c d\u00e9"})"), "??2Ja?b?c?d??\n\n");
    EXPECT_EQ(read_docker_config(R"({"Name":")" + std::string(5000, 'a') + R"("})"),
              std::string(253, 'a') + "\n\n");
}

} // namespace
} // namespace umacct
