// SPDX-License-Identifier: GPL-2.0-or-later
/// umacct-dra: offers the machine's memory to Kubernetes by dynamic resource allocation, in bytes:
/// what a claim was allocated of it is the hard limit of its container.
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <poll.h>
#include <systemd/sd-daemon.h>

#include "kubernetes/api_server.h"
#include "kubernetes/dra.h"
#include "kubernetes/node.h"
#include "kubernetes/slice.h"
#include "lib/containers/runtimes.h"
#include "lib/error.h"
#include "lib/host/file_descriptor.h"
#include "lib/units.h"
#include "service/log.h"
#include "service/signals.h"

namespace {

namespace fs = std::filesystem;
namespace kubernetes = umacct::kubernetes;
using umacct::Error;
using umacct::Failure;
using umacct::Level;

struct Options {
    std::string node;
    std::string server; ///< empty: that of the pod
    fs::path token;
    fs::path kubelet = "/var/lib/kubelet";
    fs::path cdi = "/var/run/cdi";
    fs::path root = "/";
};

/// Nothing tells that the module or the hook has come or gone.
constexpr std::chrono::seconds look_again{5};

kubernetes::ApiAccess access_of(const Options &options) {
    if (options.server.empty())
        return kubernetes::ApiAccess::of_pod();
    return {.url = options.server, .token = options.token, .authority = {}};
}

class Daemon {
public:
    explicit Daemon(const Options &options)
        : root_(options.root),
          signals_(umacct::take_signals()),
          connection_(umacct::connect_netlink),
          machine_("/proc", options.root, umacct::connect_netlink),
          node_(connection_, machine_, kubernetes::mib),
          api_(access_of(options)),
          publisher_(api_, options.node),
          claims_(api_, {.node = options.node, .cdi = options.cdi}) {
        look();
        server_.emplace(claims_, options.kubelet);
    }

    void run() {
        std::array files{pollfd{signals_.get(), POLLIN, 0}};

        while (files[0].revents == 0) {
            publish();
            sd_notify(0, "READY=1\nWATCHDOG=1");
            const std::chrono::milliseconds patience = look_again;
            if (poll(files.data(), files.size(), static_cast<int>(patience.count())) < 0 &&
                errno != EINTR)
                throw Error(Failure::failed, "cannot wait for signals");
            look();
        }
    }

private:
    /// Looks at the module and for umacct-hook, and takes note of what is on offer.
    void look() {
        kubernetes::Offer now = node_.look_at_module();
        std::string hook;

        try {
            hook = umacct::containers::installed_hook(root_);
        } catch (const Error &error) {
            now.why_not = now.why_not.empty() ? error.what() : now.why_not;
        }
        claims_.set(hook, now.why_not);
        if (offer_ == now)
            return;
        offer_ = now;
        if (now.healthy())
            umacct::log_line(Level::notice,
                             fmt::format("offers {}", umacct::format_size(now.memory)));
        else
            umacct::log_line(Level::warning,
                             fmt::format("offers nothing: no limit would hold: {}", now.why_not));
    }

    void publish() {
        // Kubelet removes the slices of a driver that it has no socket of.
        if (const unsigned now = server_->registrations();
            std::exchange(registrations_, now) != now)
            publisher_.forget();
        try {
            publisher_.publish(offer_->healthy() ? std::optional(offer_->memory) : std::nullopt,
                               kubernetes::Publisher::Clock::now());
            failed_.clear();
        } catch (const Error &error) {
            // Once, not every five seconds.
            if (failed_ != error.what())
                umacct::log_error(error);
            failed_ = error.what();
        }
    }

    fs::path root_;
    umacct::FileDescriptor signals_;
    umacct::Connection connection_;
    umacct::Machine machine_;
    kubernetes::Node node_;
    kubernetes::ApiServer api_;
    kubernetes::Publisher publisher_;
    kubernetes::ClaimService claims_;
    std::optional<kubernetes::DriverServer> server_;
    std::optional<kubernetes::Offer> offer_;
    unsigned registrations_ = 0;
    std::string failed_;
};

} // namespace

int main(int argc, char **argv) {
    CLI::App app("umacct-dra offers this node's memory to Kubernetes by dynamic resource\n"
                 "allocation: what a claim was allocated is its container's hard limit.",
                 "umacct-dra");
    Options options;

    app.set_version_flag("-V,--version", "umacct-dra " UMACCT_VERSION);
    app.add_option("-n,--node", options.node, "the node's name; default: NODE_NAME")
        ->envname("NODE_NAME")
        ->required();
    app.add_option("-f,--folder", options.kubelet, "kubelet's, for the sockets");
    app.add_option("-c,--cdi", options.cdi, "for CDI specifications of claims");
    app.add_option("-r,--root", options.root,
                   "where the node's /usr is; a container has it elsewhere");
    app.add_option("-s,--server", options.server, "the API server's address; default: a pod's");
    app.add_option("-t,--token", options.token, "file with a token for that address");
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
