// SPDX-License-Identifier: GPL-2.0-or-later
/// Requests and answers, as what answers sees them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace umacct {

struct HttpRequest {
    std::string_view method;
    std::string_view path; ///< path alone, up to a '?'
    // Headers; empty where they are missing.
    std::string_view accept{};
    std::string_view host{};
    std::string_view origin{};
    std::string_view fetch_site{}; ///< Sec-Fetch-Site
    std::string_view authorization{};
    std::vector<std::pair<std::string_view, std::string_view>> query{};
    bool local = false; ///< it came over a socket in the file system
};

/// Whether Origin names the same place as Host.
bool is_own_origin(const HttpRequest &request);

/// Tells if the Host header names this machine: localhost, or one of the hosts. Another site's name
/// may lead here, too.
bool is_our_host(std::string_view host, const std::vector<std::string> &hosts);

struct HttpAnswer {
    unsigned int status = 0;
    const char *type = "text/plain; charset=utf-8";
    std::string body{};
    std::vector<std::pair<const char *, std::string>> headers{};
};

} // namespace umacct
