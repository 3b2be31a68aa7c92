// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/owners/target.h"

#include <gtest/gtest.h>

#include "lib/error.h"
#include "tests/sandbox.h"

namespace umacct {
namespace {

constexpr const char *docker_id =
    "4f5a9c0b7d1e2f3a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9001ab";
constexpr const char *other_id = "4f5a00007d1e2f3a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9001ab";

class Targets : public testing::Test {
protected:
    Targets() : cgroups_(sandbox_.proc()), owners_(sandbox_.proc().parent_path()) {
        docker_path_ = std::string("/system.slice/docker-") + docker_id + ".scope";
        sandbox_.add_cgroup(docker_path_ + "/init");
        sandbox_.add_cgroup(std::string("/docker/") + other_id);
        sandbox_.add_cgroup("/system.slice/ollama.service");
        sandbox_.add_cgroup("/user.slice/a/app.service");
        sandbox_.add_cgroup("/user.slice/b/app.service");
        sandbox_.add_process(42, "/system.slice/ollama.service");
        sandbox_.add_process(43, "/gone");
    }

    std::string path(const std::string &text) {
        return resolve_target(text, cgroups_, owners_).path;
    }

    std::string error(const std::string &text) {
        try {
            return "taken as " + path(text);
        } catch (const Error &error) {
            EXPECT_FALSE(error.hint().empty());
            return error.what();
        }
    }

    test::Sandbox sandbox_;
    Cgroups cgroups_;
    Owners owners_;
    std::string docker_path_;
};

TEST_F(Targets, APathFromTheRootOrWithTheMountPoint) {
    EXPECT_EQ(path("/system.slice/ollama.service"), "/system.slice/ollama.service");
    EXPECT_EQ(path("/system.slice/ollama.service/"), "/system.slice/ollama.service");
    EXPECT_EQ(path("system.slice/ollama.service"), "/system.slice/ollama.service");
    EXPECT_EQ(path(sandbox_.cgroup_mount() / "system.slice"), "/system.slice");
    EXPECT_EQ(path(sandbox_.cgroup_mount()), "/");
    EXPECT_EQ(path("/"), "/");
    EXPECT_EQ(path("/system.slice/../user.slice"), "/user.slice");
}

TEST_F(Targets, ADirectoryFromTheWorkingDirectory) {
    const auto before = std::filesystem::current_path();

    std::filesystem::current_path(sandbox_.cgroup_mount() / "system.slice");
    EXPECT_EQ(path("./ollama.service"), "/system.slice/ollama.service");
    EXPECT_EQ(path("."), "/system.slice");
    EXPECT_EQ(path("../docker"), "/docker");
    std::filesystem::current_path(before);
    EXPECT_NE(error("./x").find("not a directory of the cgroup file system"), std::string::npos);
}

TEST_F(Targets, APid) {
    const Target target = resolve_target("42", cgroups_, owners_);

    EXPECT_EQ(target.path, "/system.slice/ollama.service");
    EXPECT_EQ(target.pid, 42U);
    EXPECT_EQ(target.id, cgroups_.id(target.path));
    EXPECT_EQ(error("44"), "TARGET '44': there is no such cgroup or process");
    EXPECT_EQ(error("43"), "TARGET '43': there is no such cgroup or process");
}

TEST_F(Targets, AUnitWithOrWithoutItsSuffix) {
    EXPECT_EQ(path("ollama.service"), "/system.slice/ollama.service");
    EXPECT_EQ(path("ollama"), "/system.slice/ollama.service");
    EXPECT_EQ(path("user.slice"), "/user.slice");
}

TEST_F(Targets, AContainerByTheBeginningOfItsId) {
    EXPECT_EQ(path("4f5a9c"), docker_path_);
    EXPECT_EQ(path(docker_id), docker_path_);
    EXPECT_EQ(path("4f5a0000"), std::string("/docker/") + other_id);
}

TEST_F(Targets, WhatIsAmbiguousIsRefusedWithTheChoices) {
    const std::string units = error("app.service");

    EXPECT_NE(units.find("names 2 cgroups"), std::string::npos);
    EXPECT_NE(units.find("/user.slice/a/app.service"), std::string::npos);
    EXPECT_NE(error("4f5a").find("names 2 cgroups"), std::string::npos);
}

TEST_F(Targets, WhatDoesNotExistIsNamed) {
    EXPECT_EQ(error("/nowhere"), "TARGET '/nowhere': there is no such cgroup");
    EXPECT_EQ(error("4f5"), "TARGET '4f5': there is no such cgroup");
    EXPECT_EQ(error("beef"), "TARGET 'beef': there is no such cgroup");
    EXPECT_EQ(error("../../etc").find("taken"), std::string::npos);
    EXPECT_EQ(error("a/../../../etc"), "TARGET 'a/../../../etc': there is no such cgroup");
    EXPECT_EQ(error(""), "TARGET is empty");
}

} // namespace
} // namespace umacct
