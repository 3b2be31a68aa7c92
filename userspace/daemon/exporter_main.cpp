// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <exception>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <poll.h>
#include <systemd/sd-daemon.h>

#include "daemon/exporter.h"
#include "daemon/log.h"
#include "daemon/signals.h"
#include "lib/error.h"
#include "lib/module/transport.h"

namespace {

struct Options {
    std::optional<std::uint16_t> port;
    std::optional<std::string> socket;
    std::optional<std::size_t> top;
    bool print = false;
};

constexpr std::chrono::milliseconds watchdog{10000};

void serve(umacct::Connection &connection, umacct::Machine &machine, const Options &options) {
    const umacct::FileDescriptor signals = umacct::take_signals();
    std::vector<int> sockets;

    if (options.port)
        sockets.push_back(umacct::listen_at_port(*options.port));
    if (options.socket)
        sockets.push_back(umacct::listen_at_path(*options.socket));
    const std::size_t top = umacct::top_of(options.top, machine.root());
    umacct::Exporter exporter(connection, machine, top, sockets);
    std::vector<pollfd> files{{signals.get(), POLLIN, 0}};
    for (const int fd : exporter.fds())
        files.push_back({fd, POLLIN, 0});

    sd_notify(0, "READY=1");
    while (files[0].revents == 0) {
        const auto now = umacct::Exporter::Clock::now();
        const auto until = std::min(now + watchdog, exporter.due().value_or(now + watchdog));
        const auto patience = std::chrono::ceil<std::chrono::milliseconds>(until - now);

        if (poll(files.data(), files.size(), std::max(0, static_cast<int>(patience.count()))) < 0 &&
            errno != EINTR)
            throw umacct::Error(umacct::Failure::failed, "poll failed");
        exporter.run();
        sd_notify(0, "WATCHDOG=1");
    }
}

} // namespace

int main(int argc, char **argv) {
    CLI::App app("umacct-exporter gives Prometheus the memory that NVIDIA's driver takes: at\n"
                 "/metrics, over a socket in the file system or a port of 127.0.0.1.",
                 "umacct-exporter");
    Options options;

    app.set_version_flag("-V,--version", "umacct-exporter " UMACCT_VERSION);
    app.add_option("-s,--socket", options.socket, "listen at that path, for its owner and group");
    app.add_option("-p,--port", options.port, "listen at 127.0.0.1, for everybody on this machine")
        ->check(CLI::Range(1, 65535));
    app.add_option("-t,--top", options.top,
                   "accounts to tell one by one, rather than as the policy says; default: 50");
    app.add_flag("-P,--print", options.print,
                 "print the metrics and end, for node_exporter's text files");
    try {
        app.parse(argc, argv);
        if (!options.print && !options.port && !options.socket)
            throw umacct::Error(umacct::Failure::usage, "where to listen is missing",
                                "--socket PATH, --port 9752, or --print");
        umacct::Connection connection(umacct::connect_netlink);
        umacct::Machine machine("/proc", "/", umacct::connect_netlink);
        if (options.print)
            fmt::print("{}",
                       umacct::metrics_text(connection, machine,
                                            {.top = umacct::top_of(options.top, machine.root())}));
        else
            serve(connection, machine, options);
        return 0;
    } catch (const CLI::ParseError &error) {
        return app.exit(error) == 0 ? 0 : static_cast<int>(umacct::Failure::usage);
    } catch (const umacct::Error &error) {
        umacct::log_error(error);
        return static_cast<int>(error.failure());
    } catch (const std::exception &error) {
        umacct::log_line(umacct::Level::error, error.what());
        return static_cast<int>(umacct::Failure::failed);
    }
}
