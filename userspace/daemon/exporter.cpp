// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/exporter.h"

#include <cerrno>
#include <cstring>
#include <exception>
#include <system_error>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/log.h"
#include "daemon/policy.h"
#include "lib/error.h"

namespace umacct {

namespace {

constexpr unsigned int longest_idle_s = 10;
constexpr unsigned int most_connections = 16;
constexpr int backlog = 16;
constexpr std::size_t usual_top = 50;

MHD_Result handle(void *self, MHD_Connection *connection, const char *url, const char *method,
                  const char * /*version*/, const char * /*upload*/, std::size_t *upload_size,
                  void ** /*state*/) {
    const char *accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Accept");
    const Exporter::Answer answer =
        static_cast<Exporter *>(self)->answer(method, url, accept == nullptr ? "" : accept);

    // Nothing that is sent here is wanted.
    *upload_size = 0;
    MHD_Response *response = MHD_create_response_from_buffer(
        answer.body.size(), const_cast<char *>(answer.body.data()), MHD_RESPMEM_MUST_COPY);
    if (response == nullptr)
        return MHD_NO;
    MHD_add_response_header(response, "Content-Type", answer.type);
    const MHD_Result queued = MHD_queue_response(connection, answer.status, response);
    MHD_destroy_response(response);
    return queued;
}

template <class Address>
int listen_at(const Address &address, const std::string &name) {
    const int fd = socket(reinterpret_cast<const sockaddr &>(address).sa_family,
                          SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int on = 1;

    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (fd < 0 || bind(fd, reinterpret_cast<const sockaddr *>(&address), sizeof(address)) != 0 ||
        listen(fd, backlog) != 0) {
        const int code = errno;

        if (fd >= 0)
            close(fd);
        throw Error(Failure::failed, fmt::format("listening at {}: {}", name,
                                                 std::generic_category().message(code)));
    }
    return fd;
}

} // namespace

void Exporter::Stop::operator()(MHD_Daemon *daemon) const {
    MHD_stop_daemon(daemon);
}

Exporter::Exporter(Connection &connection, Machine &machine, std::size_t top,
                   const std::vector<int> &sockets)
    : connection_(connection), machine_(machine), top_(top) {
    for (const int fd : sockets) {
        servers_.emplace_back(MHD_start_daemon(
            MHD_USE_EPOLL, 0, nullptr, nullptr, handle, this, MHD_OPTION_LISTEN_SOCKET, fd,
            MHD_OPTION_CONNECTION_LIMIT, most_connections, MHD_OPTION_CONNECTION_TIMEOUT,
            longest_idle_s, MHD_OPTION_END));
        if (!servers_.back())
            throw Error(Failure::failed, "the HTTP server does not start");
    }
}

std::vector<int> Exporter::fds() const {
    std::vector<int> fds;

    for (const auto &server : servers_)
        fds.push_back(MHD_get_daemon_info(server.get(), MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd);
    return fds;
}

void Exporter::run() {
    for (const auto &server : servers_)
        MHD_run(server.get());
}

Exporter::Answer Exporter::answer(std::string_view method, std::string_view url,
                                  std::string_view accept) {
    const bool open = accept.find("application/openmetrics-text") != std::string_view::npos;

    if (method != "GET")
        return {.status = MHD_HTTP_METHOD_NOT_ALLOWED, .body = "only GET\n"};
    if (url != "/metrics")
        return {.status = MHD_HTTP_NOT_FOUND, .body = "the metrics are at /metrics\n"};
    try {
        return {.status = MHD_HTTP_OK,
                .type = open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                             : "text/plain; version=0.0.4; charset=utf-8",
                .body = metrics_text(
                    connection_, machine_,
                    {.format = open ? MetricsFormat::openmetrics : MetricsFormat::prometheus,
                     .top = top_})};
    } catch (const Error &error) {
        log_error(error);
        connection_.reset();
        return {.status = MHD_HTTP_INTERNAL_SERVER_ERROR,
                .body = fmt::format("{}\n", error.what())};
    }
}

std::size_t top_of(std::optional<std::size_t> asked, const std::filesystem::path &root) {
    if (asked)
        return *asked;
    try {
        return read_policy(policy_files(root)).exporter_top.value_or(usual_top);
    } catch (const PolicyError &error) {
        // umacctd says it, too: figures are worth more than how many of them.
        log_error(error);
        return usual_top;
    }
}

int listen_at_port(std::uint16_t port) {
    sockaddr_in address{};

    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return listen_at(address, fmt::format("127.0.0.1:{}", port));
}

int listen_at_path(const std::string &path) {
    sockaddr_un address{};

    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path))
        throw Error(Failure::usage, fmt::format("{} is too long for a socket", path));
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    // Of one who is gone; of one who isn't, its clients are ours from here on.
    unlink(path.c_str());
    const int fd = listen_at(address, path);
    chmod(path.c_str(), 0660);
    return fd;
}

} // namespace umacct
