// SPDX-License-Identifier: GPL-2.0-or-later
/// How programs come to the library with NVML's soname: umacct run --nvml, umacct setup nvml, and
/// what the doctor says of those that don't.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "tests/tool_fixture.h"
#include "tool/nvml/place.h"

namespace umacct {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class NvmlPlace : public test::ToolFixture {
protected:
    NvmlPlace() {
        unsetenv("LD_LIBRARY_PATH");
        setenv("XDG_RUNTIME_DIR", at("run").c_str(), 1);
        sandbox_.write("usr/lib/umacct/nvml/libnvidia-ml.so.1", "ours");
        sandbox_.write(real_, "the real one");
        sandbox_.write("proc/1/comm", "init\n");
        sandbox_.write("proc/1/maps", "/usr/sbin/init\n");
    }

    void TearDown() override {
        unsetenv("LD_LIBRARY_PATH");
        unsetenv("XDG_RUNTIME_DIR");
    }

    std::string at(const std::string &path) const { return (sandbox_.root() / path).string(); }

    std::string text(const std::string &path) const {
        std::ostringstream all;

        all << std::ifstream(at(path)).rdbuf();
        return all.str();
    }

    /// All files and links below the root, and the folders.
    std::map<std::string, std::string> everything() const {
        std::map<std::string, std::string> all;

        for (const auto &entry : fs::recursive_directory_iterator(sandbox_.root()))
            all[entry.path().string()] = entry.is_symlink()     ? fs::read_symlink(entry).string()
                                         : entry.is_directory() ? "folder"
                                                                : text(entry.path().string());
        return all;
    }

    json check() {
        const json document = run_json({"doctor", "--json"});
        json found;

        for (const json &each : document["checks"]) {
            if (each["check"] == "nvml")
                found = each;
        }
        return found;
    }

    const std::string real_ = "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1";
    const std::string place_ = "var/lib/umacct/nvml";
};

TEST_F(NvmlPlace, SetupMakesAFolderWithBothLibrariesAndSaysToWhom) {
    const test::Ran ran = run({"setup", "nvml"});

    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(text(place_ + "/libnvidia-ml.so.1"), "ours");
    EXPECT_EQ(text(place_ + "/libnvidia-ml.so"), "ours");
    EXPECT_EQ(text(place_ + "/libumacct-nvml-real.so.1"), "the real one");
    EXPECT_NE(ran.out.find("made " + at("etc/cdi/umacct-nvml.json")), std::string::npos);
    EXPECT_NE(text("etc/environment.d/60-umacct-nvml.conf").find("LD_LIBRARY_PATH=" + at(place_)),
              std::string::npos);

    // The name that stays when the driver is replaced is what is linked to.
    sandbox_.write(real_, "a newer one");
    EXPECT_EQ(text(place_ + "/libumacct-nvml-real.so.1"), "a newer one");
    EXPECT_EQ(run({"setup", "nvml"}).code, 0) << "once more does no harm";
}

TEST_F(NvmlPlace, ALoginHasThePathOnce) {
    const auto path_of = [this](const std::string &before) {
        const std::string file = at("login");
        const std::string profile = ". " + at("etc/profile.d/umacct-nvml.sh") + "; ";

        EXPECT_EQ(std::system((before + " sh -uc '" + profile + profile +
                               "printf %s \"$LD_LIBRARY_PATH\"' >" + file)
                                  .c_str()),
                  0);
        return text("login");
    };

    run({"setup", "nvml"});
    EXPECT_EQ(path_of(""), at(place_));
    EXPECT_EQ(path_of("LD_LIBRARY_PATH=/a:/b"), at(place_) + ":/a:/b");
}

TEST_F(NvmlPlace, ContainersHaveTheSameByCdi) {
    run({"setup", "nvml"});

    const json spec = json::parse(text("etc/cdi/umacct-nvml.json"));
    const json &edits = spec["devices"][0]["containerEdits"];
    EXPECT_EQ(spec["kind"], "umacct/nvml");
    EXPECT_EQ(spec["devices"][0]["name"], "all");
    EXPECT_EQ(edits["env"], json({"LD_LIBRARY_PATH=" + at(place_) +
                                  ":/usr/local/nvidia/lib:/usr/local/nvidia/lib64"}));
    ASSERT_EQ(edits["mounts"].size(), 3U);
    for (const json &mount : edits["mounts"]) {
        EXPECT_TRUE(fs::is_regular_file(mount["hostPath"].get<std::string>()));
        EXPECT_EQ(mount["hostPath"], mount["containerPath"]);
    }
}

TEST_F(NvmlPlace, UndoLeavesNothing) {
    fs::create_directories(at("etc/profile.d"));
    fs::create_directories(at("etc/cdi"));
    EXPECT_EQ(run({"setup", "nvml", "--undo"}).out, "nvml was not set up\n");
    EXPECT_TRUE(fs::exists(at("etc/cdi"))) << "it was there before";
    fs::remove(at("etc/cdi"));
    const auto before = everything();

    run({"setup", "nvml"});
    EXPECT_NE(everything(), before);
    const test::Ran ran = run({"setup", "nvml", "--undo"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    fs::remove(at("var/lib"));
    fs::remove(at("var"));
    EXPECT_EQ(everything(), before);
}

TEST_F(NvmlPlace, WhatIsSetUpIsListed) {
    EXPECT_NE(run({"setup"}).out.find("nvml: not set up;"), std::string::npos);
    EXPECT_EQ(run_json({"setup", "--json"})["parts"][0],
              json({{"part", "nvml"}, {"set_up", false}}));
    EXPECT_EQ(run_json({"setup", "nvml", "--json"})["files"].size(), 4U);
    EXPECT_NE(run({"setup"}).out.find("nvml: set up;"), std::string::npos);
    EXPECT_EQ(run_json({"setup", "nvml", "--undo", "--json"})["files"].size(), 4U);
    const test::Ran ran = run({"setup", "nothing"});
    EXPECT_EQ(ran.code, 2);
    EXPECT_NE(ran.err.find("there is nothing called 'nothing'"), std::string::npos);
}

TEST_F(NvmlPlace, TheRealOneIsFoundWherePackagesAndPeoplePutIt) {
    fs::create_directories(at("opt/own"));
    fs::rename(at(real_), at("opt/own/libnvidia-ml.so.1"));
    const test::Ran ran = run({"setup", "nvml"});
    EXPECT_EQ(ran.code, 3);
    EXPECT_NE(ran.err.find("there is no libnvidia-ml.so.1 of NVIDIA's"), std::string::npos);
    EXPECT_FALSE(fs::exists(at("etc"))) << "nothing is made of it";

    // Ours, which is in front where it is set up, is not taken for the real one.
    setenv("LD_LIBRARY_PATH", (at("usr/lib/umacct/nvml") + ":relative::" + at("opt/own")).c_str(),
           1);
    EXPECT_EQ(run({"setup", "nvml"}).code, 0);
    EXPECT_EQ(fs::read_symlink(at(place_ + "/libumacct-nvml-real.so.1")),
              at("opt/own/libnvidia-ml.so.1"));
    fs::remove(at("usr/lib/umacct/nvml/libnvidia-ml.so.1"));
    EXPECT_NE(run({"setup", "nvml"}).err.find("umacct's library for NVML is not installed"),
              std::string::npos);
}

TEST_F(NvmlPlace, ACommandIsRequiredAndMustBeThere) {
    EXPECT_EQ(run({"run", "--nvml"}).code, 125);
    const test::Ran ran = run({"run", "--nvml", "--", "/no/such/program"});
    EXPECT_EQ(ran.code, 127);
    EXPECT_NE(ran.err.find("/no/such/program: No such file"), std::string::npos);
    EXPECT_EQ(text("run/umacct/nvml/libnvidia-ml.so.1"), "ours") << "a place of the caller's own";
    EXPECT_EQ(text("run/umacct/nvml/libumacct-nvml-real.so.1"), "the real one");
}

TEST_F(NvmlPlace, TheDoctorFindsWhoIsNotAnswered) {
    EXPECT_NE(check()["text"].get<std::string>().find("not set up"), std::string::npos);
    EXPECT_EQ(check()["state"], "ok");
    run({"setup", "nvml"});
    EXPECT_EQ(check()["state"], "ok");
    EXPECT_NE(
        check()["text"].get<std::string>().find("no running program uses NVML without umacct"),
        std::string::npos);

    sandbox_.write("proc/7/comm", "nvtop\n");
    sandbox_.write("proc/7/maps",
                   "/var/lib/umacct/nvml/libnvidia-ml.so.1\n/usr/lib/libnvidia-ml.so.580\n");
    EXPECT_EQ(check()["state"], "ok");
    sandbox_.write("proc/7/maps", "/usr/lib/libnvidia-ml.so.580\n");
    EXPECT_EQ(check()["state"], "warn");
    EXPECT_NE(check()["text"].get<std::string>().find("1 asked NVML without umacct: nvtop (7)"),
              std::string::npos);
    sandbox_.write("proc/7/maps", "/usr/lib/libcuda.so.580\n");
    sandbox_.write("proc/8/comm", "exporter\n");
    sandbox_.write("proc/8/maps", "/opt/exporter\n");
    EXPECT_EQ(check()["state"], "ok");
    for (const char *pid : {"7", "8"}) {
        fs::create_directories(at("proc") + "/" + pid + "/fd");
        fs::create_symlink("/dev/nvidiactl", at("proc") + "/" + pid + "/fd/3");
    }
    EXPECT_EQ(check()["state"], "warn");
    EXPECT_NE(check()["text"].get<std::string>().find("as a static program does: exporter (8)"),
              std::string::npos);

    fs::remove(at(real_));
    EXPECT_NE(check()["text"].get<std::string>().find("is gone"), std::string::npos);
}

} // namespace
} // namespace umacct
