// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/sandbox.h"

#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include <sys/stat.h>

namespace umacct::test {

namespace fs = std::filesystem;

namespace {

fs::path make_directory() {
    std::string name = (fs::temp_directory_path() / "umacct.XXXXXX").string();

    if (mkdtemp(name.data()) == nullptr)
        throw std::runtime_error("no temporary directory");
    // Some of what is read here is read as another user.
    fs::permissions(name, fs::perms(0755));
    return name;
}

} // namespace

Sandbox::Sandbox(const std::string &root) : top_(make_directory()) {
    fs::create_directories(cgroup_mount());
    write(proc() / "self/mountinfo",
          "22 1 0:21 / " + proc().string() + " rw - proc proc rw\n" + //
              "30 1 0:26 " + root + " " + cgroup_mount().string() +
              " rw,nosuid - cgroup2 none rw\n");
    write(proc() / "meminfo", "MemTotal:       16777216 kB\n"
                              "MemFree:         1048576 kB\n"
                              "MemAvailable:    2097152 kB\n"
                              "HugePages_Total:       4\n");
}

Sandbox::~Sandbox() {
    std::error_code ignored;

    fs::remove_all(top_, ignored);
}

std::uint64_t Sandbox::add_cgroup(const std::string &path) const {
    const fs::path directory = cgroup_mount() / path.substr(1);

    struct stat info {};

    fs::create_directories(directory);
    if (stat(directory.c_str(), &info) != 0)
        throw std::runtime_error("no cgroup " + path);
    return info.st_ino;
}

void Sandbox::add_process(std::uint32_t pid, const std::string &cgroup) const {
    write(proc() / std::to_string(pid) / "cgroup",
          "1:name=systemd:/elsewhere\n0::" + cgroup + "\n");
}

void Sandbox::write(const fs::path &file, const std::string &text) const {
    const fs::path path = top_ / file;

    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
}

} // namespace umacct::test
