// SPDX-License-Identifier: GPL-2.0-or-later
#include "kubernetes/api_server.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <new>

#include <curl/curl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/json.h"
#include "lib/text.h"

namespace umacct::kubernetes {

namespace {

constexpr const char *pod_account = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The largest object that the API server stores has 1.5 MiB.
constexpr std::size_t largest_body = 4U << 20;

std::string variable(const char *name) {
    const char *value = std::getenv(name); // NOLINT(concurrency-mt-unsafe): it changes none

    if (value == nullptr || *value == '\0')
        throw Error(Failure::failed, fmt::format("{} is not set", name),
                    "it is in a pod; elsewhere, there is --server");
    return value;
}

std::string token_in(const std::filesystem::path &file) {
    std::ifstream in(file);
    std::string token{std::istreambuf_iterator<char>(in), {}};

    if (!in && token.empty())
        throw Error(Failure::failed, fmt::format("cannot read {}", file.string()),
                    "the pod's service account has a token there");
    token.erase(token.find_last_not_of(" \r\n") + 1);
    return token;
}

std::size_t append(const char *data, std::size_t size, std::size_t count, void *to) {
    auto &body = *static_cast<std::string *>(to);

    if (body.size() + size * count > largest_body)
        return 0;
    body.append(data, size * count);
    return size * count;
}

struct Cleaner {
    void operator()(CURL *handle) const { curl_easy_cleanup(handle); }

    void operator()(curl_slist *list) const { curl_slist_free_all(list); }
};

/// The lines of a request's head.
class Headers {
public:
    void add(const std::string &line) {
        curl_slist *const more = curl_slist_append(list_.get(), line.c_str());

        if (more == nullptr)
            throw std::bad_alloc();
        static_cast<void>(list_.release());
        list_.reset(more);
    }

    curl_slist *get() const { return list_.get(); }

private:
    std::unique_ptr<curl_slist, Cleaner> list_;
};

} // namespace

ApiAccess ApiAccess::of_pod() {
    const std::string host = variable("KUBERNETES_SERVICE_HOST");
    const bool is_v6 = host.find(':') != std::string::npos;

    return {.url = fmt::format("https://{}{}{}:{}", is_v6 ? "[" : "", host, is_v6 ? "]" : "",
                               variable("KUBERNETES_SERVICE_PORT")),
            .token = std::filesystem::path(pod_account) / "token",
            .authority = std::filesystem::path(pod_account) / "ca.crt"};
}

ApiReply ApiServer::ask(const char *method, const std::string &path,
                        const std::string &body) const {
    const std::string url = access_.url + path;
    const std::unique_ptr<CURL, Cleaner> handle(curl_easy_init());
    Headers headers;
    ApiReply reply;

    if (!handle)
        throw std::bad_alloc();
    const auto set = [&](CURLoption option, auto value) {
        curl_easy_setopt(handle.get(), option, value);
    };
    headers.add("Accept: application/json");
    if (!access_.token.empty())
        headers.add("Authorization: Bearer " + token_in(access_.token));
    set(CURLOPT_URL, url.c_str());
    set(CURLOPT_CUSTOMREQUEST, method);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_NOPROXY, "*");
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(timeout_.count()));
    set(CURLOPT_WRITEFUNCTION, append);
    set(CURLOPT_WRITEDATA, &reply.body);
    if (!access_.authority.empty())
        set(CURLOPT_CAINFO, access_.authority.c_str());
    if (!body.empty()) {
        headers.add("Content-Type: application/json");
        set(CURLOPT_POSTFIELDSIZE, static_cast<long>(body.size()));
        set(CURLOPT_POSTFIELDS, body.c_str());
    }
    set(CURLOPT_HTTPHEADER, headers.get());
    if (const CURLcode code = curl_easy_perform(handle.get()); code != CURLE_OK)
        throw Error(Failure::failed, fmt::format("cannot ask the API server, {}: {}", access_.url,
                                                 curl_easy_strerror(code)));
    curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &reply.status);
    return reply;
}

void ApiServer::check(const ApiReply &reply, const std::string &what) {
    if (reply.ok())
        return;
    const Json answer = Json::parse(reply.body, nullptr, false);
    const std::string why =
        answer.is_object() ? answer.value("message", std::string()) : std::string();

    throw Error(Failure::failed,
                fmt::format("{}: the API server answers {}{}{}", what, reply.status,
                            why.empty() ? "" : ": ", printable(why)),
                reply.status == 403 ? "the service account's ClusterRole is in dra.yaml" : "");
}

} // namespace umacct::kubernetes
