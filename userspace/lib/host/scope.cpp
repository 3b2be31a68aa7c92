// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/scope.h"

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/host/argv.h"

namespace umacct {

namespace {

using namespace std::chrono_literals;

constexpr auto poll_interval = 10ms;
constexpr int poll_attempts = 500;

bool systemd_runs() {
    return std::filesystem::is_directory("/run/systemd/system");
}

/// Calls done until it is true or 5 s are over.
template <class Done>
bool wait_until(Done done) {
    for (int attempt = 0; attempt < poll_attempts; ++attempt) {
        if (done())
            return true;
        std::this_thread::sleep_for(poll_interval);
    }
    return false;
}

/// Runs a program with our standard error; whether it exited with 0.
bool run_program(const std::vector<std::string> &words) {
    pid_t pid = 0;
    int status = 0;

    if (posix_spawnp(&pid, words.front().c_str(), nullptr, nullptr, argv_of(words).data(),
                     environ) != 0)
        return false;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// Not "systemd-run --scope": the command would run before its limits are set.
std::string start_scope(const Cgroups &cgroups, const std::string &name,
                        const std::vector<pid_t> &members) {
    const std::string unit = name + ".scope";
    std::vector<std::string> call{"busctl",
                                  "call",
                                  "--quiet",
                                  "org.freedesktop.systemd1",
                                  "/org/freedesktop/systemd1",
                                  "org.freedesktop.systemd1.Manager",
                                  "StartTransientUnit",
                                  "ssa(sv)a(sa(sv))",
                                  unit,
                                  "fail",
                                  "4",
                                  "Description",
                                  "s",
                                  "Command under umacct run",
                                  "CollectMode",
                                  "s",
                                  "inactive-or-failed",
                                  "MemoryAccounting",
                                  "b",
                                  "true",
                                  "PIDs",
                                  "au",
                                  std::to_string(members.size())};

    for (const pid_t pid : members)
        call.push_back(std::to_string(pid));
    call.emplace_back("0");
    if (!run_program(call))
        throw Error(
            Failure::failed, fmt::format("systemd did not start the scope {}", unit),
            "its own message is above: it is asked over D-Bus, and --name takes another name");

    // The call returns when the job is queued.
    std::string path;
    const bool placed = wait_until([&] {
        for (const pid_t pid : members) {
            path = cgroups.of_pid(static_cast<std::uint32_t>(pid)).value_or("");
            if (base_name(path) != unit)
                return false;
        }
        return true;
    });
    if (!placed)
        throw Error(Failure::failed, fmt::format("systemd did not move the command to {}", unit));
    return path;
}

/// The nearest cgroup, from our own upwards, whose children have a memory controller.
std::string usable_parent(const Cgroups &cgroups) {
    std::string own = cgroups.of_self();

    for (std::string at = own;; at = parent_path(at)) {
        const auto controllers = cgroups.read(at, "cgroup.subtree_control");

        if (controllers && (" " + *controllers + " ").find(" memory ") != std::string::npos)
            return at;
        if (at == "/")
            return own;
    }
}

[[noreturn]] void throw_errno(const std::string &doing) {
    const bool permission = errno == EACCES || errno == EPERM || errno == EROFS;

    throw Error(permission ? Failure::permission : Failure::failed,
                fmt::format("{}: {}", doing, std::generic_category().message(errno)),
                permission ? "run it as root on the host" : "");
}

std::string make_directory(const Cgroups &cgroups, const std::string &name,
                           const std::vector<pid_t> &members) {
    std::string path = join_path(usable_parent(cgroups), name);
    const auto directory = cgroups.directory(path);

    if (!directory)
        throw Error(Failure::failed, "the cgroup file system shows another part of the hierarchy",
                    "run it outside the container");
    if (mkdir(directory->c_str(), 0755) != 0)
        throw_errno("making the cgroup " + path);
    try {
        for (const pid_t pid : members)
            cgroups.write(path, "cgroup.procs", std::to_string(pid));
    } catch (...) {
        rmdir(directory->c_str());
        throw;
    }
    return path;
}

void remove_directories(const std::filesystem::path &directory) {
    std::error_code ignored;

    for (const auto &entry : std::filesystem::directory_iterator(directory, ignored)) {
        if (entry.is_directory(ignored))
            remove_directories(entry.path());
    }
    rmdir(directory.c_str());
}

} // namespace

Scope::Scope(const Cgroups &cgroups, const std::string &name, const std::vector<pid_t> &members)
    : cgroups_(cgroups),
      path_(systemd_runs() ? start_scope(cgroups, name, members)
                           : make_directory(cgroups, name, members)) {}

Scope::~Scope() {
    try {
        cgroups_.write(path_, "cgroup.kill", "1");
        // What was killed takes a moment to go. systemd removes its scope itself.
        wait_until([this] {
            if (!systemd_runs())
                remove_directories(*cgroups_.directory(path_));
            return !cgroups_.exists(path_);
        });
    } catch (const std::exception &) {
        // The scope is gone already.
    }
}

} // namespace umacct
