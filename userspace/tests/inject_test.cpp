// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/containers/inject.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "oci_hook/runtime_call.h"

namespace umacct::oci_hook {
namespace {

using containers::with_hook;
using nlohmann::json;

constexpr const char *hook = "/usr/lib/umacct/umacct-hook";

using Words = std::vector<std::string>;

TEST(RuntimeCall, AsContainerdCallsRunc) {
    const RuntimeCall call =
        read_call({"--umacct-runtime=crun", "--root", "/run/run", "--log", "/b/log.json",
                   "--log-format", "json", "--systemd-cgroup", "create", "--bundle", "/b",
                   "--pid-file", "/b/init.pid", "web"});

    EXPECT_EQ(call.runtime, "crun");
    EXPECT_EQ(call.bundle, "/b");
    EXPECT_EQ(call.log, "/b/log.json");
    EXPECT_EQ(call.arguments.front(), "--root");
    EXPECT_EQ(call.arguments.size(), 13U);
    EXPECT_FALSE(call.instead_of_nvidia);
}

TEST(RuntimeCall, OnlyWhatMakesAContainerHasABundle) {
    EXPECT_EQ(read_call({"run", "-b", "/b", "x"}).bundle, "/b");
    EXPECT_EQ(read_call({"run", "--bundle=/b", "x"}).bundle, "/b");
    EXPECT_EQ(read_call({"--log=/l", "restore", "--bundle", "b", "x"}).bundle,
              std::filesystem::current_path() / "b");
    EXPECT_EQ(read_call({"create", "x"}).bundle, std::filesystem::current_path());
    for (const Words &words :
         {Words{"delete", "--bundle", "/b", "create"}, Words{"--root", "create", "list"},
          Words{"--version"}, Words{}, Words{"exec", "x", "create"}})
        EXPECT_EQ(read_call(words).bundle, std::nullopt);
    EXPECT_EQ(read_call({}).runtime, "runc");
    EXPECT_TRUE(read_call({"--umacct-instead-of-nvidia", "list"}).instead_of_nvidia);
    EXPECT_THROW(read_call({"--umacct-runtime=", "list"}), Error);
    EXPECT_THROW(read_call({"--umacct-other", "list"}), Error);
}

TEST(WithHook, ComesFirstAndOnce) {
    const std::string config =
        R"({"ociVersion":"1.0.2","process":{"env":["A=1"]},"hooks":{"createRuntime":[{"path":"/o"}],)"
        R"("prestart":[{"path":"/p"}]},"linux":{"resources":{"memory":{"limit":9223372036854771712}}}})";
    const auto text = with_hook(config, hook, false);

    ASSERT_TRUE(text);
    json changed = json::parse(*text);
    EXPECT_EQ(changed["hooks"]["createRuntime"].size(), 2U);
    EXPECT_EQ(changed["hooks"]["createRuntime"][0]["path"], hook);
    EXPECT_EQ(changed["hooks"]["createRuntime"][0]["args"], json{"umacct-hook"});
    changed["hooks"]["createRuntime"].erase(0);
    EXPECT_EQ(changed, json::parse(config)) << "all else is as it was";
    EXPECT_TRUE(text->starts_with(R"({"ociVersion")")) << "in its order";
    EXPECT_EQ(with_hook(*text, hook, false), std::nullopt);
    EXPECT_TRUE(with_hook("{}", hook, false));
}

TEST(WithHook, NvidiasHookSeesNoRequest) {
    const auto changed = [](const Words &env) {
        return json::parse(
            with_hook(json{{"process", {{"env", env}}}}.dump(), hook, true).value_or("{}"));
    };
    const json both = changed({"NVIDIA_GPU_MEMORY_REQUEST=5", "A=1", "NVIDIA_GPU_MEMORY_LIMIT=9",
                               "NVIDIA_GPU_MEMORY_REQUEST=6"});

    EXPECT_EQ(both["process"]["env"], (json{"A=1", "NVIDIA_GPU_MEMORY_LIMIT=9"}));
    EXPECT_EQ(both["annotations"]["org.umacct.soft"], "6m");
    const json alone = changed({"NVIDIA_GPU_MEMORY_REQUEST=5"});
    EXPECT_EQ(alone["process"]["env"], json{"NVIDIA_GPU_MEMORY_REQUEST=5"});
    EXPECT_FALSE(alone.contains("annotations"));
}

TEST(WithHook, WhatIsNoConfigurationIsRefused) {
    for (const std::string &config :
         {std::string(), std::string("["), std::string("[]"), std::string("5"),
          std::string(R"({"hooks": 5})"), std::string(R"({"hooks": {"createRuntime": {}}})"),
          std::string(1U << 20, '['), std::string("\xff")})
        EXPECT_THROW(with_hook(config, hook, false), Error) << config.substr(0, 40);
}

} // namespace
} // namespace umacct::oci_hook
