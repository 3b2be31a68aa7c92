// SPDX-License-Identifier: GPL-2.0-or-later
/// umacct-device-plugin: offers the machine's memory to Kubernetes as umacct.io/memory, so that a
/// container that asks for some has that as its hard limit.
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <exception>
#include <filesystem>
#include <string>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <poll.h>
#include <sys/inotify.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "kubernetes/devices.h"
#include "kubernetes/node.h"
#include "kubernetes/service.h"
#include "lib/error.h"
#include "lib/host/file_descriptor.h"
#include "lib/units.h"
#include "service/log.h"
#include "service/signals.h"

namespace {

namespace fs = std::filesystem;
using umacct::Error;
using umacct::Failure;
using umacct::FileDescriptor;
using umacct::Level;
using umacct::kubernetes::Offer;

struct Options {
    fs::path folder = umacct::kubernetes::kubelet_folder;
    fs::path root = "/";
    std::uint64_t unit_mib = 1;
};

/// Interval for changes that nothing announces: of the module, and of the set-up.
constexpr std::chrono::seconds look_again{5};

/// A kubelet that starts may not answer yet.
constexpr std::chrono::seconds register_timeout{5};
constexpr std::chrono::seconds register_again{1};

/// Has inotify tell of every socket that comes into the folder or leaves it.
void watch(int fd, const fs::path &folder) {
    if (inotify_add_watch(fd, folder.c_str(),
                          IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM | IN_ONLYDIR) < 0)
        throw Error(umacct::failure_of(errno),
                    fmt::format("cannot watch {}: {}", folder.string(),
                                std::generic_category().message(errno)),
                    "kubelet makes that folder; a container has it mounted");
}

void drain(int fd) {
    std::array<char, 4096> events{};

    while (read(fd, events.data(), events.size()) > 0) {
    }
}

void say(const Offer &offer) {
    if (offer.healthy())
        umacct::log_line(Level::notice, fmt::format("offers {} devices of {}", offer.devices(),
                                                    umacct::format_size(offer.unit)));
    else
        umacct::log_line(Level::warning,
                         fmt::format("offers nothing: no limit would hold: {}", offer.why_not));
}

class Daemon {
public:
    explicit Daemon(const Options &options)
        : signals_(umacct::take_signals()),
          folder_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)),
          connection_(umacct::connect_netlink),
          machine_("/proc", options.root, umacct::connect_netlink),
          node_(connection_, machine_, options.unit_mib * umacct::kubernetes::mib),
          told_(node_.look()),
          plugin_(told_),
          registered_(plugin_, options.folder) {
        watch(folder_.get(), options.folder);
        umacct::kubernetes::check_size(told_);
        say(told_);
    }

    void run() {
        std::array files{pollfd{signals_.get(), POLLIN, 0}, pollfd{folder_.get(), POLLIN, 0}};

        while (files[0].revents == 0) {
            const bool again = !keep();

            sd_notify(0, "READY=1\nWATCHDOG=1");
            const std::chrono::milliseconds patience = again ? register_again : look_again;
            if (poll(files.data(), files.size(), static_cast<int>(patience.count())) < 0 &&
                errno != EINTR)
                throw Error(Failure::failed, "cannot wait for kubelet");
            drain(folder_.get());
            look();
        }
    }

private:
    /// Whether it is registered, or there is no kubelet to register at.
    bool keep() {
        const bool was_registered = registered_.is_registered();

        try {
            registered_.keep(register_timeout);
            failed_.clear();
            if (!was_registered && registered_.is_registered())
                umacct::log_line(Level::notice, "registered at kubelet");
            return true;
        } catch (const Error &error) {
            // Once, not once a second.
            if (failed_ != error.what())
                umacct::log_error(error);
            failed_ = error.what();
            return false;
        }
    }

    void look() {
        const Offer now = node_.look();

        if (now == told_)
            return;
        umacct::kubernetes::check_size(now);
        say(now);
        told_ = now;
        plugin_.offer(now);
    }

    FileDescriptor signals_;
    FileDescriptor folder_;
    umacct::Connection connection_;
    umacct::Machine machine_;
    umacct::kubernetes::Node node_;
    Offer told_;
    umacct::kubernetes::DevicePlugin plugin_;
    umacct::kubernetes::Registered registered_;
    std::string failed_;
};

} // namespace

int main(int argc, char **argv) {
    CLI::App app("umacct-device-plugin offers this node's memory to Kubernetes, as\n"
                 "umacct.io/memory: what a container asks for of it is its hard limit.",
                 "umacct-device-plugin");
    Options options;

    app.set_version_flag("-V,--version", "umacct-device-plugin " UMACCT_VERSION);
    app.add_option("-u,--unit", options.unit_mib, "MiB of a device; default: 1")
        ->check(CLI::Range(1, 1 << 20));
    app.add_option("-f,--folder", options.folder, "kubelet's, for sockets of device plugins");
    app.add_option("-r,--root", options.root,
                   "where the node's /etc, /run and /var are; a container has them elsewhere");
    try {
        app.parse(argc, argv);
        Daemon(options).run();
        return 0;
    } catch (const CLI::ParseError &error) {
        return app.exit(error) == 0 ? 0 : static_cast<int>(Failure::usage);
    } catch (const Error &error) {
        umacct::log_error(error);
        return static_cast<int>(error.failure());
    } catch (const std::exception &error) {
        umacct::log_line(Level::error, error.what());
        return static_cast<int>(Failure::failed);
    }
}
