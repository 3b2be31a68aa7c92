// SPDX-License-Identifier: GPL-2.0-or-later
/// umacct setup podman, crio, docker, containerd and cdi: what they write, and that undoing it
/// leaves nothing.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "lib/host/process.h"
#include "tests/tool_fixture.h"
#include "tool/containers/edit.h"

namespace umacct {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char *settings = "etc/docker/daemon.json";
constexpr const char *containerd = "etc/containerd/config.toml";
constexpr const char *base = "etc/containerd/umacct-base.json";

/// As Debian has it, with something of an administrator's.
constexpr const char *some_settings = R"(version = 2

[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    # ours
    sandbox_image = "here/pause:1"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]  # as ever
      runtime_type = "io.containerd.runc.v2"
      pod_annotations = ["a.example/*"] # theirs
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = true
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.kata]
      runtime_type = "io.containerd.kata.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
      BinaryName = "/usr/bin/nvidia-container-runtime"
)";

std::string id_of(char digit) {
    std::string id(64, digit);

    return id;
}

class SetupContainers : public test::ToolFixture {
protected:
    SetupContainers() {
        fs::create_directories(sandbox_.root() / "etc");
        fs::create_directories(sandbox_.root() / "var/lib");
        sandbox_.write("usr/lib/umacct/umacct-hook", "");
        sandbox_.write("usr/lib/umacct/umacct-runtime", "");
        sandbox_.write("usr/bin/ctr", R"(#!/bin/sh
[ "$*" = "oci spec" ] && echo '{"process": {"args": ["sh"], "rlimits": [{}], "apparmorProfile": "x"},
"linux": {"seccomp": {}, "namespaces": []}}')");
        fs::permissions(sandbox_.root() / "usr/bin/ctr", fs::perms(0755));
    }

    /// A container; name: "" for one that has none.
    void add_docker(const std::string &folder, char digit, const std::string &name,
                    const std::string &runtime) const {
        const std::string own = folder + "/containers/" + id_of(digit);

        if (!name.empty())
            sandbox_.write(own + "/config.v2.json", R"({"Name":"/)" + name + "\"}");
        sandbox_.write(own + "/hostconfig.json", runtime);
    }

    std::string read(const std::string &file) const {
        std::ifstream in(sandbox_.root() / file);

        return {std::istreambuf_iterator<char>(in), {}};
    }

    json parsed(const std::string &file) const { return json::parse(read(file)); }

    bool exists(const std::string &file) const { return fs::exists(sandbox_.root() / file); }

    /// Every file and folder of /etc and /var, with the files' text.
    std::map<std::string, std::string> tree() const {
        std::map<std::string, std::string> all;

        for (const char *folder : {"etc", "var"}) {
            if (!exists(folder))
                continue;
            for (const auto &each : fs::recursive_directory_iterator(sandbox_.root() / folder)) {
                const std::string name = fs::relative(each.path(), sandbox_.root()).string();
                all[name] = each.is_regular_file() ? read(name) : "/";
            }
        }
        return all;
    }
};

TEST_F(SetupContainers, PodmanHasAHookAndDevices) {
    const test::Ran ran = run({"setup", "podman"});

    EXPECT_EQ(ran.code, 0) << ran.err;
    const json hook = parsed("etc/containers/oci/hooks.d/umacct.json");
    EXPECT_EQ(hook["hook"]["path"], "/usr/lib/umacct/umacct-hook");
    EXPECT_EQ(hook["stages"], json{"createRuntime"});
    EXPECT_EQ(hook["when"]["always"], true);

    const std::string folders = read("etc/containers/containers.conf.d/90-umacct.conf");
    EXPECT_NE(folders.find("[engine]\nhooks_dir = [\n"), std::string::npos) << folders;
    EXPECT_NE(folders.find("\"/etc/containers/oci/hooks.d\""), std::string::npos) << folders;

    const json devices = parsed("etc/cdi/umacct-memory.json");
    EXPECT_EQ(devices["kind"], "umacct.io/memory");
    EXPECT_EQ(devices["containerEdits"]["hooks"][0]["hookName"], "createRuntime");
    bool found = false;
    for (const json &device : devices["devices"])
        found |=
            device == json{{"name", "16g"}, {"containerEdits", {{"env", {"UMACCT_CDI_HARD=16g"}}}}};
    EXPECT_TRUE(found) << "a machine of 16 GiB";
    EXPECT_EQ(devices["devices"][0]["containerEdits"]["env"], json{"UMACCT_CDI_HARD=allocated"});
    EXPECT_EQ(devices["devices"].back()["name"], "17g");
    EXPECT_NE(run({"setup"}).out.find("podman: set up;"), std::string::npos);
}

TEST_F(SetupContainers, UndoingLeavesNothing) {
    sandbox_.write("etc/other", "");
    const auto before = tree();

    for (const char *part : {"podman", "crio", "docker", "containerd", "cdi"}) {
        EXPECT_EQ(run({"setup", part}).code, 0) << part;
        EXPECT_EQ(run({"setup", part}).code, 0) << "once more does no harm";
        EXPECT_NE(tree(), before);
        EXPECT_EQ(run({"setup", part, "--undo"}).code, 0) << part;
        EXPECT_EQ(tree(), before) << part;
        EXPECT_NE(run({"setup", part, "--undo"}).out.find("was not set up"), std::string::npos);
    }
}

/// debian/umacct.prerm reads it.
TEST_F(SetupContainers, UndoingSaysWhatIsToBeRestarted) {
    for (const char *part : {"crio", "docker", "containerd"}) {
        run({"setup", part});
        const std::string out = run({"setup", part, "--undo"}).out;
        EXPECT_TRUE(out.ends_with(std::string("\nsystemctl restart ") + part + "\n")) << out;
    }
}

TEST_F(SetupContainers, FoldersThatWereThereStay) {
    for (const char *folder : {"etc/docker", "etc/cdi", "etc/containerd",
                               "etc/containers/containers.conf.d", "etc/crio"})
        fs::create_directories(sandbox_.root() / folder);
    const auto before = tree();

    for (const char *part : {"podman", "crio", "docker", "containerd", "cdi"})
        EXPECT_EQ(run({"setup", part}).code, 0) << part;
    for (const char *part : {"crio", "podman", "containerd", "docker", "cdi"})
        EXPECT_EQ(run({"setup", part, "--undo"}).code, 0) << part;
    EXPECT_EQ(tree(), before);

    // Somebody removes a folder, and it is set up again.
    fs::remove_all(sandbox_.root() / "etc/cdi");
    const auto without = tree();
    sandbox_.write("etc/cdi/nvidia.json", "");
    EXPECT_EQ(run({"setup", "cdi"}).code, 0);
    fs::remove_all(sandbox_.root() / "etc/cdi");
    EXPECT_EQ(run({"setup", "cdi"}).code, 0);
    EXPECT_EQ(run({"setup", "cdi", "--undo"}).code, 0);
    EXPECT_EQ(tree(), without);
}

TEST_F(SetupContainers, WhatTwoShareGoesWithTheLast) {
    run({"setup", "podman"});
    run({"setup", "crio"});
    run({"setup", "podman", "--undo"});
    EXPECT_TRUE(exists("etc/containers/oci/hooks.d/umacct.json"));
    EXPECT_NE(run({"setup"}).out.find("podman: not set up"), std::string::npos);
    EXPECT_NE(run({"setup"}).out.find("crio: set up"), std::string::npos);
    run({"setup", "crio", "--undo"});
    EXPECT_FALSE(exists("etc/containers"));
    EXPECT_FALSE(exists("etc/crio"));
    EXPECT_FALSE(exists("etc/cdi"));
}

TEST_F(SetupContainers, PrintChangesNothing) {
    const auto before = tree();
    const test::Ran ran = run({"setup", "docker", "--print"});

    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_NE(ran.out.find("+++ " + (sandbox_.root() / settings).string()), std::string::npos)
        << ran.out;
    EXPECT_NE(ran.out.find("+  \"default-runtime\": \"umacct\""), std::string::npos) << ran.out;
    EXPECT_EQ(tree(), before);

    run({"setup", "docker"});
    const auto after = tree();
    EXPECT_NE(run({"setup", "docker", "--undo", "--print"}).out.find("+++ /dev/null"),
              std::string::npos);
    EXPECT_EQ(tree(), after);
    EXPECT_EQ(run_json({"setup", "docker", "--undo", "--print", "--json"})["differences"].size(),
              2U);
}

TEST_F(SetupContainers, UndoingDockerNamesTheContainersThatDoNotStartAnyMore) {
    const auto add = [&](char digit, const char *name, const std::string &runtime) {
        add_docker("srv/docker", digit, name, runtime);
    };

    sandbox_.write(settings, R"({"data-root": "/srv/docker", "runtimes": {"nvidia": )"
                             R"({"path": "nvidia-container-runtime"}}})");
    run({"setup", "docker"});
    add('a', "vllm", R"({"Runtime": "umacct"})");
    add('b', "other", R"({"Runtime": "nvidia"})");
    add('c', "old", R"({"Runtime": "runc"})");
    add('d', "", R"({"Runtime": "umacct"})");
    add('e', "torn", R"({"Runtime": "runc)");
    fs::create_directories(sandbox_.root() / "srv/docker/containers" / id_of('f'));

    const std::string said = "container vllm was created with Docker's runtime umacct and does not "
                             "start without it\n"
                             "container " +
                             id_of('d') +
                             " was created with Docker's runtime umacct and does not start without "
                             "it\n"
                             "container torn may have been created with Docker's runtime umacct: "
                             "what Docker wrote down about it can't be read\n"
                             "create such containers again: 'docker compose up --force-recreate', "
                             "or 'docker rm' and 'docker run'\n";
    const test::Ran printed = run({"setup", "docker", "--undo", "--print"});
    EXPECT_EQ(printed.code, 0) << printed.err;
    EXPECT_TRUE(printed.out.ends_with(said)) << printed.out;
    EXPECT_EQ(run_json({"setup", "docker", "--undo", "--print", "--json"})["stranded"],
              (json{"vllm", id_of('d'), "torn"}));
    EXPECT_EQ(run({"setup", "docker", "--print"}).out, "") << "setting it up strands none";
    const test::Ran undone = run({"setup", "docker", "--undo"});
    EXPECT_NE(undone.out.find(said), std::string::npos) << undone.out;
    EXPECT_EQ(run_json({"setup", "docker", "--undo", "--json"})["stranded"], json::array());

    // Nothing of it is lost where somebody has taken it out already.
    run({"setup", "docker"});
    sandbox_.write(settings, R"({"data-root": "/srv/docker"})");
    EXPECT_EQ(run({"setup", "docker", "--undo"}).out.find("container "), std::string::npos);
}

TEST_F(SetupContainers, UndoingDockerLooksWhereItsSettingsSayAlone) {
    const std::vector<const char *> printing{"setup", "docker", "--undo", "--print", "--json"};

    sandbox_.write(settings, R"({"data-root": "/srv/docker"})");
    run({"setup", "docker"});
    add_docker("var/lib/docker", 'a', "vllm", R"({"Runtime": "umacct"})");
    add_docker("var/lib/docker", 'b', "removed", R"({"Runtime": "umacct"})");
    EXPECT_FALSE(run_json(printing).contains("stranded")) << "that folder isn't mounted";
    add_docker("srv/docker", 'a', "", R"({"Runtime": "umacct"})");
    EXPECT_EQ(run_json(printing)["stranded"], json{id_of('a')});
}

TEST_F(SetupContainers, UndoingDockerNamesTheRuntimeOfContainersInDoubt) {
    run({"setup", "docker"});
    add_docker("var/lib/docker", 'e', "torn", "{");
    const std::string out = run({"setup", "docker", "--undo", "--print"}).out;
    EXPECT_TRUE(
        out.ends_with("\ncontainer torn may have been created with Docker's runtime umacct: "
                      "what Docker wrote down about it can't be read\n"
                      "create such containers again: 'docker compose up --force-recreate', "
                      "or 'docker rm' and 'docker run'\n"))
        << out;
}

TEST_F(SetupContainers, UndoingDockerSaysThatItDoesNotKnowTheContainers) {
    run({"setup", "docker"});
    const json printed = run_json({"setup", "docker", "--undo", "--print", "--json"});
    EXPECT_FALSE(printed.contains("stranded")) << printed;
    EXPECT_NE(
        run({"setup", "docker", "--undo", "--print"}).out.find("which these are is not known"),
        std::string::npos);
    fs::create_directories(sandbox_.root() / "var/lib/docker/containers");
    EXPECT_EQ(run_json({"setup", "docker", "--undo", "--print", "--json"})["stranded"],
              json::array());
    EXPECT_EQ(run({"setup", "docker", "--undo"}).out.find("create such containers again"),
              std::string::npos);
}

TEST_F(SetupContainers, UndoingPodmanNamesTheContainersThatHaveADevice) {
    const std::string storage = "var/lib/containers/storage/overlay-containers/";
    const auto add = [&](char digit, const std::string &config) {
        sandbox_.write(storage + id_of(digit) + "/userdata/config.json", config);
    };
    const auto listed = [](char digit, const char *name) {
        return json{{"id", id_of(digit)}, {"names", {name}}};
    };

    run({"setup", "podman"});
    EXPECT_EQ(run_json({"setup", "podman", "--undo", "--print", "--json"})["stranded"],
              json::array())
        << "there is no container";
    sandbox_.write(storage + "containers.json",
                   json{listed('a', "vllm"), listed('b', "other"), listed('c', "new")}.dump());
    sandbox_.write(storage + "volatile-containers.json", json{listed('d', "passing")}.dump());
    add('a', R"({"process": {"env": ["PATH=/bin", "UMACCT_CDI_HARD=64m"]}})");
    add('b', R"({"process": {"env": ["PATH=/bin", "NOT_UMACCT_CDI_HARD=64m"]}})");
    add('d', R"({"process": {"env": ["UMACCT_CDI_HARD=1g"]}})");

    const std::string said =
        "container vllm was created with a device umacct.io/memory and does not start without it\n"
        "container passing was created with a device umacct.io/memory and does not start without "
        "it\n"
        "container new may have been created with a device umacct.io/memory: what Podman wrote "
        "down about it can't be read\n"
        "create such containers again: 'podman rm', and 'podman run' without the device\n";
    const test::Ran printed = run({"setup", "podman", "--undo", "--print"});
    EXPECT_TRUE(printed.out.ends_with(said)) << printed.out;
    EXPECT_EQ(run_json({"setup", "podman", "--undo", "--print", "--json"})["stranded"],
              (json{"vllm", "passing", "new"}));

    run({"setup", "cdi"});
    EXPECT_EQ(run({"setup", "podman", "--undo"}).out.find("container "), std::string::npos)
        << "the devices stay";
    EXPECT_NE(run({"setup", "cdi", "--undo"}).out.find(said), std::string::npos);
}

TEST_F(SetupContainers, AFileThatWasChangedSinceIsToBeSetUpAgain) {
    sandbox_.write(containerd, some_settings);
    for (const auto &[part, file] : {std::pair("podman", "etc/containers/oci/hooks.d/umacct.json"),
                                     {"containerd", containerd},
                                     {"containerd", base},
                                     {"docker", settings}}) {
        const std::string set_up = part + std::string(": set up;");

        EXPECT_EQ(run({"setup", part}).code, 0);
        EXPECT_NE(run({"setup"}).out.find(set_up), std::string::npos) << file;
        sandbox_.write(file, file == std::string(containerd) ? "version = 2\n" : "{}");
        EXPECT_NE(run({"setup"}).out.find(part + std::string(": to be set up again")),
                  std::string::npos)
            << file;
        EXPECT_EQ(run({"setup", part}).code, 0);
        EXPECT_NE(run({"setup"}).out.find(set_up), std::string::npos) << file;
    }

    // Another part makes the devices of another machine: it is the same file.
    EXPECT_EQ(run({"setup", "cdi"}).code, 0);
    sandbox_.write(sandbox_.proc() / "meminfo", "MemTotal: 33554432 kB\n");
    EXPECT_EQ(run({"setup", "cdi"}).code, 0);
    EXPECT_NE(run({"setup"}).out.find("containerd: to be set up again"), std::string::npos);
    EXPECT_EQ(run({"setup", "containerd"}).code, 0);
    EXPECT_NE(run({"setup"}).out.find("containerd: set up;"), std::string::npos);
}

/// umacct-device-plugin(8) compares it with the start of the runtime.
TEST_F(SetupContainers, ASetupThatChangesNothingLeavesTheRecord) {
    const fs::path record = sandbox_.root() / "var/lib/umacct/setup/containerd.json";
    const fs::path same = sandbox_.root() / "same";
    const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);

    run({"setup", "containerd"});
    fs::last_write_time(record, long_ago);
    fs::create_hard_link(record, same);
    run({"setup", "containerd"});
    EXPECT_TRUE(fs::equivalent(record, same)) << "not even for a moment is it a new one";
    EXPECT_EQ(fs::last_write_time(record), long_ago);
    sandbox_.write(containerd, "version = 2\n");
    run({"setup", "containerd"});
    EXPECT_GT(fs::last_write_time(record), long_ago);
}

TEST_F(SetupContainers, DockersSettingsKeepTheirOrderAndForm) {
    const std::string text = "{\n"
                             "    \"log-driver\": \"journald\",\n"
                             "    \"data-root\": \"/srv/docker\",\n"
                             "    \"bip\": \"10.1.2.1/24\"\n"
                             "}";
    sandbox_.write(settings, text);
    fs::permissions(sandbox_.root() / settings, fs::perms(0600));
    const test::Ran ran = run({"setup", "docker"});

    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_NE(ran.out.find("-    \"bip\": \"10.1.2.1/24\"\n+    \"bip\": \"10.1.2.1/24\",\n"),
              std::string::npos)
        << "the difference is shown: " << ran.out;
    EXPECT_EQ(read(settings).find("{\n    \"log-driver\": \"journald\",\n"
                                  "    \"data-root\": \"/srv/docker\",\n"
                                  "    \"bip\": \"10.1.2.1/24\",\n"),
              0U)
        << read(settings);
    const json after = parsed(settings);
    EXPECT_EQ(after["default-runtime"], "umacct");
    EXPECT_EQ(after["runtimes"]["umacct"], (json{{"path", "/usr/lib/umacct/umacct-runtime"}}));
    EXPECT_EQ(after["features"]["cdi"], true);
    EXPECT_EQ(fs::status(sandbox_.root() / settings).permissions(), fs::perms(0600));

    EXPECT_EQ(run({"setup", "docker", "--undo"}).code, 0);
    EXPECT_EQ(read(settings), text);
    EXPECT_EQ(fs::status(sandbox_.root() / settings).permissions(), fs::perms(0600));
}

TEST_F(SetupContainers, WhatIsKeptOnlyRootMayRead) {
    const fs::path record = sandbox_.root() / "var/lib/umacct/setup/docker.json";

    sandbox_.write(settings, R"({"proxies": {"http-proxy": "http://me:secret@proxy"}})");
    fs::permissions(sandbox_.root() / settings, fs::perms(0600));
    EXPECT_EQ(run({"setup", "docker"}).code, 0);
    EXPECT_NE(read("var/lib/umacct/setup/docker.json").find("secret"), std::string::npos);
    EXPECT_EQ(fs::status(record).permissions(), fs::perms(0600));

    fs::permissions(record, fs::perms(0644));
    EXPECT_EQ(run({"setup", "docker"}).code, 0);
    EXPECT_EQ(fs::status(record).permissions(), fs::perms(0600));

    fs::permissions(record, fs::perms(0));
    if (geteuid() == 0 && seteuid(nobody) != 0)
        GTEST_SKIP() << "root may read anything";
    const test::Ran ran = run({"setup"});
    if (getuid() == 0) {
        ASSERT_EQ(seteuid(0), 0);
    }
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_NE(ran.out.find("docker: set up;"), std::string::npos) << ran.out;
}

TEST_F(SetupContainers, DockersDefaultRuntimeIsRunByOurs) {
    sandbox_.write(settings, R"({"default-runtime": "nvidia", "runtimes": {"nvidia": )"
                             R"({"path": "nvidia-container-runtime", "runtimeArgs": ["-x"]}},)"
                             R"("features": {"cdi": false}})");
    EXPECT_EQ(run({"setup", "docker"}).code, 0);
    const json after = parsed(settings);
    EXPECT_EQ(after["runtimes"]["umacct"]["runtimeArgs"],
              (json{"--umacct-runtime=nvidia-container-runtime", "-x"}));
    EXPECT_EQ(after["runtimes"]["nvidia"], after["runtimes"]["umacct"]);
    EXPECT_EQ(after["features"]["cdi"], false) << "somebody chose that";
}

TEST_F(SetupContainers, WhicheverRuntimeDockerIsAskedForIsRunByOurs) {
    const json before{
        {"runtimes",
         {{"nvidia", {{"path", "nvidia-container-runtime"}}},
          {"crun", {{"path", "/usr/bin/crun"}, {"runtimeArgs", {"-x"}}}},
          {"bare", {{"path", "/usr/bin/bare"}, {"runtimeArgs", json::array()}}},
          {"kata", {{"runtimeType", "io.containerd.kata.v2"}}},
          {"own", {{"path", "/opt/umacct-runtime"}, {"runtimeArgs", {"--umacct-runtime=x"}}}}}}};
    const std::string ours = "/usr/lib/umacct/umacct-runtime";
    sandbox_.write(settings, before.dump());
    EXPECT_EQ(run({"setup", "docker"}).code, 0);
    const json runtimes = parsed(settings)["runtimes"];
    EXPECT_EQ(runtimes["umacct"], (json{{"path", ours}}));
    EXPECT_EQ(
        runtimes["nvidia"],
        (json{{"path", ours}, {"runtimeArgs", {"--umacct-runtime=nvidia-container-runtime"}}}));
    EXPECT_EQ(runtimes["crun"],
              (json{{"path", ours}, {"runtimeArgs", {"--umacct-runtime=/usr/bin/crun", "-x"}}}));
    EXPECT_EQ(runtimes["kata"], before["runtimes"]["kata"]) << "no program that could be run";
    EXPECT_EQ(runtimes["own"]["runtimeArgs"], (json{"--umacct-runtime=x"}));

    const auto after = tree();
    EXPECT_EQ(run({"setup", "docker"}).code, 0);
    EXPECT_EQ(tree(), after) << "once more changes nothing";

    // nvidia-ctk sets its own again, and an administrator adds to what ours is told.
    json changed = parsed(settings);
    changed["runtimes"]["nvidia"] = {{"path", "nvidia-container-runtime"}, {"args", json::array()}};
    changed["runtimes"]["umacct"]["runtimeArgs"] = {"--umacct-instead-of-nvidia"};
    changed["runtimes"]["crun"]["runtimeArgs"].push_back("--umacct-instead-of-nvidia");
    sandbox_.write(settings, changed.dump(2));
    EXPECT_EQ(run({"setup", "docker"}).code, 0);
    EXPECT_EQ(parsed(settings)["runtimes"]["nvidia"]["path"], ours);
    EXPECT_EQ(parsed(settings)["runtimes"]["umacct"], changed["runtimes"]["umacct"]);

    changed = parsed(settings);
    changed["debug"] = true;
    sandbox_.write(settings, changed.dump());
    EXPECT_EQ(run({"setup", "docker", "--undo"}).code, 0);
    json wanted = before;
    wanted["debug"] = true;
    wanted["runtimes"]["nvidia"]["args"] = json::array();
    EXPECT_EQ(parsed(settings), wanted);
}

TEST_F(SetupContainers, WhatSomebodyChangedSinceStays) {
    sandbox_.write(settings, R"({"default-runtime": "crun", "runtimes": {"crun": )"
                             R"({"path": "/usr/bin/crun"}}})");
    run({"setup", "docker"});
    json changed = parsed(settings);
    changed["debug"] = true;
    sandbox_.write(settings, changed.dump());
    EXPECT_EQ(run({"setup", "docker"}).code, 0);
    EXPECT_EQ(run({"setup", "docker", "--undo"}).code, 0);
    EXPECT_EQ(parsed(settings), (json{{"default-runtime", "crun"},
                                      {"runtimes", {{"crun", {{"path", "/usr/bin/crun"}}}}},
                                      {"debug", true}}));

    // Somebody took ours out, and it is set up again.
    run({"setup", "docker"});
    sandbox_.write(settings, "{\"debug\": false}");
    run({"setup", "docker"});
    EXPECT_EQ(run({"setup", "docker", "--undo"}).code, 0);
    EXPECT_EQ(read(settings), "{\"debug\": false}");

    // There was none, and somebody added to ours.
    fs::remove(sandbox_.root() / settings);
    run({"setup", "docker"});
    changed = parsed(settings);
    changed["debug"] = true;
    sandbox_.write(settings, changed.dump());
    EXPECT_EQ(run({"setup", "docker", "--undo"}).code, 0);
    EXPECT_EQ(parsed(settings), (json{{"debug", true}}));
}

TEST_F(SetupContainers, WhatHasNothingOfOursStaysAsItIsWritten) {
    const std::string docker = "{\"debug\":true,\n\n   \"data-root\":  \"/srv\"}";
    sandbox_.write(settings, docker);
    sandbox_.write(containerd, "version = 2 # by hand\n");
    for (const char *part : {"docker", "containerd"})
        EXPECT_EQ(run({"setup", part}).code, 0);
    sandbox_.write(settings, docker);
    sandbox_.write(containerd, "version = 2 # by hand\n");
    for (const char *part : {"docker", "containerd"})
        EXPECT_EQ(run({"setup", part, "--undo"}).code, 0);
    EXPECT_EQ(read(settings), docker);
    EXPECT_EQ(read(containerd), "version = 2 # by hand\n");

    // There was none, and somebody wrote one instead of ours.
    for (const auto &[part, file, text] :
         {std::tuple("docker", settings, "{ }"), {"containerd", containerd, "version  = 2"}}) {
        fs::remove(sandbox_.root() / file);
        EXPECT_EQ(run({"setup", part}).code, 0);
        sandbox_.write(file, text);
        EXPECT_EQ(run({"setup", part, "--undo"}).code, 0);
        EXPECT_EQ(read(file), text);
    }
}

TEST_F(SetupContainers, WhatWasAddedBetweenTwoSetupsStays) {
    const std::string added =
        "[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.crun]\n"
        "runtime_type = 'io.containerd.runc.v2'\n"
        "[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.crun.options]\n"
        "BinaryName = '/usr/bin/crun'\n"
        "[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.plain]\n"
        "runtime_type = 'io.containerd.runc.v2'\n";
    sandbox_.write(containerd, some_settings);
    EXPECT_EQ(run({"setup", "containerd"}).code, 0);
    sandbox_.write(containerd, read(containerd) + added);
    EXPECT_EQ(run({"setup", "containerd"}).code, 0);
    EXPECT_EQ(run({"setup", "containerd", "--undo"}).code, 0);
    std::string wanted = some_settings;
    wanted.replace(wanted.find(R"(["a.example/*"])"), 15, R"([ "a.example/*" ])");
    EXPECT_EQ(read(containerd), wanted + added);
    EXPECT_FALSE(exists(base));

    // The same without the second setup: what we didn't write stays.
    sandbox_.write(containerd, some_settings);
    EXPECT_EQ(run({"setup", "containerd"}).code, 0);
    sandbox_.write(containerd, read(containerd) + added);
    EXPECT_EQ(run({"setup", "containerd", "--undo"}).code, 0);
    EXPECT_EQ(read(containerd), wanted + added);

    sandbox_.write(settings, "{\"debug\": false}");
    EXPECT_EQ(run({"setup", "docker"}).code, 0);
    json more = parsed(settings);
    more["default-runtime"] = "nvidia";
    more["runtimes"]["nvidia"] = {{"path", "nvidia-container-runtime"}};
    sandbox_.write(settings, more.dump());
    EXPECT_EQ(run({"setup", "docker"}).code, 0);
    EXPECT_EQ(run({"setup", "docker", "--undo"}).code, 0);
    EXPECT_EQ(parsed(settings),
              (json{{"debug", false},
                    {"default-runtime", "nvidia"},
                    {"runtimes", {{"nvidia", {{"path", "nvidia-container-runtime"}}}}}}));
}

TEST_F(SetupContainers, WhatDockerCouldNotReadIsLeftAlone) {
    for (const char *text : {"{", "[]", R"({"runtimes": 5})", R"({"default-runtime": "other"})",
                             R"({"features": []})"}) {
        sandbox_.write(settings, text);
        EXPECT_EQ(run({"setup", "docker"}).code, 1) << text;
        EXPECT_EQ(read(settings), text);
        EXPECT_FALSE(exists("var/lib/umacct")) << text;
    }
    sandbox_.write(settings, " \n");
    EXPECT_EQ(run({"setup", "docker"}).code, 0) << "Docker takes it for none";
    EXPECT_EQ(run({"setup", "docker", "--undo"}).code, 0);
    EXPECT_EQ(read(settings), " \n");
}

TEST_F(SetupContainers, ContainerdsContainersAreMadeWithTheHook) {
    sandbox_.write(containerd, some_settings);
    const test::Ran ran = run({"setup", "containerd"});

    EXPECT_EQ(ran.code, 0) << ran.err;
    const std::string text = read(containerd);
    std::string wanted = some_settings;
    const auto replace = [&](const std::string &from, const std::string &to) {
        wanted.replace(wanted.find(from), from.size(), to);
    };
    replace("  # as ever\n",
            "  # as ever\n"
            "      base_runtime_spec = \"/etc/containerd/umacct-base.json\"\n"
            "      container_annotations = [ \"org.umacct.*\", \"umacct.io/*\" ]\n");
    replace(R"(["a.example/*"])", R"([ "a.example/*", "org.umacct.*" ])");
    EXPECT_EQ(text.substr(0, wanted.size()), wanted) << "all else is as it was, comments too";
    EXPECT_EQ(text.substr(std::min(text.size(), wanted.size())),
              "\n# By 'umacct setup containerd'.\n"
              "[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.nvidia]\n"
              "  base_runtime_spec = \"/etc/containerd/umacct-base.json\"\n"
              "  container_annotations = [ \"org.umacct.*\", \"umacct.io/*\" ]\n"
              "  pod_annotations = [ \"org.umacct.*\" ]\n"
              "  runtime_type = \"io.containerd.runc.v2\"\n");
    EXPECT_NE(ran.out.find("+      base_runtime_spec = "), std::string::npos) << ran.out;

    const json spec = parsed(base);
    EXPECT_EQ(spec["hooks"]["createRuntime"][0]["path"], "/usr/lib/umacct/umacct-hook");
    EXPECT_EQ(spec["process"], (json{{"args", {"sh"}}}))
        << "what containerd takes out where it is told of no specification";
    EXPECT_EQ(spec["linux"], (json{{"namespaces", json::array()}}));

    EXPECT_EQ(run({"setup", "containerd"}).code, 0);
    EXPECT_EQ(read(containerd), text) << "once more changes nothing";
    EXPECT_EQ(run({"setup", "containerd", "--undo"}).code, 0);
    EXPECT_EQ(read(containerd), some_settings);
    EXPECT_FALSE(exists(base));
}

TEST_F(SetupContainers, ContainerdsOwnSettingsOfTheNewVersion) {
    sandbox_.write(containerd, "version = 3\n");
    EXPECT_EQ(run({"setup", "containerd"}).code, 0);
    EXPECT_NE(read(containerd)
                  .find("[plugins.\"io.containerd.cri.v1.runtime\".containerd.runtimes.runc]\n"),
              std::string::npos)
        << read(containerd);
}

TEST_F(SetupContainers, ContainerdsSpecificationOfSomebodysIsTheBase) {
    sandbox_.write("etc/containerd/mine.json", R"({"process": {"rlimits": [{"type": "x"}]}})");
    sandbox_.write(containerd, "version = 2\n"
                               "[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes]\n"
                               "runc = {base_runtime_spec = '/etc/containerd/mine.json'}\n");
    const std::string before = read(containerd);
    EXPECT_EQ(run({"setup", "containerd"}).code, 0);
    EXPECT_EQ(run({"setup", "containerd"}).code, 0) << "once more does no harm";
    const json spec = parsed("etc/containerd/umacct-base-runc.json");
    EXPECT_EQ(spec["process"]["rlimits"], (json{{{"type", "x"}}}));
    EXPECT_EQ(spec["hooks"]["createRuntime"].size(), 1U);
    EXPECT_NE(read(containerd).find("/etc/containerd/umacct-base-runc.json"), std::string::npos)
        << read(containerd);
    EXPECT_EQ(run({"setup", "containerd", "--undo"}).code, 0);
    EXPECT_EQ(read(containerd), before);
    EXPECT_FALSE(exists("etc/containerd/umacct-base-runc.json"));
}

TEST_F(SetupContainers, WhatSomebodyChangedInContainerdsSettingsStays) {
    sandbox_.write(containerd, some_settings);
    EXPECT_EQ(run({"setup", "containerd"}).code, 0);
    const auto change = [&] {
        std::string text = read(containerd);
        text.replace(text.find("pause:1"), 7, "pause:2");
        sandbox_.write(containerd, "# mine\n" + text);
    };
    change();
    EXPECT_EQ(run({"setup", "containerd", "--undo"}).code, 0);
    std::string wanted = std::string("# mine\n") + some_settings;
    wanted.replace(wanted.find("pause:1"), 7, "pause:2");
    wanted.replace(wanted.find(R"(["a.example/*"])"), 15, R"([ "a.example/*" ])");
    EXPECT_EQ(read(containerd), wanted);

    // There was none, and somebody added to ours.
    fs::remove(sandbox_.root() / containerd);
    EXPECT_EQ(run({"setup", "containerd"}).code, 0);
    sandbox_.write(containerd, "oom_score = 5\n" + read(containerd));
    EXPECT_EQ(run({"setup", "containerd", "--undo"}).code, 0);
    EXPECT_EQ(read(containerd), "oom_score = 5\nversion = 2\n");
}

TEST_F(SetupContainers, FilesThatContainerdReadsBesidesHaveTheHook) {
    sandbox_.write(containerd, "version = 2\nimports = [\"/etc/containerd/conf.d/*.toml\"]\n");
    sandbox_.write("etc/containerd/conf.d/99-nvidia.toml",
                   "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.nvidia]"
                   "\nruntime_type = \"io.containerd.runc.v2\"\n");
    sandbox_.write("etc/containerd/conf.d/10-other.toml", "version = 2\noom_score = 1\n");
    const auto before = tree();
    EXPECT_EQ(run({"setup", "containerd"}).code, 0);
    const std::string text = read("etc/containerd/conf.d/99-nvidia.toml");
    EXPECT_NE(text.find("runtimes.runc]"), std::string::npos)
        << "containerd 1 takes a plugin's settings from the last file: " << text;
    EXPECT_EQ(read("etc/containerd/conf.d/10-other.toml"), "version = 2\noom_score = 1\n");
    EXPECT_EQ(run({"setup", "containerd", "--undo"}).code, 0);
    EXPECT_EQ(tree(), before);
}

TEST_F(SetupContainers, AFileThatContainerdReadsBesidesMayComeBackAfterASetup) {
    const std::string file = "etc/containerd/conf.d/99-nvidia.toml";
    sandbox_.write(containerd, "version = 2\nimports = [\"/etc/containerd/conf.d/*.toml\"]\n");
    sandbox_.write("etc/containerd/own.json", "{}");
    sandbox_.write(file,
                   "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.nvidia]"
                   "\nbase_runtime_spec = \"/etc/containerd/own.json\"\n");
    const auto before = tree();
    EXPECT_EQ(run({"setup", "containerd"}).code, 0);
    const std::string with_hook = read(file);
    fs::remove(sandbox_.root() / file);
    fs::remove(sandbox_.root() / "etc/containerd/umacct-base-nvidia.json");
    EXPECT_NE(run({"setup"}).out.find("containerd: to be set up again"), std::string::npos);
    EXPECT_EQ(run({"setup", "containerd"}).code, 0);
    EXPECT_NE(run({"setup"}).out.find("containerd: set up;"), std::string::npos);
    EXPECT_EQ(read("var/lib/umacct/setup/containerd.json").find("umacct-base-nvidia.json\","),
              std::string::npos);

    sandbox_.write(file, with_hook);
    EXPECT_EQ(run({"setup", "containerd", "--undo"}).code, 0);
    EXPECT_EQ(tree(), before) << "nothing in it names a file that isn't there";
}

TEST_F(SetupContainers, WhatContainerdCouldNotReadIsLeftAlone) {
    for (const char *text :
         {"version = ", "version = 1\n", "disabled_plugins = [\"cri\"]\n",
          "version = 2\nplugins = 5\n", "version = 2\nimports = [\"/etc/containerd/bad.toml\"]\n",
          R"(version = 2
plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.base_runtime_spec = "/nowhere"
)"}) {
        sandbox_.write("etc/containerd/bad.toml", "x");
        sandbox_.write(containerd, text);
        EXPECT_EQ(run({"setup", "containerd"}).code, 1) << text;
        EXPECT_EQ(read(containerd), text);
        EXPECT_FALSE(exists("var/lib/umacct")) << text;
    }
    fs::remove(sandbox_.root() / containerd);
    sandbox_.write("usr/bin/ctr", "#!/bin/sh\necho no socket >&2; exit 3\n");
    EXPECT_NE(run({"setup", "containerd"}).err.find("no socket"), std::string::npos);
    sandbox_.write("usr/bin/ctr", "#!/bin/sh\necho '[]'\n");
    EXPECT_EQ(run({"setup", "containerd"}).code, 1);
    EXPECT_FALSE(exists(containerd));
}

TEST_F(SetupContainers, ALinkStaysOne) {
    sandbox_.write("etc/elsewhere.json", "{}");
    fs::create_directories(sandbox_.root() / "etc/docker");
    fs::create_symlink(sandbox_.root() / "etc/elsewhere.json", sandbox_.root() / settings);
    EXPECT_EQ(run({"setup", "docker"}).code, 0);
    EXPECT_TRUE(fs::is_symlink(sandbox_.root() / settings));
    EXPECT_NE(read("etc/elsewhere.json"), "{}");
    EXPECT_EQ(run({"setup", "docker", "--undo"}).code, 0);
    EXPECT_TRUE(fs::is_symlink(sandbox_.root() / settings));
    EXPECT_EQ(read("etc/elsewhere.json"), "{}");
}

TEST_F(SetupContainers, WithoutTheProgramsNothingIsSetUp) {
    fs::remove_all(sandbox_.root() / "usr");
    const test::Ran ran = run({"setup", "podman"});

    EXPECT_EQ(ran.code, 3);
    EXPECT_NE(ran.err.find("umacct-hook is not installed"), std::string::npos) << ran.err;
    EXPECT_FALSE(exists("etc/containers"));
    EXPECT_EQ(run({"setup", "nvml", "--print"}).code, 2);
    EXPECT_EQ(run({"setup", "--undo"}).code, 2);
}

TEST_F(SetupContainers, ABrokenRecordIsSaid) {
    sandbox_.write("var/lib/umacct/setup/podman.json", "{");
    EXPECT_EQ(run({"setup", "podman", "--undo"}).code, 1);
    EXPECT_NE(run({"setup", "podman", "--undo"}).err.find("is no record"), std::string::npos);
}

TEST(Difference, ShowsWhatDiffersWithSomeLinesAround) {
    const auto difference = [](const std::string &before, const std::string &after) {
        const std::string text =
            containers::difference({.file = "f", .before = before, .after = after});
        return text.substr(text.find('\n', text.find("+++")) + 1);
    };

    EXPECT_EQ(difference("a\n", "a\n"), "");
    EXPECT_EQ(difference("a\nb\nc\n", "a\nx\nc\n"), " a\n-b\n+x\n c\n");
    EXPECT_EQ(difference("a", "a\n"), "-a\n+a\n");
    EXPECT_EQ(difference("1\n2\n3\n4\n5\n", "1\n2\n3\n4\n5\n6\n"), " ...\n 3\n 4\n 5\n+6\n");
}

} // namespace
} // namespace umacct
