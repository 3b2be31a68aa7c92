// SPDX-License-Identifier: GPL-2.0-or-later
#include "exporter/page.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <microhttpd.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/host/file_descriptor.h"
#include "lib/json.h"
#include "lib/text.h"
#include "service/log.h"

namespace umacct {

namespace {

/// No script, style or picture of another site is loaded, nothing is sent anywhere but
/// here, and no other page has this one in a frame.
constexpr const char *content_policy =
    "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

constexpr std::string_view api = "/api/";
constexpr std::string_view bearer = "Bearer ";
constexpr const char *json_type = "application/json; charset=utf-8";
constexpr std::size_t least_token = 32;
constexpr std::size_t most_token = 1024;
/// Limits the points of a history: all samples would be read otherwise.
constexpr const char *course = "--course";
constexpr const char *usual_points = "400";

/// A path below /api/, and the command that prints its document.
struct Document {
    std::string_view path;
    std::vector<std::string> words;
    bool takes_time = false; ///< boot, since, until and points
};

const std::vector<Document> &documents() {
    static const std::vector<Document> all{
        {.path = "/api/summary", .words = {"--json"}},
        {.path = "/api/accounts", .words = {"ls", "--json"}},
        {.path = "/api/audit", .words = {"audit", "--machine", "--json"}},
        {.path = "/api/history", .words = {"history", "--json"}, .takes_time = true},
    };

    return all;
}

/// Parses digits, with a bounded number of them after a point.
bool is_number(std::string_view text, std::size_t most, std::size_t decimals) {
    const std::size_t point = text.find('.');
    const std::string_view whole = text.substr(0, point);
    const std::string_view part = point == std::string_view::npos ? "" : text.substr(point + 1);
    constexpr std::string_view digits = "0123456789";

    return !whole.empty() && whole.size() <= most &&
           whole.find_first_not_of(digits) == std::string_view::npos && part.size() <= decimals &&
           part.find_first_not_of(digits) == std::string_view::npos &&
           part.empty() == (point == std::string_view::npos);
}

/// "@1764039178.250", or how long before the end: "600s".
bool is_time(std::string_view text) {
    if (text.starts_with('@'))
        return is_number(text.substr(1), 12, 3);
    return text.ends_with('s') && is_number(text.substr(0, text.size() - 1), 9, 0);
}

/// The words for a part of the query; empty where there is no such.
std::vector<std::string> words_of(std::string_view key, std::string_view value) {
    std::string text(value);

    if ((key == "since" || key == "until") && is_time(value))
        return {fmt::format("--{}", key), std::move(text)};
    if (key == "points" && is_number(value, 4, 0))
        return {course, std::move(text)};
    if (key == "boot" && is_number(value, 5, 0))
        return {"--boot", value == "0" ? "0" : "-" + text};
    return {};
}

/// Takes as long whatever is wrong with it.
bool is_same(std::string_view a, std::string_view b) {
    unsigned int differs = a.size() == b.size() ? 0 : 1;

    for (std::size_t i = 0; i < b.size(); ++i)
        differs |=
            static_cast<unsigned char>(b[i]) ^ static_cast<unsigned char>(i < a.size() ? a[i] : 0);
    return differs == 0;
}

} // namespace

/// Returns the host without its port.
static std::string_view name_of_host(std::string_view host) {
    const std::size_t end = host.starts_with('[') ? host.find(']') : host.find(':');

    if (end == std::string_view::npos)
        return host;
    return host.substr(0, host.starts_with('[') ? end + 1 : end);
}

bool is_own_origin(const HttpRequest &request) {
    return request.origin == fmt::format("http://{}", request.host) ||
           request.origin == fmt::format("https://{}", request.host);
}

bool is_our_host(std::string_view host, const std::vector<std::string> &hosts) {
    const std::string_view name = name_of_host(host);

    return name == "localhost" || name == "127.0.0.1" || name == "[::1]" ||
           std::ranges::find(hosts, name) != hosts.end();
}

namespace {

HttpAnswer plain_text(unsigned int status, std::string text) {
    return {.status = status, .body = std::move(text) + '\n'};
}

/// "umacct: WHAT\nhint: HINT\n" as an object.
std::string error_json(const std::string &err) {
    Json json = {{"schema", json_schema}, {"error", ""}, {"hint", nullptr}};
    constexpr std::string_view begin = "umacct: ";
    constexpr std::string_view hint = "hint: ";

    for (std::size_t at = 0; at < err.size();) {
        const std::size_t end = std::min(err.find('\n', at), err.size());
        const std::string_view line = std::string_view(err).substr(at, end - at);

        if (line.starts_with(begin))
            json["error"] = line.substr(begin.size());
        else if (line.starts_with(hint))
            json["hint"] = line.substr(hint.size());
        at = end + 1;
    }
    return json_text(json) + '\n';
}

HttpAnswer too_soon(std::chrono::seconds wait) {
    return {.status = MHD_HTTP_TOO_MANY_REQUESTS,
            .type = json_type,
            .body = error_json("umacct: the exporter was asked for too much\n"),
            .headers = {{"Retry-After", std::to_string(wait.count())}}};
}

unsigned int status_of(int code) {
    switch (static_cast<Failure>(code)) {
    case Failure::usage:
        return MHD_HTTP_BAD_REQUEST;
    case Failure::missing:
    case Failure::permission:
        return MHD_HTTP_SERVICE_UNAVAILABLE;
    default:
        return MHD_HTTP_INTERNAL_SERVER_ERROR;
    }
}

void secure(HttpAnswer &answer) {
    answer.headers.emplace_back("Content-Security-Policy", content_policy);
    answer.headers.emplace_back("X-Content-Type-Options", "nosniff");
    answer.headers.emplace_back("Referrer-Policy", "no-referrer");
    answer.headers.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
    answer.headers.emplace_back("Cross-Origin-Opener-Policy", "same-origin");
    answer.headers.emplace_back("Cache-Control", "no-store");
    answer.headers.emplace_back("Vary", "Origin");
}

std::string read_token(const std::filesystem::path &file) {
    const FileDescriptor in(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    const auto refuse = [&](const std::string &why, const char *hint = "") {
        return Error(Failure::failed,
                     fmt::format("page_token: cannot use {}: {}", file.string(), why), hint);
    };

    struct stat about {};

    std::array<char, most_token> text{};

    if (in.get() < 0 || fstat(in.get(), &about) != 0)
        throw refuse(std::generic_category().message(errno));
    if (!S_ISREG(about.st_mode))
        throw refuse("not a regular file");
    if ((about.st_mode & 077U) != 0)
        throw refuse("users other than its owner can read the file", "chmod 600");
    const ssize_t size = read(in.get(), text.data(), text.size());
    std::string token(text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    while (!token.empty() && (token.back() == '\n' || token.back() == '\r'))
        token.pop_back();
    if (token.size() < least_token || token.size() == most_token ||
        !std::ranges::all_of(token, [](char c) { return c > ' ' && c < '\x7f'; }))
        throw refuse(
            fmt::format("not a valid token: it needs {} characters or more, without spaces",
                        least_token),
            "openssl rand -hex 32 makes one");
    return token;
}

} // namespace

Page::Page(PageAccess access, RunTool run, std::function<Clock::time_point()> now)
    : access_(std::move(access)), run_(std::move(run)), now_(std::move(now)) {}

bool Page::may_read(std::string_view origin) const {
    return std::ranges::find(access_.origins, origin) != access_.origins.end();
}

std::optional<HttpAnswer> Page::refusal(const HttpRequest &request) const {
    const bool foreign = !request.origin.empty() && !is_own_origin(request);

    // Another site's name that resolves to this address is refused: DNS rebinding.
    if (!is_our_host(request.host, access_.hosts))
        return plain_text(MHD_HTTP_MISDIRECTED_REQUEST,
                          "this host's name is not among page_hosts in [exporter]");
    if (foreign && !may_read(request.origin))
        return plain_text(MHD_HTTP_FORBIDDEN,
                          "this origin is not among page_origins in [exporter]");
    if (request.path.starts_with(api) && request.origin.empty() &&
        (request.fetch_site == "cross-site" || request.fetch_site == "same-site"))
        return plain_text(MHD_HTTP_FORBIDDEN, "cross-site request without an Origin header");
    if (!request.local && access_.token.empty())
        return plain_text(MHD_HTTP_FORBIDDEN,
                          "over TCP the page takes a token: page_token in [exporter]");
    // A browser asks so, without the token, before it sends that for another origin.
    if (request.method == "OPTIONS") {
        if (!foreign || !request.path.starts_with(api))
            return plain_text(MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD");
        return HttpAnswer{.status = MHD_HTTP_NO_CONTENT,
                          .headers = {{"Access-Control-Allow-Methods", "GET, HEAD"},
                                      {"Access-Control-Allow-Headers", "Authorization"},
                                      {"Access-Control-Max-Age", "600"}}};
    }
    if (request.method != "GET" && request.method != "HEAD") {
        HttpAnswer answer = plain_text(MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD");

        answer.headers.emplace_back("Allow", "GET, HEAD");
        return answer;
    }
    if (request.path.starts_with(api) && !request.local) {
        const std::string_view given = request.authorization;

        if (!given.starts_with(bearer) || !is_same(given.substr(bearer.size()), access_.token)) {
            HttpAnswer answer = plain_text(MHD_HTTP_UNAUTHORIZED, "the token is missing, or wrong");

            answer.headers.emplace_back("WWW-Authenticate", "Bearer");
            return answer;
        }
    }
    return std::nullopt;
}

Page::Clock::duration Page::wait(Clock::time_point now) {
    spent_ = std::max(spent_ - (now - counted_), Clock::duration());
    counted_ = now;
    return spent_ - most_at_once;
}

HttpAnswer Page::made(const std::vector<std::string> &words) {
    const std::string key = fmt::format("{}", fmt::join(words, " "));
    const Clock::time_point now = now_();

    std::erase_if(kept_,
                  [&](const auto &each) { return each.second.made + each.second.lasts <= now; });
    auto found = kept_.find(key);
    if (found == kept_.end()) {
        if (const Clock::duration left = wait(now); left > Clock::duration())
            return too_soon(std::chrono::ceil<std::chrono::seconds>(left));
        if (kept_.size() >= most_kept)
            kept_.erase(std::ranges::min_element(
                kept_, {}, [](const auto &each) { return each.second.made; }));
        Ran ran = run_(words);
        const Clock::time_point end = now_();
        spent_ += end - now;
        counted_ = end;
        // The summary has an exit code of its own where the driver is missing.
        const bool ok = !ran.out.empty() || ran.code == 0;

        found =
            kept_
                .insert_or_assign(
                    key, Kept{.status = ok ? MHD_HTTP_OK : status_of(ran.code),
                              .body = ok ? std::move(ran.out) : error_json(ran.err),
                              .made = end,
                              .lasts = std::max<Clock::duration>(least_age, share * (end - now))})
                .first;
    }
    return {.status = found->second.status, .type = json_type, .body = found->second.body};
}

HttpAnswer Page::document(const HttpRequest &request) {
    const auto found = std::ranges::find(documents(), request.path, &Document::path);

    if (found == documents().end())
        return plain_text(MHD_HTTP_NOT_FOUND, "there is no such document");
    std::vector<std::string> words = found->words;
    for (const auto &[key, value] : request.query) {
        const std::vector<std::string> more =
            found->takes_time ? words_of(key, value) : std::vector<std::string>();

        if (more.empty() || std::ranges::find(words, more.front()) != words.end())
            return plain_text(MHD_HTTP_BAD_REQUEST,
                              fmt::format("{} does not take that query", found->path));
        words.insert(words.end(), more.begin(), more.end());
    }
    if (found->takes_time && std::ranges::find(words, course) == words.end())
        words.insert(words.end(), {course, usual_points});
    return made(words);
}

HttpAnswer Page::answer(const HttpRequest &request) {
    const auto answer_it = [&]() -> HttpAnswer {
        if (auto refused = refusal(request))
            return std::move(*refused);
        if (request.path.starts_with(api))
            return document(request);
        const auto files = page_files();
        const auto file = std::ranges::find(files, request.path, &PageFile::path);
        if (file == files.end())
            return plain_text(MHD_HTTP_NOT_FOUND, "there is no such file");
        return {.status = MHD_HTTP_OK, .type = file->type.data(), .body = std::string(file->body)};
    };
    HttpAnswer answer = answer_it();

    secure(answer);
    if (may_read(request.origin) && is_our_host(request.host, access_.hosts))
        answer.headers.emplace_back("Access-Control-Allow-Origin", std::string(request.origin));
    return answer;
}

std::vector<std::string> hosts_of(const std::filesystem::path &root) {
    try {
        return read_policy(policy_files(root)).page.hosts.value_or(std::vector<std::string>());
    } catch (const PolicyError &) {
        return {}; // top_of() says it
    }
}

std::optional<PageAccess> page_access(const std::filesystem::path &root) {
    const PagePolicy policy = read_policy(policy_files(root)).page;
    PageAccess access;

    if (!policy.on.value_or(false))
        return std::nullopt;
    if (policy.token)
        access.token = read_token(root / std::filesystem::path(*policy.token).relative_path());
    access.origins = policy.origins.value_or(std::vector<std::string>());
    access.hosts = policy.hosts.value_or(std::vector<std::string>());
    return access;
}

} // namespace umacct
