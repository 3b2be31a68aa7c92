// SPDX-License-Identifier: GPL-2.0-or-later
/// Answers HTTP requests for the metrics, on sockets that it was given.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/metrics.h"

struct MHD_Connection;
struct MHD_Daemon;

namespace umacct {

class Exporter {
public:
    /// sockets: which listen already; they are closed with it. Throws Error.
    Exporter(Connection &connection, Machine &machine, std::size_t top,
             const std::vector<int> &sockets);

    /// Readable when run() has something to do.
    std::vector<int> fds() const;
    void run();

    struct Answer {
        unsigned int status = 0;
        const char *type = "text/plain; charset=utf-8";
        std::string body;
    };

    /// accept: the request's header of that name.
    Answer answer(std::string_view method, std::string_view url, std::string_view accept);

private:
    struct Stop {
        void operator()(MHD_Daemon *daemon) const;
    };

    Connection &connection_;
    Machine &machine_;
    std::size_t top_;
    std::vector<std::unique_ptr<MHD_Daemon, Stop>> servers_;
};

/// How many accounts are told one by one: as was asked for, as the policy below root says, or 50.
std::size_t top_of(std::optional<std::size_t> asked, const std::filesystem::path &root);

/// Sockets that listen: at 127.0.0.1; and in the file system, for the owner and the group.
/// Throw Error.
int listen_at_port(std::uint16_t port);
int listen_at_path(const std::string &path);

} // namespace umacct
