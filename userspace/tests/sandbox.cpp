// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/sandbox.h"

#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include <linux/magic.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/host/umacctd.h"

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

OnTmpfs::OnTmpfs() {
    struct statfs info {};

    if (const char *was = std::getenv("TMPDIR"))
        was_ = was;
    if (statfs("/dev/shm", &info) == 0 && info.f_type == TMPFS_MAGIC &&
        access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 1);
}

void OnTmpfs::put_back() const {
    if (was_)
        setenv("TMPDIR", was_->c_str(), 1);
    else
        unsetenv("TMPDIR");
}

RunningDaemon::RunningDaemon(const fs::path &root) {
    std::array<int, 2> locked{};
    char byte = 0;

    if (pipe(locked.data()) != 0 || (pid_ = fork()) < 0)
        throw std::runtime_error("no process");
    if (pid_ == 0) {
        const Instance instance(root);

        // NOLINTNEXTLINE(cppcoreguidelines-pro-type-cstyle-cast): SIG_IGN is the system's
        std::signal(SIGHUP, SIG_IGN);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (write(locked[1], &byte, 1) == 1)
            pause();
        _exit(1);
    }
    close(locked[1]);
    const ssize_t got = read(locked[0], &byte, 1);
    close(locked[0]);
    if (got != 1)
        throw std::runtime_error("no lock of umacctd's");
}

RunningDaemon::~RunningDaemon() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
}

} // namespace umacct::test
