// SPDX-License-Identifier: GPL-2.0-or-later
/// Requests to Kubernetes' API server, in JSON, as a pod's service account.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>

namespace umacct::kubernetes {

/// Address of the API server, and a pod's proof of its identity.
struct ApiAccess {
    std::string url;
    std::filesystem::path token;     ///< file, which Kubernetes replaces before it expires
    std::filesystem::path authority; ///< file with the certificates that the server's is signed by

    /// The access that Kubernetes gives a pod. Throws Error outside of a pod.
    static ApiAccess of_pod();
};

struct ApiReply {
    long status = 0; ///< HTTP's
    std::string body;

    bool ok() const { return status >= 200 && status < 300; }

    bool is_missing() const { return status == 404; }
};

/// Any thread may call it.
class ApiServer {
public:
    explicit ApiServer(ApiAccess access,
                       std::chrono::milliseconds timeout = std::chrono::seconds(10))
        : access_(std::move(access)), timeout_(timeout) {}

    /// Sends a request and returns the answer, whichever it is. path: begins with "/"; body: empty
    /// for none. Throws Error if there is no answer.
    ApiReply ask(const char *method, const std::string &path, const std::string &body = "") const;

    /// Throws Error, with the server's reason, for an answer that is no success.
    static void check(const ApiReply &reply, const std::string &what);

private:
    ApiAccess access_;
    std::chrono::milliseconds timeout_;
};

} // namespace umacct::kubernetes
