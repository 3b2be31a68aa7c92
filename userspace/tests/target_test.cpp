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
        sandbox_.add_cgroup("/user.slice/user-1.slice/user@1.service/app.slice/app.service");
        sandbox_.add_cgroup("/user.slice/user-2.slice/user@2.service/app.slice/app.service");
        sandbox_.add_process(42, "/system.slice/ollama.service");
        sandbox_.add_process(43, "/gone");
        sandbox_.add_process(1234, "/user.slice");
        sandbox_.add_cgroup("/docker/" + digits_);
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

    std::string hint(const std::string &text) {
        try {
            return "taken as " + path(text);
        } catch (const Error &error) {
            return error.hint();
        }
    }

    const std::string digits_ = "1234" + std::string(60, '5');
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
    EXPECT_EQ(target.found, FoundBy::pid);
    EXPECT_EQ(path("pid:42"), target.path);
    EXPECT_EQ(error("pid:44"), "TARGET 'pid:44': there is no such process");
    EXPECT_EQ(error("pid:x"), "TARGET 'pid:x': there is no such process");
    EXPECT_EQ(error("pid:"), "TARGET 'pid:' names no process");
    EXPECT_EQ(error("44"), "TARGET '44': there is no such cgroup or process");
    EXPECT_EQ(error("43"), "TARGET '43': there is no such cgroup or process");
}

TEST_F(Targets, AUnitWithOrWithoutItsSuffix) {
    EXPECT_EQ(path("ollama.service"), "/system.slice/ollama.service");
    EXPECT_EQ(path("ollama"), "/system.slice/ollama.service");
    EXPECT_EQ(path("user.slice"), "/user.slice");
    EXPECT_NE(hint("stopped.service").find("what is not running has no cgroup"), std::string::npos);
}

// A service's start asks by that: see umacct-generator.
TEST_F(Targets, AUnitIsFoundWithoutReadingWhatContainersAreCalled) {
    sandbox_.write(sandbox_.root() / "var/lib/docker/containers" / docker_id / "config.v2.json",
                   R"({"Name":"/ollama.service"})");
    EXPECT_EQ(path("unit:ollama.service"), "/system.slice/ollama.service");
    EXPECT_EQ(owners_.files().children(), 0U);
    EXPECT_EQ(path("container:ollama.service"), docker_path_);
    EXPECT_EQ(owners_.files().children(), 1U);
}

TEST_F(Targets, AContainerByTheBeginningOfItsId) {
    EXPECT_EQ(path("4f5a9c"), docker_path_);
    EXPECT_EQ(path(docker_id), docker_path_);
    EXPECT_EQ(path("4f5a0000"), std::string("/docker/") + other_id);
}

// It limited the whole cgroup of a process, whose pid a container's id began with.
TEST_F(Targets, ANumberThatIsAPidAndTheBeginningOfAnIdIsRefused) {
    EXPECT_EQ(error("1234"), "TARGET '1234' is a process, in /user.slice, and the beginning of "
                             "the id of /docker/" +
                                 digits_);
    EXPECT_EQ(hint("1234"), "write pid:1234 or container:1234");
    EXPECT_EQ(path("pid:1234"), "/user.slice");
    EXPECT_EQ(path("container:1234"), "/docker/" + digits_);
    EXPECT_EQ(error("12345"), "TARGET '12345': there is no such cgroup or process");
    EXPECT_EQ(hint("12345"),
              "for /docker/" + digits_ + ", whose id begins so, write container:12345");
    EXPECT_EQ(path(digits_), "/docker/" + digits_) << "a whole id is no pid";
    EXPECT_EQ(error("container:123"), "TARGET 'container:123': there is no such container");
}

TEST_F(Targets, APrefixLeavesNoDoubt) {
    sandbox_.add_cgroup("/ollama");
    EXPECT_EQ(path("ollama"), "/ollama") << "a path comes first";
    EXPECT_EQ(path("unit:ollama"), "/system.slice/ollama.service");
    EXPECT_EQ(path("path:ollama"), "/ollama");
    EXPECT_EQ(path("path:/ollama"), "/ollama");
    EXPECT_EQ(error("container:ollama"), "TARGET 'container:ollama': there is no such container");
    EXPECT_EQ(error("pod:ollama"), "TARGET 'pod:ollama': there is no such pod");
    EXPECT_EQ(error("path:ollama.service"),
              "TARGET 'path:ollama.service': there is no such cgroup");
    EXPECT_EQ(error("unit:4f5a9c"), "TARGET 'unit:4f5a9c': there is no such unit");
}

TEST_F(Targets, WhatATenantMakesTakesNoNameAway) {
    const std::string session = "/user.slice/user-1000.slice/user@1000.service";

    sandbox_.add_cgroup(session + "/app.slice/ollama.service");
    sandbox_.add_cgroup(docker_path_ + "/system.slice/ollama.service");
    sandbox_.add_cgroup(session + "/docker-" + docker_id + ".scope");
    sandbox_.add_cgroup(session + "/app.slice/mine.service");
    EXPECT_EQ(path("ollama"), "/system.slice/ollama.service");
    EXPECT_EQ(path("4f5a9c"), docker_path_);
    EXPECT_EQ(path(docker_id), docker_path_);
    EXPECT_EQ(path("mine"), session + "/app.slice/mine.service") << "but it has names, too";
    EXPECT_EQ(resolve_target("mine", cgroups_, owners_).found, FoundBy::unit);
}

// Its root called a service as the machine's.
TEST_F(Targets, WhatAnLxcContainerRunsIsNoUnitOfTheMachines) {
    sandbox_.add_cgroup("/lxc.payload.t/system.slice/ollama.service");
    sandbox_.add_cgroup("/lxc/u/system.slice/ollama.service");
    EXPECT_EQ(path("ollama"), "/system.slice/ollama.service");
    EXPECT_EQ(path("container:t"), "/lxc.payload.t");
    EXPECT_TRUE(is_made_inside("/lxc.payload.t/x", owners_));
    EXPECT_TRUE(is_made_inside("/lxc/u/x", owners_));
    EXPECT_TRUE(is_made_inside("/tenant/lxc.payload.t/x", owners_));
    EXPECT_FALSE(is_made_inside("/lxc.payload.t", owners_));
}

TEST_F(Targets, AMachineOfNspawnsByItsUnitAndItsName) {
    const std::string scope = "/machine.slice/machine-my\\x2dbox.scope";
    const std::string service = "/machine.slice/systemd-nspawn@train.service";

    sandbox_.add_cgroup(scope + "/payload/system.slice/train.service");
    sandbox_.add_cgroup(service + "/payload/machine.slice/machine-inner.scope");
    EXPECT_EQ(path("my-box"), scope);
    EXPECT_EQ(path("machine-my\\x2dbox.scope"), scope);
    EXPECT_EQ(path("train"), service);
    EXPECT_EQ(path("container:train"), service);
    EXPECT_EQ(path("unit:systemd-nspawn@train"), service);
    EXPECT_EQ(resolve_target("train", cgroups_, owners_).found, FoundBy::name);
    EXPECT_EQ(error("unit:train"), "TARGET 'unit:train': there is no such unit");
    EXPECT_EQ(error("inner"), "TARGET 'inner': there is no such cgroup") << "a machine's own";
    sandbox_.add_cgroup("/system.slice/train.service");
    EXPECT_EQ(path("train"), "/system.slice/train.service") << "a unit comes before a name";
}

TEST_F(Targets, ANameComesBeforeAnIdAndAUnitBeforeANameUnlessItIsATenants) {
    sandbox_.write("var/lib/docker/containers/" + std::string(other_id) + "/config.v2.json",
                   R"({"Name":"/4f5a9c0"})");
    EXPECT_EQ(path("4f5a9c0"), std::string("/docker/") + other_id);
    EXPECT_EQ(resolve_target("4f5a9c0", cgroups_, owners_).found, FoundBy::name);
    EXPECT_EQ(resolve_target("4f5a9c", cgroups_, owners_).found, FoundBy::id);

    sandbox_.add_cgroup("/user.slice/user-1000.slice/user@1000.service/4f5a9c0.service");
    EXPECT_EQ(path("4f5a9c0"), std::string("/docker/") + other_id);
    sandbox_.add_cgroup("/system.slice/4f5a9c0.service");
    EXPECT_EQ(path("4f5a9c0"), "/system.slice/4f5a9c0.service");
    EXPECT_EQ(path("container:4f5a9c0"), std::string("/docker/") + other_id);
}

TEST_F(Targets, WhatIsAmbiguousIsRefusedWithTheChoices) {
    const std::string units = error("app.service");

    EXPECT_NE(units.find("names 2 cgroups"), std::string::npos);
    EXPECT_NE(units.find("/user.slice/user-1.slice/user@1.service/app.slice/app.service"),
              std::string::npos);
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
