// SPDX-License-Identifier: GPL-2.0-or-later
/// umacct setup secure-boot. mokutil needs a firmware: a program of that name takes its place, and
/// keeps how it was called and the hash that it was given.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <unistd.h>

#include "lib/host/library.h"
#include "tests/tool_fixture.h"

namespace umacct {
namespace {

namespace fs = std::filesystem;

class SecureBoot : public test::ToolFixture {
protected:
    SecureBoot() : path_(std::getenv("PATH")) {
        sandbox_.write("sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
        sandbox_.write("bin/mokutil", "#!/bin/sh\nd=" + at("called") +
                                          "\necho \"$*\" >>$d\n"
                                          "[ \"$1\" != --hash-file ] || cat \"$2\" >$d.hash\n");
        fs::permissions(at("bin/mokutil"), fs::perms::owner_all);
        setenv("PATH", (at("bin") + ":" + path_).c_str(), 1);
    }

    void TearDown() override { setenv("PATH", path_.c_str(), 1); }

    std::string at(const std::string &path) const { return (sandbox_.root() / path).string(); }

    std::string text(const std::string &path) const {
        std::ostringstream all;

        all << std::ifstream(at(path)).rdbuf();
        return all.str();
    }

    void has_key() { sandbox_.write("var/lib/dkms/mok.pub", "a certificate"); }

    void in_list(const std::string &name) {
        sandbox_.write("sys/firmware/efi/efivars/" + name + "-605dab50-e046-4300-abb6-3dd810dd8b23",
                       "1234head a certificate tail");
    }

    const std::string path_;
};

TEST_F(SecureBoot, QueuesTheKeyOnceAndTellsThePasswordToNobodyElse) {
    if (geteuid() != 0)
        GTEST_SKIP() << "only root may";
    has_key();
    const test::Ran ran = run({"setup", "secure-boot"});
    const auto found = ran.out.find("Password: ");

    ASSERT_NE(found, std::string::npos) << ran.out << ran.err;
    const std::string password = ran.out.substr(found + 10, 8);
    EXPECT_EQ(password.find_first_not_of("0123456789"), std::string::npos) << password;
    EXPECT_EQ(text("called").find(password), std::string::npos);
    EXPECT_NE(text("called").find("--import " + at("var/lib/dkms/mok.pub")), std::string::npos);

    const Library library("libcrypt.so.1", "no hash");
    char *(*const crypt)(const char *, const char *) = library.find("crypt");
    const std::string hash = text("called.hash");
    EXPECT_EQ(crypt(password.c_str(), hash.c_str()), hash);

    in_list("MokNew");
    const std::string once = text("called");
    EXPECT_NE(run({"setup", "secure-boot"}).out.find("as it was printed when this was queued"),
              std::string::npos);
    EXPECT_EQ(text("called"), once) << "what is pending isn't queued again";
    EXPECT_EQ(run({"setup", "secure-boot", "--undo"}).code, 0);
    EXPECT_NE(text("called").find("--revoke-import"), std::string::npos);
}

TEST_F(SecureBoot, MakesAKeyWhereThereIsNone) {
    if (geteuid() != 0)
        GTEST_SKIP() << "only root may";
    const test::Ran ran = run({"setup", "secure-boot"});

    struct ::stat info {};

    EXPECT_NE(ran.out.find("made " + at("var/lib/dkms/mok.key")), std::string::npos)
        << ran.out << ran.err;
    ASSERT_EQ(stat(at("var/lib/dkms/mok.key").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 077U, 0U) << "others may read the key";
    EXPECT_NE(ran.out.find("dkms install --force umacct/"), std::string::npos) << ran.out;
}

TEST_F(SecureBoot, SaysWhenNothingIsToBeDone) {
    has_key();
    in_list("MokListRT");
    EXPECT_EQ(run({"setup"}).out.find("secure-boot: not set up"), std::string::npos);
    sandbox_.write("sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
    EXPECT_NE(run({"setup", "secure-boot"}).out.find("loads unsigned modules"), std::string::npos);
    EXPECT_EQ(text("called"), "");
    EXPECT_EQ(run({"setup", "secure-boot", "--undo"}).out, "secure-boot was not set up\n");
}

TEST_F(SecureBoot, SaysWhichProgramIsMissing) {
    if (geteuid() != 0)
        GTEST_SKIP() << "only root may";
    has_key();
    setenv("PATH", at("nowhere").c_str(), 1);
    const test::Ran ran = run({"setup", "secure-boot"});

    EXPECT_NE(ran.err.find("mokutil is not installed"), std::string::npos) << ran.err;
    EXPECT_NE(ran.err.find("apt install mokutil"), std::string::npos) << ran.err;
    EXPECT_EQ(ran.code, 1);
}

TEST_F(SecureBoot, TheDoctorSaysHowFarItIs) {
    fake_.status.module_version = UMACCT_VERSION;
    sandbox_.write("proc/sys/kernel/osrelease", "6.12.1-test\n");
    sandbox_.write("lib/modules/6.12.1-test/modules.dep", "updates/dkms/umacct.ko:\n");
    sandbox_.write("sys/module/umacct/taint", "OE\n");
    has_key();
    EXPECT_NE(run({"doctor"}).out.find("umacct setup secure-boot"), std::string::npos);
    in_list("MokNew");
    EXPECT_NE(run({"doctor"}).out.find("choose 'Enroll MOK' at the machine's screen"),
              std::string::npos);
}

TEST_F(SecureBoot, TheDoctorSaysWhichLaterKernelHasNoModule) {
    sandbox_.write("proc/sys/kernel/osrelease", "6.12.9-test\n");
    for (const char *release : {"6.12.9-test", "6.12.10-test", "6.12.11-test", "6.1.0-old"})
        sandbox_.write(std::string("lib/modules/") + release + "/modules.builtin", "");
    for (const char *release : {"6.12.9-test", "6.12.11-test"})
        sandbox_.write(std::string("lib/modules/") + release + "/modules.dep",
                       "updates/dkms/umacct.ko:\n");
    const std::string out = run({"doctor"}).out;

    EXPECT_NE(out.find("kernel 6.12.10-test is installed and has no umacct"), std::string::npos)
        << out;
    EXPECT_NE(out.find("apt install linux-headers-6.12.10-test"), std::string::npos) << out;
    EXPECT_EQ(out.find("6.12.11-test is installed"), std::string::npos);
    EXPECT_EQ(out.find("6.1.0-old is installed"), std::string::npos);
}

} // namespace
} // namespace umacct
