// SPDX-License-Identifier: GPL-2.0-or-later
/// Answers HTTP requests for the metrics, on sockets that it was given.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "exporter/http.h"
#include "exporter/metrics.h"
#include "lib/host/file_descriptor.h"

struct MHD_Connection;
struct MHD_Daemon;

namespace umacct {

class Page;

/// No client can block another one: a connection is for one request, and is closed
/// when that has taken too long; connections per user are capped, and a further one closes the
/// user's oldest.
class Exporter {
public:
    using Clock = std::chrono::steady_clock;

    /// Longest time for a request and its answer, counted from accept(). Time in which others are
    /// answered does not count.
    static constexpr std::chrono::milliseconds longest{2000};
    static constexpr std::size_t most_of_user = 8;
    static constexpr std::size_t most = 128;

    /// sockets: which listen already; they are closed with it. page: null where it is off. hosts:
    /// names of this machine besides its addresses. Throws Error.
    Exporter(Connection &connection, Machine &machine, std::size_t top,
             const std::vector<int> &sockets, Page *page = nullptr,
             std::vector<std::string> hosts = {});

    /// Readable when run() has something to do.
    std::vector<int> fds() const;
    void run();
    /// Returns the time of the next run() without readability, if any.
    std::optional<Clock::time_point> due() const;

    HttpAnswer answer(const HttpRequest &request);

    /// Whether such a connection came over a socket in the file system.
    bool is_local(int fd) const;

private:
    struct Stop {
        void operator()(MHD_Daemon *daemon) const;
    };

    struct Client {
        std::optional<uid_t> user; ///< empty over TCP, which doesn't tell: those are one user's
        Clock::time_point since;
    };

    static void notice(void *self, MHD_Connection *connection, void **state, int what);
    void take(int listener);
    /// Answers the connections that have sent a request.
    void serve();
    std::size_t count_of(const std::optional<uid_t> &user) const;
    void make_room(const std::optional<uid_t> &user);
    void close_overdue();
    /// The server closes it when it finds that.
    void end(std::map<int, Client>::iterator client);

    Connection &connection_;
    Machine &machine_;
    std::size_t top_;
    std::deque<FileDescriptor> sockets_;
    Page *page_;
    std::vector<std::string> hosts_;
    RecentAccounts recent_;
    std::map<int, Client> clients_; ///< the key is the descriptor
    std::unique_ptr<MHD_Daemon, Stop> server_;
};

/// How many accounts are exported individually: as was asked for, as the policy below root says,
/// or 50.
std::size_t top_of(std::optional<std::size_t> asked, const std::filesystem::path &root);

/// Sockets that listen: at 127.0.0.1, for all users of the machine; and in the file system, for
/// the owner and the group. Throw Error, also where something else than a socket is there.
int listen_at_port(std::uint16_t port);
/// The port of such a socket, which the kernel chose for 0.
std::uint16_t port_of(int socket);
int listen_at_path(const std::string &path);

} // namespace umacct
