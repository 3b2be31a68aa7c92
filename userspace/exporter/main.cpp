// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <poll.h>
#include <sys/random.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "exporter/exporter.h"
#include "exporter/page.h"
#include "lib/error.h"
#include "lib/module/transport.h"
#include "lib/observer/observer.h"
#include "service/log.h"
#include "service/signals.h"
#include "tool/app.h"

namespace {

struct Options {
    std::optional<std::uint16_t> port;
    std::optional<std::string> socket;
    std::optional<std::size_t> top;
    bool print = false;
    bool web = false;
};

constexpr std::uint16_t usual_port = 9752;

constexpr std::chrono::milliseconds watchdog{10000};

umacct::Ran run_tool(const std::vector<std::string> &words) {
    std::vector<const char *> arguments{"umacct"};
    std::ostringstream out;
    std::ostringstream err;

    for (const std::string &word : words)
        arguments.push_back(word.c_str());
    const int code = umacct::tool::run_tool(static_cast<int>(arguments.size()), arguments.data(),
                                            {.connect = umacct::connect_netlink,
                                             .output = {.out = out, .err = err},
                                             .observe = umacct::pinned_observer});
    return {.code = code, .out = out.str(), .err = err.str()};
}

/// Metrics are served even if the dashboard can't be.
std::optional<umacct::Page> make_page(const std::filesystem::path &root) {
    try {
        if (auto access = umacct::page_access(root))
            return umacct::Page(std::move(*access), run_tool);
    } catch (const umacct::Error &error) {
        umacct::log_error(error, "the page is not served: ");
    }
    return std::nullopt;
}

/// Listens at the usual port, or at any other if that is taken.
int listen_for_web(std::optional<std::uint16_t> port) {
    try {
        return umacct::listen_at_port(port.value_or(usual_port));
    } catch (const umacct::Error &) {
        if (port)
            throw;
        return umacct::listen_at_port(0);
    }
}

/// Makes a secret for one run.
std::string make_token() {
    std::array<unsigned char, 16> bytes{};
    std::string token;

    if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
        throw umacct::Error(umacct::Failure::failed, "cannot make a token: no random bytes");
    for (const unsigned char byte : bytes)
        token += fmt::format("{:02x}", byte);
    return token;
}

/// Prints the page's address, and the way there from another machine.
void tell_address(int socket, const std::string &token) {
    const std::uint16_t port = umacct::port_of(socket);
    std::array<char, 256> host{};
    const char *user = getenv("SUDO_USER");

    gethostname(host.data(), host.size() - 1);
    fmt::print("The dashboard is at this address until Ctrl-C ends it:\n\n"
               "    http://127.0.0.1:{0}/#token={1}\n\n"
               "From another machine, run there first:\n\n"
               "    ssh -L {0}:127.0.0.1:{0} {2}{3}\n\n",
               port, token, user != nullptr ? fmt::format("{}@", user) : std::string(),
               host.data());
    std::fflush(stdout);
}

void serve(umacct::Connection &connection, umacct::Machine &machine, const Options &options) {
    const umacct::FileDescriptor signals = umacct::take_signals();
    std::vector<int> sockets;

    if (options.web)
        sockets.push_back(listen_for_web(options.port));
    else if (options.port)
        sockets.push_back(umacct::listen_at_port(*options.port));
    if (options.socket)
        sockets.push_back(umacct::listen_at_path(*options.socket));
    const std::size_t top = umacct::top_of(options.top, machine.root());
    std::optional<umacct::Page> page;
    if (options.web) {
        const std::string token = make_token();

        page.emplace(umacct::PageAccess{.token = token, .origins = {}, .hosts = {}}, run_tool);
        tell_address(sockets.back(), token);
    } else {
        page = make_page(machine.root());
    }
    umacct::Exporter exporter(connection, machine, top, sockets, page ? &*page : nullptr,
                              umacct::hosts_of(machine.root()));
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
            throw umacct::Error(umacct::Failure::failed, "cannot wait for clients");
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
    app.add_option("-p,--port", options.port, "listen at 127.0.0.1, for all users of this machine")
        ->check(CLI::Range(1, 65535));
    app.add_option("-t,--top", options.top,
                   "accounts to tell one by one, rather than as the policy says; default: 50");
    app.add_flag("-P,--print", options.print,
                 "print the metrics and end, for node_exporter's text files");
    app.add_flag("--web", options.web,
                 "serve the dashboard at an address with a token, which is printed");
    try {
        app.parse(argc, argv);
        if (!options.print && !options.web && !options.port && !options.socket)
            throw umacct::Error(umacct::Failure::usage, "no address to listen at",
                                "--socket PATH, --port 9752, or --print");
        umacct::Connection connection(umacct::connect_netlink, umacct::pinned_observer);
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
