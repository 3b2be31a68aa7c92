// SPDX-License-Identifier: GPL-2.0-or-later
#include "oci_hook/hook.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/owners/identity.h"
#include "lib/owners/owners.h"
#include "lib/policy/last_good.h"
#include "oci_hook/asked.h"
#include "tests/fake_module.h"
#include "tests/runtime_folders.h"
#include "tests/sandbox.h"

namespace umacct::oci_hook {
namespace {

using nlohmann::json;

constexpr std::uint64_t gib = 1ULL << 30;
constexpr std::uint64_t mib = 1ULL << 20;
constexpr std::uint32_t pid = 4711;

std::string annotated(const json &annotations) {
    return json{{"annotations", annotations}}.dump();
}

std::string with_env(const std::vector<std::string> &env) {
    return json{{"process", {{"env", env}}}}.dump();
}

Order asked(const std::string &config) {
    return read_asked(config).order(16 * gib, true);
}

std::string refusal_of(const std::string &config) {
    try {
        read_asked(config);
        return "";
    } catch (const Error &error) {
        return error.what();
    }
}

TEST(Asked, ByAnnotations) {
    const Order order = asked(annotated({{"org.umacct.hard", "40g"},
                                         {"org.umacct.soft", "50%"},
                                         {"org.umacct.keep", "512m"},
                                         {"org.umacct.view", "on"},
                                         {"org.umacct.charge", "on"},
                                         {"org.example.hard", "1"}}));

    EXPECT_EQ(order.asked.hard, 40 * gib);
    EXPECT_EQ(order.asked.soft, 8 * gib);
    EXPECT_EQ(order.asked.keep, 512 * mib);
    EXPECT_EQ(order.asked.view, true);
    EXPECT_EQ(order.asked.charge, UMACCT_CHARGE_ON);
}

TEST(Asked, ByNvidiasVariables) {
    const Order order =
        asked(with_env({"A=1", "NVIDIA_GPU_MEMORY_REQUEST=1024", "NVIDIA_GPU_MEMORY_LIMIT=2048"}));

    EXPECT_EQ(order.asked.soft, gib);
    EXPECT_EQ(order.asked.hard, 2 * gib);
    EXPECT_EQ(
        asked(with_env({"NVIDIA_GPU_MEMORY_LIMIT=1", "NVIDIA_GPU_MEMORY_LIMIT=2"})).asked.hard,
        2 * mib)
        << "a program sees the last";
    for (const char *wrong : {"0", "", "1g", "-1", "1.5", " 1", "99999999999999999999"})
        EXPECT_NE(refusal_of(with_env({std::string("NVIDIA_GPU_MEMORY_LIMIT=") + wrong})), "")
            << wrong;
    EXPECT_NE(refusal_of(with_env({"NVIDIA_GPU_MEMORY_REQUEST=3", "NVIDIA_GPU_MEMORY_LIMIT=2"})),
              "");
}

TEST(Asked, TheLowestOfAllSources) {
    json config = json::parse(with_env(
        {"NVIDIA_GPU_MEMORY_REQUEST=1024", "NVIDIA_GPU_MEMORY_LIMIT=4096", "UMACCT_CDI_HARD=8g"}));

    EXPECT_EQ(asked(config.dump()).asked.hard, 4 * gib);
    config["annotations"]["org.umacct.hard"] = "6g";
    EXPECT_EQ(asked(config.dump()).asked.hard, 4 * gib);
    EXPECT_EQ(asked(config.dump()).asked.soft, gib);
    config["annotations"]["org.umacct.soft"] = "512m";
    EXPECT_EQ(asked(config.dump()).asked.soft, 512 * mib);
    config["annotations"]["org.umacct.hard"] = "3g";
    EXPECT_EQ(asked(config.dump()).asked.hard, 3 * gib);
    config["annotations"]["org.umacct.hard"] = "12g";
    config["process"]["env"] = {"UMACCT_CDI_HARD=8g"};
    EXPECT_EQ(asked(config.dump()).asked.hard, 8 * gib) << "a device is not to be exceeded";
    EXPECT_EQ(asked(with_env({"UMACCT_CDI_HARD=8g"})).asked.hard, 8 * gib);
}

TEST(Asked, OfADeviceAndWhatAnImageSaysTheLowest) {
    for (const char *other : {"9g", "64g"}) {
        const std::string of_the_image = std::string("UMACCT_CDI_HARD=") + other;

        EXPECT_LE(asked(with_env({of_the_image, "UMACCT_CDI_HARD=8g"})).asked.hard, 8 * gib);
        EXPECT_LE(asked(with_env({"UMACCT_CDI_HARD=8g", of_the_image})).asked.hard, 8 * gib);
    }
    EXPECT_NE(refusal_of(with_env({"UMACCT_CDI_HARD=8g", "UMACCT_CDI_HARD=much"})), "");
    EXPECT_NE(refusal_of(with_env({"UMACCT_CDI_HARD=much", "UMACCT_CDI_HARD=8g"})), "");
}

TEST(Asked, WhatKubeletAllocated) {
    json config = json::parse(annotated({{"umacct.io/allocated", "4096m"}}));

    EXPECT_EQ(asked(config.dump()).asked.hard, 4 * gib);
    EXPECT_TRUE(read_asked(config.dump()).is_for_umacct());
    config["annotations"]["org.umacct.hard"] = "8g";
    EXPECT_EQ(asked(config.dump()).asked.hard, 4 * gib) << "a pod's annotation raises nothing";
    config["annotations"]["org.umacct.hard"] = "3g";
    EXPECT_EQ(asked(config.dump()).asked.hard, 3 * gib) << "but it may lower";
    config["annotations"].erase("org.umacct.hard");

    for (const char *of_the_pod : {"UMACCT_CDI_HARD=64g", "UMACCT_CDI_HARD=allocated"}) {
        config["process"]["env"] = {of_the_pod};
        EXPECT_EQ(asked(config.dump()).asked.hard, 4 * gib) << of_the_pod;
    }
    EXPECT_EQ(refusal_of(with_env({"UMACCT_CDI_HARD=allocated"})),
              "its runtime keeps the annotation umacct.io/allocated from it");
    EXPECT_EQ(refusal_of(annotated({{"umacct.io/allocated", {"4096m"}}})),
              "the annotation umacct.io/allocated is not a text");
    EXPECT_EQ(refusal_of(annotated({{"umacct.io/allocated", "-1m"}})).substr(0, 24),
              "umacct.io/allocated=-1m:");
}

TEST(Asked, TheContainersOwnLimit) {
    const auto limit = [](const json &value) {
        return asked(json{{"linux", {{"resources", {{"memory", {{"limit", value}}}}}}}}.dump())
            .memory_limit;
    };

    EXPECT_EQ(limit(64 * mib), 64 * mib);
    EXPECT_EQ(limit(-1), std::nullopt);
    EXPECT_EQ(limit(0), std::nullopt);
    EXPECT_EQ(limit("64m"), std::nullopt);
}

TEST(Asked, WhatCannotBeUnderstoodIsNamed) {
    EXPECT_EQ(refusal_of(annotated({{"org.umacct.hard", "lots"}})).substr(0, 21),
              "org.umacct.hard=lots:");
    EXPECT_EQ(refusal_of(annotated({{"org.umacct.hard", 5}})),
              "the annotation org.umacct.hard is not a text");
    EXPECT_EQ(refusal_of(annotated({{"org.umacct.hard", {{"a", "b"}}}})),
              "the annotation org.umacct.hard is not a text");
    EXPECT_EQ(refusal_of(annotated({{"org.umacct.hrad", "5g"}})),
              "org.umacct.hrad=5g: there is no such annotation");
    EXPECT_NE(refusal_of(annotated({{"org.umacct.throttle", "1ms"}})), "")
        << "the administrator's alone";
    EXPECT_NE(refusal_of(annotated({{"org.umacct.view", "maybe"}})), "");
    EXPECT_NE(refusal_of(annotated({{"org.umacct.keep", "max"}})), "");
    EXPECT_EQ(refusal_of(annotated({{"org.umacct.hard", "\x1b[2J"}})).find('\x1b'),
              std::string::npos);
}

TEST(Asked, HostileJson) {
    EXPECT_NE(refusal_of(""), "");
    EXPECT_NE(refusal_of("{"), "");
    EXPECT_NE(refusal_of(std::string(1U << 20, '[')), "");
    EXPECT_NE(refusal_of(std::string(100, '[') + std::string(100, ']')), "") << "too deep";
    EXPECT_EQ(refusal_of(R"({"annotations": [1, 2], "process": 5, "linux": "x"})"), "");
    EXPECT_EQ(refusal_of(R"({"process": {"env": [5, null, {}, ["NVIDIA_GPU_MEMORY_LIMIT=x"]]}})"),
              "");
}

class HookTest : public testing::Test {
protected:
    HookTest() {
        id_ = sandbox_.add_cgroup(path_);
        sandbox_.add_process(pid, path_);
        sandbox_.add_process(static_cast<std::uint32_t>(getpid()), "/runtime");
        sandbox_.add_cgroup("/runtime");
    }

    void SetUp() override {
        const Cgroups cgroups(sandbox_.proc());

        if (const int code = OrderBook(cgroups, sandbox_.root())
                                 .keep_container("/runtime", {.asked = {.hard = 1}}))
            GTEST_SKIP() << "trusted attributes take CAP_SYS_ADMIN and a file system that has "
                            "them; errno "
                         << code;
    }

    void policy(const std::string &text) const { sandbox_.write("etc/umacct.toml", text); }

    /// Takes a policy as umacctd does.
    void umacctd_takes(const std::string &text) const {
        policy(text);
        EXPECT_EQ(LastGood(sandbox_.root()).keep(read_texts(policy_files(sandbox_.root()))), 0);
    }

    static std::filesystem::path bundle_of(const test::Sandbox &sandbox) {
        return sandbox.root() / "bundle";
    }

    json state() const {
        return {{"ociVersion", "1.0.2"},
                {"id", container_},
                {"status", "creating"},
                {"pid", pid},
                {"bundle", bundle_of(sandbox_).string()}};
    }

    int run(const std::string &config) {
        sandbox_.write("bundle/config.json", config);
        return run_state(state().dump());
    }

    int run_state(const std::string &state) {
        std::ostringstream err;
        const int code = run_hook(state, {.connect = [this] { return connect(); },
                                          .proc = sandbox_.proc(),
                                          .root = sandbox_.root(),
                                          .err = err});

        err_ = err.str();
        EXPECT_EQ(std::count(err_.begin(), err_.end(), '\n'), err_.empty() ? 0 : 1) << err_;
        return code;
    }

    std::unique_ptr<Transport> connect() {
        ++connections_;
        if (const auto call = std::exchange(on_connect_, nullptr))
            call();
        if (!loaded_)
            throw Error(Failure::missing, "the umacct kernel module is not loaded", "load it");
        return fake_.connect();
    }

    /// Returns the value that was set last.
    std::optional<std::uint64_t> set(int type) const {
        return fake_.changes.empty() ? std::nullopt
                                     : test::attribute(fake_.changes.back().attributes, type);
    }

    Order order() const {
        const Cgroups cgroups(sandbox_.proc());

        return OrderBook(cgroups, sandbox_.root()).container(path_);
    }

    bool says(const std::string &text) const { return err_.find(text) != std::string::npos; }

    const std::string container_ = test::id_of('a');
    std::string path_ = "/machine.slice/libpod-" + container_ + ".scope";
    std::uint64_t id_ = 0;
    test::Sandbox sandbox_;
    test::FakeModule fake_;
    bool loaded_ = true;
    int connections_ = 0;
    std::function<void()> on_connect_; ///< called once, before anything is set
    std::string err_;
};

const std::string hard_40g = annotated({{"org.umacct.hard", "40g"}});

TEST_F(HookTest, SetsWhatIsAskedForOnItsCgroup) {
    EXPECT_EQ(run(hard_40g), 0) << err_;
    ASSERT_EQ(fake_.changes.size(), 1U);
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_ID), id_);
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_HARD), 40 * gib);
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_VIEW), std::nullopt);
    EXPECT_EQ(order(), (Order{.asked = {.hard = 40 * gib}}));
    EXPECT_EQ(err_, "");
}

TEST_F(HookTest, WhereNothingIsAskedForItIsDone) {
    loaded_ = false;
    EXPECT_EQ(run("{}"), 0);
    EXPECT_EQ(connections_, 0);
    policy("[[rule]]\ncgroup='/elsewhere'\nhard='1G'\n");
    EXPECT_EQ(run("{}"), 0);
    EXPECT_EQ(connections_, 0);
    EXPECT_EQ(order(), Order());
}

TEST_F(HookTest, ARuleIsForItFromTheStart) {
    policy("[[rule]]\ncgroup='/machine.slice/*'\nhard='50%'\nthrottle='1ms'\n");
    EXPECT_EQ(run("{}"), 0) << err_;
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_HARD), 8 * gib);
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_THROTTLE), 1'000'000);
    EXPECT_EQ(order(), Order()) << "umacctd knows the rule";
}

TEST_F(HookTest, ARuleByName) {
    const test::RuntimeFolders folders(sandbox_);
    path_ = "/docker/" + container_;
    id_ = sandbox_.add_cgroup(path_);
    sandbox_.add_process(pid, path_);
    folders.add_docker(container_, "vllm");
    policy("[[rule]]\ncontainer='vllm'\nhard='2G'\n");
    EXPECT_EQ(run("{}"), 0) << err_;
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_ID), id_);
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_HARD), 2 * gib);
}

/// A container of some runtime's, whose cgroup and bundle lie wherever its maker put them.
class HookNameTest : public HookTest {
protected:
    void place(const std::string &path, const std::string &bundle = "bundle") {
        path_ = path;
        id_ = sandbox_.add_cgroup(path_);
        sandbox_.add_process(pid, path_);
        bundle_ = bundle;
    }

    int start(const json &config = json::object()) {
        json its = state();

        sandbox_.write(bundle_ + "/config.json", config.dump());
        its["bundle"] = (sandbox_.root() / bundle_).string();
        return run_state(its.dump());
    }

    std::optional<Owner> kept() const { return kept_owner(Cgroups(sandbox_.proc()), path_); }

    /// The files that Docker puts into each of its containers.
    json docker_mounts(const std::string &root) const {
        const std::string folder = (sandbox_.root() / root / "containers" / container_).string();

        return {{"mounts",
                 {{{"destination", "/proc"}, {"source", "proc"}},
                  {{"destination", "/etc/hostname"}, {"source", folder + "/hostname"}}}}};
    }

    const std::string by_name_ = "[[rule]]\ncontainer='vllm'\nhard='2G'\n";
    const std::string storage_ = "srv/storage/overlay-containers/";
    std::string bundle_ = "bundle";
    const test::RuntimeFolders folders_{sandbox_};
};

TEST_F(HookNameTest, OfAQuadletAndAnotherStorage) {
    place("/system.slice/vllm.service/libpod-payload-" + container_,
          storage_ + container_ + "/userdata");
    folders_.add_stored(container_, "vllm", storage_ + "containers.json");
    policy(by_name_);
    EXPECT_EQ(start(), 0) << err_;
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_HARD), 2 * gib);
    ASSERT_TRUE(kept());
    EXPECT_EQ(kept()->label(), "podman vllm");
}

TEST_F(HookNameTest, OfACgroupParentAndAnotherDataRoot) {
    place("/batch/" + container_);
    folders_.add_docker(container_, "vllm", "srv/docker");
    policy(by_name_);
    EXPECT_EQ(start(docker_mounts("srv/docker")), 0) << err_;
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_HARD), 2 * gib);
    EXPECT_EQ(kept()->label(), "docker vllm");
}

TEST_F(HookNameTest, WithALabelOfNineMegabytes) {
    place("/docker/" + container_);
    folders_.add_docker(container_, "vllm", "registry/vllm",
                        {{"x", std::string(9U << 20U, 'l')}, {"y", "z"}});
    policy(by_name_);
    EXPECT_EQ(start(docker_mounts("var/lib/docker")), 0) << err_;
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_HARD), 2 * gib);
    EXPECT_EQ(kept()->labels, std::vector<std::string>{"y=z"});
}

TEST_F(HookNameTest, OfKubernetesByItsAnnotations) {
    place(test::pod_slice + "/cri-containerd-" + container_ + ".scope");
    policy("[[rule]]\ncontainer='server'\nhard='2G'\n");
    EXPECT_EQ(start({{"annotations", test::RuntimeFolders::cri("server")}}), 0) << err_;
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_HARD), 2 * gib);
    EXPECT_EQ(kept()->full_name(), "prod/llm-0/server");
}

TEST_F(HookNameTest, ThatCannotBeFoundKeepsItFromStartingAndTheRuleIsNamed) {
    for (const char *rule : {"container='vllm'", "image='**'", "label='tier=*'"}) {
        place("/docker/" + container_);
        policy(std::string("[[rule]]\nname='big'\n") + rule + "\nhard='2G'\n");
        EXPECT_EQ(start(), 1) << rule;
        EXPECT_TRUE(says("big, ") && says("its name cannot be found")) << err_;
        EXPECT_TRUE(fake_.changes.empty());
    }
    policy("[containers]\nwithout-module='start'\n" + by_name_); // its former spelling
    EXPECT_EQ(start(), 0) << "as the policy has it";
    EXPECT_NE(err_, "");
}

TEST_F(HookNameTest, ThatIsNotNeededKeepsNothingFromStarting) {
    place("/docker/" + container_);
    policy("[[rule]]\ncgroup='/docker/*'\nhard='1G'\n" + by_name_);
    EXPECT_EQ(start(), 0) << "the first rule decides: " << err_;
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_HARD), gib);
    policy("[[rule]]\ncgroup='/batch/**'\ncontainer='vllm'\nhard='1G'\n"
           "[[rule]]\nunit='ollama'\nhard='1G'\n[[rule]]\npod='llm-*'\nhard='1G'\n");
    EXPECT_EQ(start(), 0) << "none of these can be for it: " << err_;
    policy("");
    EXPECT_EQ(start(), 0) << err_;
}

TEST_F(HookNameTest, OfAUsersRuntimeIsNotAskedFor) {
    place("/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + container_ +
          ".scope");
    policy(by_name_);
    EXPECT_EQ(start(), 0) << "umacctd goes by the cgroup's path: " << err_;
}

TEST_F(HookNameTest, IsKeptWhereNothingIsLimited) {
    place("/batch/" + container_);
    folders_.add_docker(container_, "vllm", "srv/docker");
    EXPECT_EQ(start(docker_mounts("srv/docker")), 0) << err_;
    EXPECT_EQ(kept()->name, "vllm");
    EXPECT_EQ(connections_, 0);
    const Owners owners(sandbox_.root(), Cgroups(sandbox_.proc()));
    EXPECT_EQ(owners.of(path_)->label(), "docker vllm");
    EXPECT_FALSE(is_made_inside(path_, owners));
    EXPECT_TRUE(is_made_inside(path_ + "/x", owners));
    EXPECT_FALSE(Owners(sandbox_.root()).of(path_));
}

TEST_F(HookTest, APolicyOfCommentsTakesNoTimeToRead) {
    std::string text;

    // Each of its 5 MB was read once for every line: 18 s.
    while (text.size() < 5'000'000)
        text += "#\n";
    policy(text);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(run("{}"), 0) << err_;
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST_F(HookTest, WhatIsAskedForOnlyLowersWhatARuleSays) {
    policy("[[rule]]\ncgroup='/machine.slice/*'\nhard='4G'\nsoft='3G'\nkeep='1G'\nview=true\n"
           "charge='on'\n");
    EXPECT_EQ(run(annotated({{"org.umacct.hard", "max"},
                             {"org.umacct.soft", "100g"},
                             {"org.umacct.keep", "2g"},
                             {"org.umacct.view", "off"},
                             {"org.umacct.charge", "off"}})),
              0)
        << err_;
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_HARD), 4 * gib);
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_SOFT), 3 * gib);
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_KEEP), gib);
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_VIEW), 1);
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_CHARGE), UMACCT_CHARGE_ON);

    EXPECT_EQ(run(annotated({{"org.umacct.hard", "2g"}, {"org.umacct.keep", "512m"}})), 0);
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_HARD), 2 * gib);
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_SOFT), 2 * gib) << "the rule's is above the hard one";
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_KEEP), 512 * mib);
}

/// Returns a tenant's possible ways to write a limit, from nothing at all to every source at once.
std::vector<std::string> raises() {
    std::vector<std::string> configs;

    std::istringstream much("max,none,0,-1,-1g,100%,101%,1e30,0x7fff,18446744073709551615,"
                            "18446744073709551616,16777216t,1t, 8g,8g ,8g;,8\u00a0g,inf,nan,,\\0");

    for (std::string text; std::getline(much, text, ',');) {
        configs.push_back(annotated({{"org.umacct.hard", text}}));
        configs.push_back(annotated({{"org.umacct.hard", "1g"}, {"org.umacct.Hard", text}}));
        configs.push_back(annotated({{"org.umacct.soft", text}, {"org.umacct.throttle", text}}));
        configs.push_back(with_env({"NVIDIA_GPU_MEMORY_LIMIT=" + text}));
        configs.push_back(
            with_env({"NVIDIA_GPU_MEMORY_LIMIT=1", "NVIDIA_GPU_MEMORY_LIMIT=" + text}));
        configs.push_back(with_env({"UMACCT_CDI_HARD=" + text}));
        configs.push_back(with_env({"UMACCT_CDI_HARD=1g", "UMACCT_CDI_HARD=" + text}));
        configs.push_back(json{
            {"annotations", {{"org.umacct.hard", text}, {"org.umacct.soft", text}}},
            {"process",
             {{"env",
               {"NVIDIA_GPU_MEMORY_REQUEST=" + text, "NVIDIA_GPU_MEMORY_LIMIT=" + text,
                "UMACCT_CDI_HARD=" +
                    text}}}}}.dump());
    }
    for (const json &limit : {json(-1), json(0), json(1ULL << 62), json(1e300), json("max"),
                              json(nullptr), json({{"limit", 1}})})
        configs.push_back(
            json{{"linux", {{"resources", {{"memory", {{"limit", limit}}}}}}}}.dump());
    // The last of two members counts, as for runtimes.
    configs.emplace_back(R"({"annotations":{"org.umacct.hard":"1g","org.umacct.hard":"max"}})");
    configs.emplace_back(R"({"annotations":{"org.umacct.hard":"1g"},"annotations":null})");
    configs.emplace_back(R"({"process":{"env":null},"annotations":[],"linux":[]})");
    return configs;
}

TEST_F(HookTest, NothingThatATenantWritesRaisesWhatARuleSays) {
    for (const char *from_memory : {"", "[containers]\nfrom_memory_limit = true\n"}) {
        policy(std::string(from_memory) + "[[rule]]\ncgroup='/machine.slice/*'\nhard='4G'\n");
        for (const std::string &config : raises()) {
            fake_.changes.clear();
            if (run(config) != 0) {
                EXPECT_TRUE(fake_.changes.empty()) << "it didn't start: " << config;
                continue;
            }
            ASSERT_TRUE(set(UMACCT_A_ACCOUNT_HARD)) << config;
            EXPECT_LE(*set(UMACCT_A_ACCOUNT_HARD), 4 * gib) << config;
            EXPECT_LE(set(UMACCT_A_ACCOUNT_SOFT).value_or(0), 4 * gib) << config;
        }
    }
}

TEST_F(HookTest, NothingThatATenantWritesRaisesTheMemoryLimit) {
    policy("[containers]\nfrom_memory_limit = true\n");
    for (const std::string &config : raises()) {
        json with_limit = json::parse(config);
        fake_.changes.clear();
        // Limit from an administrator's LimitRange, or from whoever runs an image.
        with_limit["linux"] = {{"resources", {{"memory", {{"limit", 4 * gib}}}}}};
        if (run(with_limit.dump()) != 0) {
            EXPECT_TRUE(fake_.changes.empty()) << "it didn't start: " << config;
            continue;
        }
        ASSERT_TRUE(set(UMACCT_A_ACCOUNT_HARD)) << config;
        EXPECT_LE(*set(UMACCT_A_ACCOUNT_HARD), 4 * gib) << config;
    }
}

TEST_F(HookTest, ASoftLimitThatIsThereAlreadyGivesWay) {
    Account account;

    account.id = id_;
    account.path = path_;
    account.soft = 60 * gib;
    fake_.accounts.push_back(account);
    EXPECT_EQ(run(hard_40g), 0) << err_;
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_SOFT), 40 * gib);
}

TEST_F(HookTest, AGuaranteeTakesTheAdministratorsWord) {
    const std::string keep = annotated({{"org.umacct.keep", "2g"}});

    EXPECT_EQ(run(keep), 0);
    EXPECT_TRUE(fake_.changes.empty());
    policy("[containers]\nkeep = '1G'\n");
    EXPECT_EQ(run(keep), 0);
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_KEEP), gib);
}

TEST_F(HookTest, TheMemoryLimitWhereNoRuleSaysAnother) {
    const std::string limited = R"({"linux": {"resources": {"memory": {"limit": 67108864}}}})";

    EXPECT_EQ(run(limited), 0);
    EXPECT_TRUE(fake_.changes.empty());
    policy("[containers]\nfrom_memory_limit = true\n");
    EXPECT_EQ(run(limited), 0);
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_HARD), 64 * mib);
    EXPECT_EQ(order().memory_limit, 64 * mib);
    policy("[containers]\nfrom_memory_limit = true\n[[rule]]\ncgroup='/**'\nhard='1G'\n");
    EXPECT_EQ(run(limited), 0);
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_HARD), gib);
}

TEST_F(HookTest, WithoutTheModuleItMayNotStart) {
    loaded_ = false;
    EXPECT_EQ(run(hard_40g), 1);
    EXPECT_TRUE(says("umacct-hook: container aaaaaaaaaaaa: it may not start without its limits: "
                     "the umacct kernel module is not loaded; load it"))
        << err_;
    policy("[containers]\nwithout_module = 'refuse'\n");
    EXPECT_EQ(run(hard_40g), 1);
    policy("[containers]\nwithout_module = 'start'\n");
    EXPECT_EQ(run(hard_40g), 0);
    EXPECT_TRUE(says("it starts without its limits, as the policy has it")) << err_;
    EXPECT_EQ(order(), (Order{.asked = {.hard = 40 * gib}})) << "for a module that comes later";
    policy("[[rule]]\ncgroup='/**'\nhard='1G'\n");
    EXPECT_EQ(run("{}"), 1) << "a rule's limit is one, too";
}

TEST_F(HookTest, NorWhereNothingEnforcesIt) {
    fake_.enforcement = {UMACCT_DRIVER_UNKNOWN, "999.1 is not known"};
    EXPECT_EQ(run(hard_40g), 1);
    EXPECT_TRUE(says("nothing enforces its limits: 999.1 is not known")) << err_;
    fake_.enforcement = {UMACCT_DRIVER_HOOKED, "kprobes are switched off"};
    EXPECT_EQ(run(hard_40g), 1);
    policy("[containers]\nwithout_module = 'start'\n");
    EXPECT_EQ(run(hard_40g), 0);
    policy("");
    fake_.enforcement = {UMACCT_DRIVER_ABSENT, "this holds from the moment it is loaded"};
    EXPECT_EQ(run(hard_40g), 0) << err_;
}

TEST_F(HookTest, WhatTheModuleRefusesIsNoReasonToStart) {
    policy("[containers]\nwithout_module = 'start'\n");
    fake_.refuse_with = EOPNOTSUPP;
    EXPECT_EQ(run(hard_40g), 1);
    EXPECT_TRUE(says("the fake module refuses")) << err_;
}

TEST_F(HookTest, ARuntimeOfAUsers) {
    fake_.refuse_with = EPERM;
    EXPECT_EQ(run(hard_40g), 1);
    EXPECT_TRUE(says("only a runtime that root runs can set limits")) << err_;
    policy("[[rule]]\ncgroup='/**'\nhard='1G'\n");
    EXPECT_EQ(run("{}"), 0) << "umacctd sets what a rule says";
}

TEST_F(HookTest, ABrokenPolicyIsNotNone) {
    policy("[containers]\nwithout_module = 'perhaps'\n");
    EXPECT_EQ(run(hard_40g), 1);
    EXPECT_TRUE(says("neither 'refuse' nor 'start'")) << err_;
    sandbox_.write("var/lib/umacctd/policy/0000-umacct.toml",
                   "[[rule]]\ncgroup='/**'\nhard='1G'\n");
    EXPECT_EQ(run(hard_40g), 0) << "umacctd's last good one, as at umacctd's start: " << err_;
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_HARD), gib);
}

TEST_F(HookTest, APolicyThatUmacctdRefusedIsNotInForce) {
    // It can be read, but the machine has 16 GiB.
    policy("[machine]\nreserve='900G'\n[[rule]]\ncgroup='/**'\nhard='2G'\n");
    sandbox_.write("var/lib/umacctd/policy/0000-umacct.toml",
                   "[[rule]]\ncgroup='/**'\nhard='1G'\n");
    const test::RunningDaemon daemon(sandbox_.root());
    EXPECT_EQ(run("{}"), 0) << err_;
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_HARD), gib);
}

TEST_F(HookTest, APolicyThatUmacctdCouldNotKeepIsInForce) {
    policy("[[rule]]\ncgroup='/**'\nhard='1G'\n");
    sandbox_.write("var/lib/umacctd/policy/0000-umacct.toml",
                   "[[rule]]\ncgroup='/**'\nhard='2G'\n");
    sandbox_.write("run/umacctd/policy-not-kept", "");
    const test::RunningDaemon daemon(sandbox_.root());
    EXPECT_EQ(run("{}"), 0) << err_;
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_HARD), gib);
    policy("");
    fake_.changes.clear();
    EXPECT_EQ(run("{}"), 0) << err_;
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_HARD), 2 * gib) << "what is missing is refused";
}

TEST_F(HookTest, APolicyThatUmacctdWouldRefuseIsNotInForceWithoutIt) {
    policy("");
    sandbox_.write("var/lib/umacctd/policy/0000-umacct.toml",
                   "[[rule]]\ncgroup='/**'\nhard='1G'\n");
    EXPECT_EQ(run("{}"), 0) << err_;
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_HARD), gib);
}

TEST_F(HookTest, ARuleThatUmacctdTakesMeanwhileHolds) {
    const test::RunningDaemon daemon(sandbox_.root());

    umacctd_takes("[[rule]]\ncgroup='/**'\nhard='1G'\n");
    on_connect_ = [&] { umacctd_takes("[[rule]]\ncgroup='/**'\nhard='2G'\n"); };
    EXPECT_EQ(run("{}"), 0) << err_;
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_HARD), 2 * gib);
    EXPECT_EQ(fake_.changes.size(), 1U) << "the one before is not set";

    fake_.changes.clear();
    on_connect_ = [&] { umacctd_takes("# none\n"); };
    EXPECT_EQ(run("{}"), 0) << err_;
    EXPECT_TRUE(fake_.changes.empty()) << "nor one that is taken away";
}

TEST_F(HookTest, APolicyThatIsBrokenMeanwhileKeepsItFromStarting) {
    policy("[[rule]]\ncgroup='/**'\nhard='1G'\n");
    on_connect_ = [&] { umacctd_takes("[[rule]]\nhrad='1G'\n"); };
    EXPECT_EQ(run("{}"), 1);
    EXPECT_TRUE(says("a rule has no 'hrad'")) << err_;
    EXPECT_TRUE(fake_.changes.empty());
}

TEST_F(HookTest, TheContainersCgroupIsAboveTheRuntimesOwnInIt) {
    sandbox_.add_cgroup(path_ + "/container");
    sandbox_.add_process(pid, path_ + "/container");
    EXPECT_EQ(run(hard_40g), 0) << err_;
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_ID), id_);
}

TEST_F(HookTest, NoCgroupOfItsOwn) {
    for (const char *path : {"/runtime", "/"}) {
        sandbox_.add_process(pid, path);
        EXPECT_EQ(run(hard_40g), 1);
        EXPECT_TRUE(says("it has no cgroup of its own")) << err_;
        EXPECT_EQ(run("{}"), 0) << err_;
        policy("[[rule]]\ncgroup='/elsewhere'\nhard='1G'\n");
        EXPECT_EQ(run("{}"), 0) << "nothing is for it: " << err_;
        EXPECT_EQ(run(hard_40g), 1);
        policy(fmt::format("[[rule]]\ncgroup='{}'\nhard='1G'\n", path));
        EXPECT_EQ(run("{}"), 1) << "a rule can't hold for it alone";
        EXPECT_TRUE(says("it has no cgroup of its own")) << err_;
        policy("");
    }
    sandbox_.add_process(pid, "/not/there");
    EXPECT_EQ(run(hard_40g), 1);
    std::filesystem::remove_all(sandbox_.proc() / std::to_string(pid));
    EXPECT_EQ(run(hard_40g), 1);
    EXPECT_TRUE(fake_.changes.empty());
}

TEST_F(HookTest, AContainerThatMovesMeanwhile) {
    const std::uint64_t next = sandbox_.add_cgroup("/next");

    fake_.on_change = [&] {
        if (fake_.changes.size() == 1)
            sandbox_.add_process(pid, "/next");
    };
    EXPECT_EQ(run(hard_40g), 0) << err_;
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_ID), next);

    int moves = 0;
    fake_.on_change = [&] { sandbox_.add_process(pid, ++moves % 2 == 1 ? path_ : "/next"); };
    EXPECT_EQ(run(hard_40g), 1);
    EXPECT_TRUE(says("moved from one to another")) << err_;
}

TEST_F(HookTest, ACgroupThatIsMadeAnewIsAnother) {
    std::uint64_t anew = 0;

    fake_.on_change = [&] {
        if (fake_.changes.size() > 1)
            return;
        // The old one is still there, so that its number is not given again.
        std::filesystem::rename(sandbox_.cgroup_mount() / path_.substr(1),
                                sandbox_.cgroup_mount() / "old");
        anew = sandbox_.add_cgroup(path_);
    };
    EXPECT_EQ(run(hard_40g), 0) << err_;
    EXPECT_EQ(set(UMACCT_A_ACCOUNT_ID), anew);
    EXPECT_EQ(order().asked.hard, 40 * gib);
}

TEST_F(HookTest, AStateThatIsNone) {
    sandbox_.write("bundle/config.json", hard_40g);
    for (const char *key : {"id", "pid", "bundle"}) {
        json without = state();
        without.erase(key);
        EXPECT_EQ(run_state(without.dump()), 1) << key;
    }
    for (const auto &[key, value] :
         std::vector<std::pair<const char *, json>>{{"pid", "4711"},
                                                    {"pid", 0},
                                                    {"pid", -1},
                                                    {"pid", 1e30},
                                                    {"pid", 18446744073709551615U},
                                                    {"pid", {4711}},
                                                    {"id", 5},
                                                    {"id", std::string(1U << 16, 'x')},
                                                    {"bundle", 5},
                                                    {"bundle", "bundle"}}) {
        json wrong = state();
        wrong[key] = value;
        EXPECT_EQ(run_state(wrong.dump()), 1) << wrong.dump().substr(0, 200);
    }
    for (const std::string &text :
         {std::string(), std::string("["), std::string(1U << 20, '['),
          state().dump() + std::string(1U << 20, ' '), std::string("\xff\xfe{}")})
        EXPECT_EQ(run_state(text), 1);
    EXPECT_TRUE(fake_.changes.empty());
}

TEST_F(HookTest, ABundleWithoutAProperConfiguration) {
    const std::filesystem::path config = bundle_of(sandbox_) / "config.json";

    EXPECT_EQ(run_state(state().dump()), 1) << "there is none";
    sandbox_.write("elsewhere.json", hard_40g);
    std::filesystem::create_directories(config.parent_path());
    std::filesystem::create_symlink(sandbox_.root() / "elsewhere.json", config);
    EXPECT_EQ(run_state(state().dump()), 1) << "a link";
    std::filesystem::remove(config);
    ASSERT_EQ(mkfifo(config.c_str(), 0600), 0);
    EXPECT_EQ(run_state(state().dump()), 1) << "a pipe that nobody writes to";
    std::filesystem::remove(config);
    sandbox_.write("bundle/config.json", hard_40g + std::string(9U << 20, ' '));
    EXPECT_EQ(run_state(state().dump()), 1) << "above 8 MiB";
    EXPECT_TRUE(says("it is missing, or no regular file")) << err_;
    EXPECT_TRUE(fake_.changes.empty());
}

} // namespace
} // namespace umacct::oci_hook
