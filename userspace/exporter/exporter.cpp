// SPDX-License-Identifier: GPL-2.0-or-later
#include "exporter/exporter.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <system_error>
#include <utility>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "exporter/page.h"
#include "lib/error.h"
#include "lib/policy/policy.h"
#include "lib/text.h"
#include "service/log.h"

namespace umacct {

namespace {

constexpr int backlog = 128;
constexpr std::size_t usual_top = 50;

std::string_view text_of(const char *text) {
    return text == nullptr ? "" : text;
}

MHD_Result take_argument(void *request, MHD_ValueKind /*kind*/, const char *key,
                         const char *value) {
    static_cast<HttpRequest *>(request)->query.emplace_back(text_of(key), text_of(value));
    return MHD_YES;
}

MHD_Result handle(void *self, MHD_Connection *connection, const char *url, const char *method,
                  const char * /*version*/, const char * /*upload*/, std::size_t *upload_size,
                  void ** /*state*/) {
    Exporter &exporter = *static_cast<Exporter *>(self);
    const auto header = [&](const char *name) {
        return text_of(MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name));
    };
    const MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    HttpRequest request{.method = method,
                        .path = url,
                        .accept = header("Accept"),
                        .host = header("Host"),
                        .origin = header("Origin"),
                        .fetch_site = header("Sec-Fetch-Site"),
                        .authorization = header("Authorization"),
                        .local = info != nullptr && exporter.is_local(info->connect_fd)};

    MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, take_argument, &request);
    const HttpAnswer answer = exporter.answer(request);

    // Nothing that is sent here is wanted.
    *upload_size = 0;
    MHD_Response *response = MHD_create_response_from_buffer(
        answer.body.size(), const_cast<char *>(answer.body.data()), MHD_RESPMEM_MUST_COPY);
    if (response == nullptr)
        return MHD_NO;
    MHD_add_response_header(response, "Content-Type", answer.type);
    for (const auto &[name, value] : answer.headers)
        MHD_add_response_header(response, name, value.c_str());
    // One that waits for a next request would count as one that is slow.
    MHD_add_response_header(response, "Connection", "close");
    const MHD_Result queued = MHD_queue_response(connection, answer.status, response);
    MHD_destroy_response(response);
    return queued;
}

/// Returns the uid of a Unix socket's peer; empty for TCP.
std::optional<uid_t> user_at(int fd) {
    ucred peer{};
    socklen_t size = sizeof(peer);
    int domain = 0;
    socklen_t domain_size = sizeof(domain);

    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &domain_size) != 0 || domain != AF_UNIX ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        return std::nullopt;
    return peer.uid;
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
        throw Error(Failure::failed, fmt::format("cannot listen at {}: {}", name,
                                                 std::generic_category().message(code)));
    }
    return fd;
}

/// Tells an address from a name, which another site may have made to lead here.
bool is_address(std::string_view host) {
    const std::string name(host.starts_with('[') ? host.substr(0, host.find(']') + 1)
                                                 : host.substr(0, host.find(':')));
    in_addr address{};

    return name.starts_with('[') || inet_pton(AF_INET, name.c_str(), &address) == 1;
}

} // namespace

void Exporter::Stop::operator()(MHD_Daemon *daemon) const {
    MHD_stop_daemon(daemon);
}

Exporter::Exporter(Connection &connection, Machine &machine, std::size_t top,
                   const std::vector<int> &sockets, Page *page, std::vector<std::string> hosts)
    : connection_(connection), machine_(machine), top_(top), page_(page), hosts_(std::move(hosts)) {
    for (const int fd : sockets) {
        int listens = 0;
        socklen_t size = sizeof(listens);

        sockets_.emplace_back(fd);
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0)
            throw Error(Failure::failed, "cannot listen: the exporter was given no socket for it");
    }
    const MHD_NotifyConnectionCallback noticed = [](void *self, MHD_Connection *which, void **state,
                                                    MHD_ConnectionNotificationCode what) {
        notice(self, which, state, what);
    };
    // Connections are taken here, and handed on, where it is known whose they are.
    server_.reset(MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, nullptr, nullptr,
                                   handle, this, MHD_OPTION_CONNECTION_LIMIT,
                                   static_cast<unsigned int>(2 * most),
                                   MHD_OPTION_NOTIFY_CONNECTION, noticed, this, MHD_OPTION_END));
    if (!server_)
        throw Error(Failure::failed, "cannot start the HTTP server");
}

std::vector<int> Exporter::fds() const {
    std::vector<int> fds{MHD_get_daemon_info(server_.get(), MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd};

    for (const FileDescriptor &socket : sockets_)
        fds.push_back(socket.get());
    return fds;
}

void Exporter::run() {
    for (const FileDescriptor &socket : sockets_)
        take(socket.get());
    close_overdue();
    serve();
}

void Exporter::serve() {
    const Clock::time_point begin = Clock::now();

    MHD_run(server_.get());
    const Clock::duration took = Clock::now() - begin;
    for (auto &[ignored, client] : clients_)
        client.since += took;
}

std::optional<Exporter::Clock::time_point> Exporter::due() const {
    std::optional<Clock::time_point> first;

    for (const auto &[ignored, client] : clients_)
        first = std::min(first.value_or(client.since + longest), client.since + longest);
    return first;
}

void Exporter::notice(void *self, MHD_Connection *connection, void ** /*state*/, int what) {
    const MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    if (what == MHD_CONNECTION_NOTIFY_CLOSED && info != nullptr)
        static_cast<Exporter *>(self)->clients_.erase(info->connect_fd);
}

/// All that wait at once: who comes in a flood of another user's is among them.
void Exporter::take(int listener) {
    sockaddr_storage from{};
    socklen_t size = sizeof(from);

    for (int i = 0; i < backlog; ++i) {
        const int fd = accept4(listener, reinterpret_cast<sockaddr *>(&from), &size,
                               SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;

        const std::optional<uid_t> user = user_at(fd);
        make_room(user);
        clients_[fd] = {.user = user, .since = Clock::now()};
        // It is the server's from here on, which closes it also where it does not take it.
        if (MHD_add_connection(server_.get(), fd, reinterpret_cast<sockaddr *>(&from), size) !=
            MHD_YES)
            clients_.erase(fd);
        size = sizeof(from);
    }
}

std::size_t Exporter::count_of(const std::optional<uid_t> &user) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        clients_, [&](const auto &each) { return each.second.user == user; }));
}

/// The user's oldest ends, or, of all users, that of the one who has most.
void Exporter::make_room(const std::optional<uid_t> &user) {
    const auto is_full = [&] { return count_of(user) >= most_of_user || clients_.size() >= most; };
    std::optional<uid_t> whose = user;

    // Those that have sent their request are answered first, which makes room, too.
    if (is_full())
        serve();
    if (!is_full())
        return;
    if (count_of(user) < most_of_user) {
        for (const auto &[ignored, client] : clients_) {
            if (count_of(client.user) > count_of(whose))
                whose = client.user;
        }
    }
    auto oldest = clients_.end();
    for (auto each = clients_.begin(); each != clients_.end(); ++each) {
        if (each->second.user == whose &&
            (oldest == clients_.end() || each->second.since < oldest->second.since))
            oldest = each;
    }
    if (oldest != clients_.end())
        end(oldest);
}

void Exporter::close_overdue() {
    const Clock::time_point now = Clock::now();

    for (auto each = clients_.begin(); each != clients_.end();) {
        const auto client = each++;

        if (client->second.since + longest <= now)
            end(client);
    }
}

void Exporter::end(std::map<int, Client>::iterator client) {
    shutdown(client->first, SHUT_RDWR);
    clients_.erase(client);
}

bool Exporter::is_local(int fd) const {
    const auto client = clients_.find(fd);

    return client != clients_.end() && client->second.user.has_value();
}

HttpAnswer Exporter::answer(const HttpRequest &request) {
    try {
        const bool open =
            request.accept.find("application/openmetrics-text") != std::string_view::npos;

        if (page_ != nullptr && request.path != "/metrics")
            return page_->answer(request);
        if (request.method != "GET" && request.method != "HEAD")
            return {.status = MHD_HTTP_METHOD_NOT_ALLOWED, .body = "only GET and HEAD\n"};
        if (request.path != "/metrics")
            return {.status = MHD_HTTP_NOT_FOUND, .body = "the metrics are at /metrics\n"};
        // The page's check, but for addresses, and for HTTP 1.0, which has no Host.
        if (!request.host.empty() && !is_address(request.host) &&
            !is_our_host(request.host, hosts_))
            return {.status = MHD_HTTP_MISDIRECTED_REQUEST,
                    .body = "this host's name is not among page_hosts in [exporter]\n"};
        if (!request.origin.empty() && !is_own_origin(request))
            return {.status = MHD_HTTP_FORBIDDEN, .body = "the metrics are for no other origin\n"};
        return {.status = MHD_HTTP_OK,
                .type = open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                             : "text/plain; version=0.0.4; charset=utf-8",
                .body = metrics_text(
                    connection_, machine_,
                    {.format = open ? MetricsFormat::openmetrics : MetricsFormat::prometheus,
                     .top = top_,
                     .recent = &recent_})};
    } catch (const std::exception &error) {
        // None may pass through the server's frames, which are C.
        if (const auto *known = dynamic_cast<const Error *>(&error))
            log_error(*known);
        else
            log_line(Level::error, error.what());
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

std::uint16_t port_of(int socket) {
    sockaddr_in address{};
    socklen_t size = sizeof(address);

    getsockname(socket, reinterpret_cast<sockaddr *>(&address), &size);
    return ntohs(address.sin_port);
}

int listen_at_path(const std::string &path) {
    sockaddr_un address{};

    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path))
        throw Error(Failure::usage, fmt::format("{} is too long for a socket", path));
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);

    struct stat there {};

    // A socket is an earlier exporter's, whose clients are ours from here on; a regular file is
    // another program's.
    if (lstat(path.c_str(), &there) == 0) {
        if (!S_ISSOCK(there.st_mode))
            throw Error(
                Failure::failed,
                fmt::format("cannot listen at {}: it exists and is not a socket", printable(path)));
        unlink(path.c_str());
    }
    const int fd = listen_at(address, path);
    chmod(path.c_str(), 0660);
    return fd;
}

} // namespace umacct
