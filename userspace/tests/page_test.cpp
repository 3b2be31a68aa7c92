// SPDX-License-Identifier: GPL-2.0-or-later
/// The page's server: who gets what of it. "selftests/run page" has a browser look at the page.
#include "exporter/page.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <regex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "exporter/exporter.h"
#include "lib/error.h"
#include "lib/host/file_descriptor.h"
#include "tests/fake_module.h"
#include "tests/sandbox.h"

namespace umacct {
namespace {

using namespace std::chrono_literals;

const std::string token(32, 't');

class PageTest : public testing::Test {
protected:
    Page make(PageAccess access) {
        return {std::move(access),
                [this](const std::vector<std::string> &words) {
                    asked_.push_back(words);
                    now_ += takes_;
                    return ran_;
                },
                [this] { return now_; }};
    }

    Page usual() {
        return make({.token = token, .origins = {"https://dash.example"}, .hosts = {"spark.lan"}});
    }

    static HttpRequest get(std::string_view path) {
        return {.method = "GET", .path = path, .host = "localhost:9752", .local = true};
    }

    static std::string header(const HttpAnswer &answer, std::string_view name) {
        for (const auto &[key, value] : answer.headers) {
            if (key == name)
                return value;
        }
        return "";
    }

    Ran ran_{.out = "{\"schema\":1}\n"};
    std::vector<std::vector<std::string>> asked_;
    Page::Clock::time_point now_;
    Page::Clock::duration takes_{};
};

TEST_F(PageTest, ItsFiles) {
    Page page = usual();
    std::size_t script = 0;

    for (const PageFile &file : page_files()) {
        const HttpAnswer answer = page.answer(get(file.path));

        EXPECT_EQ(answer.status, 200U) << file.path;
        EXPECT_EQ(answer.body, file.body);
        if (answer.type == std::string("text/javascript; charset=utf-8"))
            script += answer.body.size();
    }
    EXPECT_GT(script, 10'000U);
    EXPECT_LT(script, 150'000U);
    EXPECT_EQ(std::string(page.answer(get("/")).type), "text/html; charset=utf-8");
    for (const char *path : {"/index.html", "/..", "/../etc/passwd", "/page.js/", "/api", "",
                             "/api/", "/api/history/", "/api/doctor", "/vendor/fetch"})
        EXPECT_EQ(page.answer(get(path)).status, 404U) << path;
}

/// All references are local: scripts, styles and pictures; and no script is inline.
TEST_F(PageTest, ItRefersToNothingElse) {
    const std::regex reference(R"re((?:src|href)="([^"]*)")re");
    const std::regex is_inline(R"re(<script[^>]*>[^<]|<style|\sstyle=|\son[a-z]+=|javascript:)re");
    Page page = usual();
    const std::string html = page.answer(get("/")).body;
    int found = 0;

    for (std::sregex_iterator at(html.begin(), html.end(), reference), end; at != end; ++at) {
        ++found;
        EXPECT_EQ(page.answer(get("/" + (*at)[1].str())).status, 200U) << (*at)[1];
    }
    EXPECT_GE(found, 5);
    EXPECT_FALSE(std::regex_search(html, is_inline));
}

TEST_F(PageTest, EveryAnswerSaysWhatABrowserMayDoWithIt) {
    Page page = usual();
    HttpRequest elsewhere = get("/");

    elsewhere.host = "evil.example";
    for (const HttpRequest &request : {get("/"), get("/api/summary"), get("/none"), elsewhere}) {
        const HttpAnswer answer = page.answer(request);
        const std::string policy = header(answer, "Content-Security-Policy");

        EXPECT_TRUE(policy.starts_with("default-src 'none'; script-src 'self'; ")) << policy;
        EXPECT_EQ(policy.find("unsafe"), std::string::npos);
        EXPECT_EQ(policy.find("http"), std::string::npos);
        EXPECT_NE(policy.find("frame-ancestors 'none'"), std::string::npos);
        EXPECT_EQ(header(answer, "X-Content-Type-Options"), "nosniff");
        EXPECT_EQ(header(answer, "Referrer-Policy"), "no-referrer");
        EXPECT_EQ(header(answer, "Cross-Origin-Resource-Policy"), "same-origin");
        EXPECT_EQ(header(answer, "Cache-Control"), "no-store");
        EXPECT_EQ(header(answer, "Access-Control-Allow-Origin"), "");
    }
}

TEST_F(PageTest, DocumentsAreWhatCommandsPrint) {
    using Words = std::vector<std::string>;
    Page page = usual();
    HttpRequest request = get("/api/history");

    EXPECT_EQ(page.answer(get("/api/summary")).body, ran_.out);
    page.answer(get("/api/accounts"));
    page.answer(get("/api/audit"));
    page.answer(request);
    request.query = {
        {"boot", "2"}, {"since", "@1764039178.250"}, {"until", "90s"}, {"points", "7"}};
    page.answer(request);
    EXPECT_EQ(asked_, (std::vector<Words>{{"--json"},
                                          {"ls", "--json"},
                                          {"audit", "--machine", "--json"},
                                          {"history", "--json", "--course", "400"},
                                          {"history", "--json", "--boot", "-2", "--since",
                                           "@1764039178.250", "--until", "90s", "--course", "7"}}));
}

TEST_F(PageTest, AQueryIsUnderstoodAsAWholeOrNotAtAll) {
    using Query = std::vector<std::pair<std::string_view, std::string_view>>;
    Page page = usual();

    for (const Query &query :
         {Query{{"since", "--help"}}, Query{{"since", ""}}, Query{{"since", "1"}},
          Query{{"since", "@"}}, Query{{"since", "@1."}}, Query{{"since", "@1.2345"}},
          Query{{"since", "@-1"}}, Query{{"since", "9999999999s"}}, Query{{"since", "1.5s"}},
          Query{{"until", "03:12"}}, Query{{"boot", "-1"}}, Query{{"boot", "a"}},
          Query{{"points", "12345"}}, Query{{"points", "-2"}}, Query{{"csv", "1"}}, Query{{"", ""}},
          Query{{"boot", "1"}, {"boot", "2"}}}) {
        HttpRequest request = get("/api/history");

        request.query = query;
        EXPECT_EQ(page.answer(request).status, 400U)
            << query.front().first << '=' << query.front().second;
    }
    HttpRequest request = get("/api/summary");
    request.query = {{"since", "1s"}};
    EXPECT_EQ(page.answer(request).status, 400U);
    EXPECT_TRUE(asked_.empty());
}

TEST_F(PageTest, ItIsOnlyRead) {
    Page page = usual();
    HttpRequest request = get("/api/summary");

    request.method = "HEAD";
    EXPECT_EQ(page.answer(request).status, 200U);
    for (const char *method : {"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "get"}) {
        request.method = method;
        EXPECT_EQ(page.answer(request).status, 405U) << method;
    }
}

TEST_F(PageTest, OverTcpFiguresTakeTheToken) {
    Page page = usual();
    HttpRequest request = get("/api/summary");
    const std::string right = "Bearer " + token;

    request.local = false;
    for (const std::string &given : std::vector<std::string>{
             std::string(), token, "Bearer ", "bearer " + token, right + "t",
             "Bearer " + token.substr(1), "Basic " + token, "Bearer " + std::string(32, 'u')}) {
        request.authorization = given;
        const HttpAnswer answer = page.answer(request);
        EXPECT_EQ(answer.status, 401U) << given;
        EXPECT_EQ(header(answer, "WWW-Authenticate"), "Bearer");
    }
    EXPECT_TRUE(asked_.empty());
    request.authorization = right;
    EXPECT_EQ(page.answer(request).status, 200U);
    // The files say nothing of the machine.
    request.authorization = "";
    request.path = "/page.js";
    EXPECT_EQ(page.answer(request).status, 200U);
}

TEST_F(PageTest, WithoutATokenNothingIsServedOverTcp) {
    Page page = make({});
    HttpRequest request = get("/");

    EXPECT_EQ(page.answer(request).status, 200U);
    request.local = false;
    EXPECT_EQ(page.answer(request).status, 403U);
    request.path = "/api/summary";
    for (const char *given : {"", "Bearer ", "Bearer x"}) {
        request.authorization = given;
        EXPECT_EQ(page.answer(request).status, 403U);
    }
    EXPECT_TRUE(asked_.empty());
}

TEST_F(PageTest, ANameThatLeadsHereIsNotOursForThat) {
    Page page = usual();

    for (const bool local : {true, false}) {
        HttpRequest request = get("/api/summary");
        const std::string right = "Bearer " + token;

        request.local = local;
        request.authorization = right;
        for (const char *host :
             {"", "evil.example", "evil.example:9752", "localhost.evil.example", "127.0.0.1.evil",
              "xlocalhost", "spark.lan.evil", "[::1", "[::2]", "0.0.0.0", ":9752", "127.0.0.2"}) {
            request.host = host;
            EXPECT_EQ(page.answer(request).status, 421U) << host;
        }
        for (const char *host : {"localhost", "localhost:1", "127.0.0.1:9752", "[::1]", "[::1]:80",
                                 "spark.lan", "spark.lan:8443"}) {
            request.host = host;
            EXPECT_EQ(page.answer(request).status, 200U) << host;
        }
    }
}

TEST_F(PageTest, OtherOriginsReadWhatTheListAllows) {
    Page page = usual();
    HttpRequest request = get("/api/summary");

    for (const char *origin :
         {"https://evil.example", "http://dash.example", "https://dash.example:8443",
          "https://dash.example.evil", "null", "http://localhost:9753", "https://dash.example/"}) {
        request.origin = origin;
        const HttpAnswer answer = page.answer(request);
        EXPECT_EQ(answer.status, 403U) << origin;
        EXPECT_EQ(header(answer, "Access-Control-Allow-Origin"), "");
    }
    // A browser that leaves the origin out says where it comes from.
    request.origin = "";
    for (const char *site : {"cross-site", "same-site"}) {
        request.fetch_site = site;
        EXPECT_EQ(page.answer(request).status, 403U);
    }
    EXPECT_TRUE(asked_.empty());

    request.fetch_site = "cross-site";
    request.origin = "https://dash.example";
    const HttpAnswer answer = page.answer(request);
    EXPECT_EQ(answer.status, 200U);
    EXPECT_EQ(header(answer, "Access-Control-Allow-Origin"), "https://dash.example");
    EXPECT_EQ(header(answer, "Vary"), "Origin");
    request.fetch_site = "same-origin";
    request.origin = "http://localhost:9752";
    EXPECT_EQ(page.answer(request).status, 200U);
    EXPECT_EQ(header(page.answer(request), "Access-Control-Allow-Origin"), "");
}

TEST_F(PageTest, ABrowserMayAskWhetherItMaySendTheToken) {
    Page page = usual();
    HttpRequest request = get("/api/summary");

    request.method = "OPTIONS";
    request.local = false;
    request.origin = "https://dash.example";
    const HttpAnswer answer = page.answer(request);
    EXPECT_EQ(answer.status, 204U);
    EXPECT_EQ(header(answer, "Access-Control-Allow-Origin"), "https://dash.example");
    EXPECT_EQ(header(answer, "Access-Control-Allow-Headers"), "Authorization");
    EXPECT_EQ(header(answer, "Access-Control-Allow-Methods"), "GET, HEAD");
    request.origin = "https://evil.example";
    EXPECT_EQ(page.answer(request).status, 403U);
    EXPECT_TRUE(asked_.empty());
}

TEST_F(PageTest, AnAnswerIsMadeNoMoreOftenThanItsCostAllows) {
    Page page = usual();

    takes_ = 200ms;
    page.answer(get("/api/accounts"));
    now_ += 1999ms;
    page.answer(get("/api/accounts"));
    EXPECT_EQ(asked_.size(), 1U);
    now_ += 1ms;
    page.answer(get("/api/accounts"));
    EXPECT_EQ(asked_.size(), 2U);

    takes_ = {};
    page.answer(get("/api/summary"));
    now_ += 499ms;
    page.answer(get("/api/summary"));
    EXPECT_EQ(asked_.size(), 3U);
    now_ += 1ms;
    page.answer(get("/api/summary"));
    EXPECT_EQ(asked_.size(), 4U);
}

TEST_F(PageTest, SoManyAnswersAreKept) {
    Page page = usual();
    const auto ask = [&](std::size_t number) {
        const std::string since = std::to_string(number) + "s";
        HttpRequest request = get("/api/history");

        request.query = {{"since", since}};
        page.answer(request);
        now_ += 1ms;
    };

    for (std::size_t i = 1; i <= Page::most_kept + 1; ++i)
        ask(i);
    ask(2);
    EXPECT_EQ(asked_.size(), Page::most_kept + 1) << "the second was kept";
    ask(1);
    EXPECT_EQ(asked_.size(), Page::most_kept + 2) << "the oldest was not";
}

/// A client that asks for another part of the history each time gets no more time than others.
TEST_F(PageTest, AllAnswersTogetherTakeHalfOfTheTime) {
    Page page = usual();
    int number = 0;
    const auto ask = [&] {
        const std::string since = std::to_string(++number) + "s";
        HttpRequest request = get("/api/history");

        request.query = {{"since", since}};
        return page.answer(request);
    };

    takes_ = 1200ms;
    EXPECT_EQ(ask().status, 200U);
    EXPECT_EQ(ask().status, 200U);
    const HttpAnswer refused = ask();
    EXPECT_EQ(refused.status, 429U);
    EXPECT_EQ(header(refused, "Retry-After"), "1");
    EXPECT_EQ(page.answer(get("/api/summary")).status, 429U);
    EXPECT_EQ(asked_.size(), 2U);
    // A background sample uses at most half of the time if no request waits.
    const Page::Clock::time_point begin = now_;
    while (now_ < begin + 60s) {
        ask();
        now_ += 1ms;
    }
    EXPECT_NEAR(static_cast<double>(asked_.size() - 2), 25, 2);
    now_ += 1h;
    EXPECT_EQ(ask().status, 200U);
}

TEST_F(PageTest, WhatACommandSaysOfItsFailure) {
    Page page = usual();

    ran_ = {.code = 3, .err = "umacct: the umacct kernel module is not loaded\nhint: load it\n"};
    const HttpAnswer answer = page.answer(get("/api/summary"));
    const auto json = nlohmann::json::parse(answer.body);
    EXPECT_EQ(answer.status, 503U);
    EXPECT_EQ(json["error"], "the umacct kernel module is not loaded");
    EXPECT_EQ(json["hint"], "load it");
    ran_ = {.code = 2, .err = "umacct: --since is after --until\n"};
    EXPECT_EQ(page.answer(get("/api/history")).status, 400U);
    ran_ = {.code = 1, .err = "umacct: it \"broke\"\n"};
    EXPECT_EQ(page.answer(get("/api/audit")).status, 500U);
    // The summary says by its exit code that the driver is missing.
    now_ += 1h;
    ran_ = {.code = 3, .out = "{}\n"};
    EXPECT_EQ(page.answer(get("/api/summary")).status, 200U);
}

// --- what the policy says of it ----------------------------------------------------------

class PageAccessTest : public testing::Test {
protected:
    std::optional<PageAccess> read(const std::string &keys) {
        sandbox_.write("etc/umacct.toml", "[exporter]\n" + keys);
        return page_access(sandbox_.root());
    }

    void write_token(const std::string &text, mode_t mode) {
        sandbox_.write("etc/umacct.token", text);
        ASSERT_EQ(chmod((sandbox_.root() / "etc/umacct.token").c_str(), mode), 0);
    }

    static constexpr const char *with_token = "page = true\npage_token = '/etc/umacct.token'\n";
    test::Sandbox sandbox_;
};

TEST_F(PageAccessTest, ItIsOffUnlessThePolicySaysOtherwise) {
    EXPECT_FALSE(page_access(sandbox_.root()));
    EXPECT_FALSE(read(""));
    EXPECT_FALSE(read("page = false\n"));
    EXPECT_FALSE(read("page_hosts = ['spark.lan']\n"));
    const auto access = read("page = true\n");
    ASSERT_TRUE(access);
    EXPECT_EQ(access->token, "");
}

TEST_F(PageAccessTest, TheTokenIsASecret) {
    EXPECT_THROW(read(with_token), Error) << "there is none";
    for (const mode_t mode : {0644, 0640, 0604, 0610}) {
        write_token(token + "\n", mode);
        EXPECT_THROW(read(with_token), Error) << std::oct << mode;
    }
    for (const std::string &text : {std::string(), std::string(31, 't'), token + " t",
                                    "t\n" + token, std::string(5000, 't')}) {
        write_token(text, 0600);
        EXPECT_THROW(read(with_token), Error) << text;
    }
    write_token(token + "\n", 0600);
    EXPECT_EQ(read(with_token)->token, token);
    write_token(token, 0400);
    EXPECT_EQ(read(with_token)->token, token);
}

TEST_F(PageAccessTest, TheTokensFileIsAFile) {
    std::filesystem::create_directories(sandbox_.root() / "etc/umacct.token");
    EXPECT_THROW(read(with_token), Error);
    std::filesystem::remove(sandbox_.root() / "etc/umacct.token");
    sandbox_.write("etc/other", token);
    chmod((sandbox_.root() / "etc/other").c_str(), 0600);
    std::filesystem::create_symlink("other", sandbox_.root() / "etc/umacct.token");
    EXPECT_THROW(read(with_token), Error) << "it was put there by others, perhaps";
}

TEST_F(PageAccessTest, WhatIsNoPolicyServesNothing) {
    EXPECT_THROW(read("page = true\npage_origins = ['*']\n"), Error);
    EXPECT_THROW(read("page = 'yes'\n"), Error);
}

// --- over sockets ----------------------------------------------------------------------------

class PageOverSockets : public PageTest {
protected:
    /// All that the server says to a request, until it closes.
    static std::string ask(Exporter &exporter, const sockaddr *address, socklen_t size,
                           const std::string &request) {
        const FileDescriptor client(socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
        std::array<char, 65536> part{};
        std::string answer;

        EXPECT_EQ(connect(client.get(), address, size), 0);
        EXPECT_EQ(write(client.get(), request.data(), request.size()),
                  static_cast<ssize_t>(request.size()));
        for (int rounds = 0; rounds < 2000; ++rounds) {
            exporter.run();
            const ssize_t got = recv(client.get(), part.data(), part.size(), MSG_DONTWAIT);

            if (got == 0)
                return answer;
            if (got > 0)
                answer.append(part.data(), static_cast<std::size_t>(got));
            else
                std::this_thread::sleep_for(1ms);
        }
        ADD_FAILURE() << "no end of the answer";
        return answer;
    }

    test::Sandbox sandbox_;
    test::FakeModule fake_;
    Connection connection_{[this] { return fake_.connect(); }};
    Machine machine_{sandbox_.proc(), sandbox_.root(), [this] { return fake_.connect(); }};
};

TEST_F(PageOverSockets, TcpTakesTheTokenAndASocketsFileDoesNot) {
    Page page = usual();
    const int tcp = listen_at_port(0);
    const std::string path = sandbox_.root() / "http";
    sockaddr_in port{};
    socklen_t port_size = sizeof(port);
    sockaddr_un file{};
    const std::string begin = " HTTP/1.1\r\nHost: localhost\r\n";

    getsockname(tcp, reinterpret_cast<sockaddr *>(&port), &port_size);
    file.sun_family = AF_UNIX;
    path.copy(file.sun_path, sizeof(file.sun_path) - 1);
    Exporter exporter(connection_, machine_, 50, {tcp, listen_at_path(path)}, &page);
    const auto over_tcp = [&](const std::string &request) {
        return ask(exporter, reinterpret_cast<const sockaddr *>(&port), port_size, request);
    };
    const auto over_file = [&](const std::string &request) {
        return ask(exporter, reinterpret_cast<const sockaddr *>(&file), sizeof(file), request);
    };

    EXPECT_TRUE(over_file("GET /api/summary" + begin + "\r\n").starts_with("HTTP/1.1 200"));
    EXPECT_TRUE(over_tcp("GET /api/summary" + begin + "\r\n").starts_with("HTTP/1.1 401"));
    const std::string allowed = over_tcp("GET /api/history?since=60s&points=9" + begin +
                                         "Authorization: Bearer " + token + "\r\n\r\n");
    EXPECT_TRUE(allowed.starts_with("HTTP/1.1 200")) << allowed;
    EXPECT_TRUE(allowed.ends_with(ran_.out)) << allowed;
    EXPECT_EQ(asked_.back(),
              (std::vector<std::string>{"history", "--json", "--since", "60s", "--course", "9"}));
    EXPECT_TRUE(over_file("GET /api/history?since" + begin + "\r\n").starts_with("HTTP/1.1 400"));
    EXPECT_TRUE(
        over_tcp("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n").starts_with("HTTP/1.1 421"));
    EXPECT_TRUE(over_tcp("GET /api/summary" + begin + "Origin: https://evil.example\r\n\r\n")
                    .starts_with("HTTP/1.1 403"));
    const std::string html = over_tcp("GET /" + begin + "\r\n");
    EXPECT_NE(html.find("\r\nContent-Security-Policy: default-src 'none'"), std::string::npos);
    EXPECT_NE(html.find("\r\nContent-Type: text/html; charset=utf-8\r\n"), std::string::npos);
    EXPECT_TRUE(over_tcp("POST /api/summary" + begin + "Content-Length: 5\r\n\r\nhello")
                    .starts_with("HTTP/1.1 405"));
    // The metrics take no token, as Prometheus has none, but a name of this machine.
    EXPECT_TRUE(
        over_tcp("GET /metrics HTTP/1.1\r\nHost: spark:9752\r\n\r\n").starts_with("HTTP/1.1 421"));
    EXPECT_TRUE(over_tcp("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9752\r\n\r\n")
                    .starts_with("HTTP/1.1 200"));
}

/// The server could not read this request while it was busy with another.
TEST_F(PageOverSockets, AnAnswerThatTakesLongEndsNobodyElsesConnection) {
    const int tcp = listen_at_port(0);
    const FileDescriptor scraper(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const std::string scrape = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    sockaddr_in port{};
    socklen_t size = sizeof(port);
    Page page({.token = token}, [&](const std::vector<std::string> &) {
        EXPECT_GT(write(scraper.get(), scrape.data(), scrape.size()), 0);
        std::this_thread::sleep_for(Exporter::longest + 100ms);
        return ran_;
    });
    Exporter exporter(connection_, machine_, 50, {tcp}, &page);
    std::array<char, 16> begin{};

    getsockname(tcp, reinterpret_cast<sockaddr *>(&port), &size);
    ASSERT_EQ(connect(scraper.get(), reinterpret_cast<const sockaddr *>(&port), size), 0);
    exporter.run();
    const std::string summary =
        ask(exporter, reinterpret_cast<const sockaddr *>(&port), size,
            "GET /api/summary HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token +
                "\r\n\r\n");
    EXPECT_TRUE(summary.starts_with("HTTP/1.1 200")) << summary;
    for (int rounds = 0; rounds < 100; ++rounds)
        exporter.run();
    EXPECT_EQ(recv(scraper.get(), begin.data(), 12, MSG_DONTWAIT), 12);
    EXPECT_STREQ(begin.data(), "HTTP/1.1 200");
}

TEST_F(PageOverSockets, WithoutThePageThereIsNothingButMetrics) {
    Exporter exporter(connection_, machine_, 50, {});

    for (const char *path : {"/", "/page.js", "/api/summary"})
        EXPECT_EQ(exporter.answer(get(path)).status, 404U);
}

TEST_F(PageOverSockets, WhatCannotBeStartedIsAnErrorOfThatRequest) {
    Page page({}, [](const std::vector<std::string> & /*words*/) -> Ran {
        throw std::system_error(EAGAIN, std::generic_category(), "fork");
    });
    Exporter exporter(connection_, machine_, 50, {}, &page);

    EXPECT_EQ(exporter.answer(get("/api/summary")).status, 500U);
}

} // namespace
} // namespace umacct
