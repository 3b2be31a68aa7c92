// SPDX-License-Identifier: GPL-2.0-or-later
/// A directory with a cgroup hierarchy and a /proc made of plain files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <sys/types.h>

namespace umacct::test {

class Sandbox {
public:
    /// root: path of the cgroup that is mounted at cgroup_mount().
    explicit Sandbox(const std::string &root = "/");
    Sandbox(const Sandbox &) = delete;
    Sandbox &operator=(const Sandbox &) = delete;
    Sandbox(Sandbox &&) = delete;
    Sandbox &operator=(Sandbox &&) = delete;
    ~Sandbox();

    /// Returns the folder that stands for "/".
    const std::filesystem::path &root() const { return top_; }

    std::filesystem::path proc() const { return top_ / "proc"; }

    std::filesystem::path cgroup_mount() const { return top_ / "cgroup"; }

    /// Makes the cgroup, below the mount point; its id.
    std::uint64_t add_cgroup(const std::string &path) const;
    void add_process(std::uint32_t pid, const std::string &cgroup) const;
    /// file: an absolute path, or one from the directory that holds all of it.
    void write(const std::filesystem::path &file, const std::string &text) const;

private:
    std::filesystem::path top_;
};

/// A disk is slower than cgroupfs by far: where there is a tmpfs, sandboxes that are made before
/// put_back() are there.
class OnTmpfs {
protected:
    OnTmpfs();
    void put_back() const;

private:
    std::optional<std::string> was_;
};

/// umacctd, as far as others can see that it runs: another process that has its lock.
class RunningDaemon {
public:
    explicit RunningDaemon(const std::filesystem::path &root);
    RunningDaemon(const RunningDaemon &) = delete;
    RunningDaemon &operator=(const RunningDaemon &) = delete;
    RunningDaemon(RunningDaemon &&) = delete;
    RunningDaemon &operator=(RunningDaemon &&) = delete;
    ~RunningDaemon();

private:
    pid_t pid_;
};

} // namespace umacct::test
