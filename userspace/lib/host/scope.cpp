// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/scope.h"

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <sys/stat.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/hints.h"
#include "lib/host/library.h"

namespace umacct {

namespace {

using namespace std::chrono_literals;

constexpr auto poll_interval = 10ms;
constexpr int poll_attempts = 500;
constexpr auto longest_wait = 10s;

struct Libsystemd {
    Library library{"libsystemd.so.0", "cannot ask systemd"};
    decltype(&sd_bus_open_system) open_system = library.find("sd_bus_open_system");
    decltype(&sd_bus_flush_close_unref) close = library.find("sd_bus_flush_close_unref");
    decltype(&sd_bus_match_signal) match_signal = library.find("sd_bus_match_signal");
    decltype(&sd_bus_process) process = library.find("sd_bus_process");
    decltype(&sd_bus_wait) wait = library.find("sd_bus_wait");
    decltype(&sd_bus_call) call = library.find("sd_bus_call");
    decltype(&sd_bus_message_new_method_call) new_method_call =
        library.find("sd_bus_message_new_method_call");
    decltype(&sd_bus_message_unref) message_unref = library.find("sd_bus_message_unref");
    decltype(&sd_bus_message_read) read = library.find("sd_bus_message_read");
    decltype(&sd_bus_message_append) append = library.find("sd_bus_message_append");
    decltype(&sd_bus_message_append_array) append_array =
        library.find("sd_bus_message_append_array");
    decltype(&sd_bus_message_open_container) open_container =
        library.find("sd_bus_message_open_container");
    decltype(&sd_bus_message_close_container) close_container =
        library.find("sd_bus_message_close_container");
    decltype(&sd_bus_error_free) error_free = library.find("sd_bus_error_free");
};

const Libsystemd &lib() {
    static const Libsystemd loaded;

    return loaded;
}

struct BusFree {
    void operator()(sd_bus *bus) const { lib().close(bus); }
};

struct BusMessageFree {
    void operator()(sd_bus_message *message) const { lib().message_unref(message); }
};

using Bus = std::unique_ptr<sd_bus, BusFree>;
using BusMessage = std::unique_ptr<sd_bus_message, BusMessageFree>;

constexpr const char *manager[] = {"org.freedesktop.systemd1", "/org/freedesktop/systemd1",
                                   "org.freedesktop.systemd1.Manager"};

/// error: negative errno.
void check_bus(int error, const std::string &doing, const char *text = nullptr) {
    const Failure failure = failure_of(-error);

    if (error < 0)
        throw Error(failure,
                    fmt::format("{}: {}", doing,
                                text != nullptr ? text : std::generic_category().message(-error)),
                    failure == Failure::permission ? run_as_root
                                                   : "the request goes to systemd over D-Bus");
}

/// systemd's jobs that ended, with their results.
class EndedJobs {
public:
    explicit EndedJobs(sd_bus *bus) : bus_(bus) {
        check_bus(lib().match_signal(bus, nullptr, manager[0], manager[1], manager[2], "JobRemoved",
                                     take, &results_),
                  "listening to systemd");
    }

    /// The job's result, once it has one.
    std::string wait_for(const std::string &job) {
        const auto end = std::chrono::steady_clock::now() + longest_wait;

        while (!results_.contains(job)) {
            const std::chrono::microseconds left = std::chrono::ceil<std::chrono::microseconds>(
                end - std::chrono::steady_clock::now());

            if (left.count() <= 0)
                return "still waiting";
            int done = lib().process(bus_, nullptr);
            if (done == 0)
                done = lib().wait(bus_, static_cast<std::uint64_t>(left.count()));
            if (done < 0 && done != -EINTR)
                check_bus(done, "listening to systemd");
        }
        return results_[job];
    }

private:
    static int take(sd_bus_message *signal, void *results, sd_bus_error * /*error*/) {
        std::uint32_t id = 0;
        const char *job = nullptr;
        const char *unit = nullptr;
        const char *result = nullptr;

        if (lib().read(signal, "uoss", &id, &job, &unit, &result) >= 0)
            static_cast<std::map<std::string, std::string> *>(results)->insert({job, result});
        return 0;
    }

    sd_bus *bus_;
    std::map<std::string, std::string> results_;
};

/// Not "systemd-run --scope": the command would run before its limits are set.
std::string start_scope(const Cgroups &cgroups, const std::string &name,
                        const std::string &description, const std::vector<pid_t> &members) {
    const std::string unit = name + ".scope";
    const std::string doing = "cannot start the scope " + unit;
    const std::vector<std::uint32_t> pids(members.begin(), members.end());
    sd_bus *opened = nullptr;
    sd_bus_message *made = nullptr;
    sd_bus_error error{};
    const char *job = nullptr;

    check_bus(lib().open_system(&opened), "reaching systemd");
    const Bus bus(opened);
    EndedJobs jobs(bus.get());
    check_bus(lib().new_method_call(bus.get(), &made, manager[0], manager[1], manager[2],
                                    "StartTransientUnit"),
              doing);
    const BusMessage call(made);
    for (const int result :
         {lib().append(made, "ss", unit.c_str(), "fail"), lib().open_container(made, 'a', "(sv)"),
          lib().append(made, "(sv)(sv)(sv)", "Description", "s", description.c_str(), "CollectMode",
                       "s", "inactive-or-failed", "MemoryAccounting", "b", 1),
          lib().open_container(made, 'r', "sv"), lib().append(made, "s", "PIDs"),
          lib().open_container(made, 'v', "au"),
          lib().append_array(made, 'u', pids.data(), pids.size() * sizeof(pids[0])),
          lib().close_container(made), lib().close_container(made), lib().close_container(made),
          lib().append(made, "a(sa(sv))", 0)})
        check_bus(result, doing);

    // No password is asked for: an unauthorised caller is refused at once.
    made = nullptr;
    const int result = lib().call(bus.get(), call.get(),
                                  std::chrono::microseconds(longest_wait).count(), &error, &made);
    const BusMessage reply(made);
    const std::string text = error.message != nullptr ? error.message : "";
    lib().error_free(&error);
    check_bus(result, doing, text.empty() ? nullptr : text.c_str());
    check_bus(lib().read(reply.get(), "o", &job), doing);
    if (const std::string ended = jobs.wait_for(job); ended != "done")
        throw Error(Failure::failed, fmt::format("{}: the job is {}", doing, ended),
                    fmt::format("'systemctl status {}' may say more", unit));
    std::string path = cgroups.of_pid(pids.front()).value_or("");
    if (base_name(path) != unit)
        throw Error(
            Failure::failed,
            fmt::format("cannot move the command to {}: systemd left it where it was", unit));
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

std::string make_directory(const Cgroups &cgroups, const std::string &name,
                           const std::vector<pid_t> &members) {
    std::string path = join_path(usable_parent(cgroups), name);
    const auto directory = cgroups.directory(path);

    if (!directory)
        throw Error(Failure::failed,
                    "cannot make a cgroup: /sys/fs/cgroup belongs to another cgroup namespace",
                    "run it outside the container");
    if (mkdir(directory->c_str(), 0755) != 0) {
        const bool permission = failure_of(errno) == Failure::permission || errno == EROFS;

        throw Error(permission ? Failure::permission : Failure::failed,
                    fmt::format("cannot make the cgroup {}: {}", path,
                                std::generic_category().message(errno)),
                    permission ? "run it as root on the host" : "");
    }
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

bool systemd_runs() {
    return std::filesystem::is_directory("/run/systemd/system");
}

Scope::Scope(const Cgroups &cgroups, const std::string &name, const std::string &description,
             const std::vector<pid_t> &members, bool systemd)
    : cgroups_(cgroups),
      systemd_(systemd),
      path_(systemd ? start_scope(cgroups, name, description, members)
                    : make_directory(cgroups, name, members)) {}

Scope::~Scope() {
    try {
        cgroups_.write(path_, "cgroup.kill", "1");
        // Killed processes take a moment to go. systemd removes its scope itself.
        for (int i = 0; i < poll_attempts; ++i) {
            if (!systemd_)
                remove_directories(*cgroups_.directory(path_));
            if (!cgroups_.exists(path_))
                break;
            std::this_thread::sleep_for(poll_interval);
        }
    } catch (const std::exception &) {
        // The scope is gone already.
    }
}

} // namespace umacct
