// SPDX-License-Identifier: GPL-2.0-or-later
/// The exporter's metrics; promtool.sh has Prometheus's own tool check them, too.
#include "exporter/metrics.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <stop_token>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "exporter/exporter.h"
#include "lib/error.h"
#include "lib/host/file_descriptor.h"
#include "tests/fake_module.h"
#include "tests/sandbox.h"

namespace umacct {
namespace {

constexpr std::uint64_t mib = 1ULL << 20;

class Metrics : public testing::Test {
protected:
    Metrics() {
        sandbox_.write("proc/pressure/memory",
                       "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\n"
                       "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
        add("/", 12 * mib, 0);
        add("/system.slice/docker-" + std::string(64, 'a') + ".scope", 8 * mib, 8 * mib);
        add(R"(/odd "name"\)", 3 * mib, 3 * mib);
        add("/small", mib, mib);
        fake_.accounts[1].hard = fake_.accounts[1].effective = 16 * mib;
        fake_.accounts[1].throttled_ns = 2'500'000'000;
        fake_.accounts[1].refusals = 7;
        fake_.status.usage = 12 * mib;
        sandbox_.write("var/lib/docker/containers/" + std::string(64, 'a') + "/config.v2.json",
                       R"({"Name":"/vllm"})");
        sandbox_.add_cgroup(fake_.accounts[1].path);
        sandbox_.write("var/lib/umacctd/steps",
                       R"({"floor_bytes":4096,"accounts":[{"path":")" + fake_.accounts[1].path +
                           R"(","steps":[{"seconds":10,"bytes":1000000,"time_ms":1}]}]})");
        fake_.status.available = 24 * mib;
        fake_.status.reserve = mib;
    }

    void add(const std::string &path, std::uint64_t usage, std::uint64_t local) {
        Account account;

        account.id = fake_.accounts.size() + 1;
        account.path = path;
        account.usage = usage;
        account.local = local;
        fake_.accounts.push_back(account);
    }

    std::string text(const MetricsOptions &options = {}) {
        return metrics_text(connection_, machine_, options);
    }

    static bool has(const std::string &text, const std::string &line) {
        return text.find("\n" + line + "\n") != std::string::npos;
    }

    /// The sum of a metric's samples.
    static double sum(const std::string &text, const std::string &name) {
        std::istringstream lines(text);
        double sum = 0;

        for (std::string line; std::getline(lines, line);) {
            if (line.starts_with(name + " ") || line.starts_with(name + "{"))
                sum += std::strtod(line.c_str() + line.rfind(' '), nullptr);
        }
        return sum;
    }

    test::Sandbox sandbox_;
    test::FakeModule fake_;
    bool loaded_ = true;
    Connection connection_{[this] {
        if (!loaded_)
            throw Error(Failure::missing, "the umacct kernel module is not loaded");
        return fake_.connect();
    }};
    Machine machine_{sandbox_.proc(), sandbox_.proc().parent_path()};
};

TEST_F(Metrics, FiguresAndNames) {
    const std::string text = this->text();

    EXPECT_TRUE(has(text, "umacct_up 1"));
    EXPECT_TRUE(has(text, "umacct_usage_bytes 12582912")) << text;
    EXPECT_TRUE(has(text, "umacct_module_info{version=\"0.1.0\",driver=\"hooked\","
                          "driver_version=\"550.163.01\"} 1"));
    EXPECT_TRUE(has(text, "umacct_hook_calls_total{hook=\"allocate\"} 12"));
    EXPECT_TRUE(has(text, "# TYPE umacct_hook_calls_total counter"));
    EXPECT_TRUE(has(text, "# TYPE umacct_hook_missed_total counter"));
    EXPECT_TRUE(has(text, "umacct_machine_memory_bytes 17179869184"));
    EXPECT_TRUE(has(text, "umacct_machine_pressure_seconds_total{who=\"some\"} 1.5"));
    const std::string of_vllm =
        R"({cgroup="/system.slice/docker-)" + std::string(64, 'a') + R"(.scope",container="vllm"})";
    EXPECT_TRUE(has(text, "umacct_account_hard_limit_bytes" + of_vllm + " 16777216"));
    EXPECT_TRUE(has(text, "umacct_next_step_bytes" + of_vllm + " 1000000")) << text;
    EXPECT_TRUE(has(text, fmt::format("umacct_next_step_left_bytes {}", 23 * mib - 4096)));
    EXPECT_TRUE(has(text, "umacct_account_refusals_total" + of_vllm + " 7"));
    EXPECT_TRUE(has(text, "umacct_account_throttled_seconds_total" + of_vllm + " 2.5"));
    EXPECT_EQ(text.find("hard_limit_bytes{cgroup=\"/small\""), std::string::npos)
        << "no limit is no sample";
    EXPECT_TRUE(has(text, R"(umacct_account_usage_bytes{cgroup="/odd \"name\"\\"} 3145728)"));
    if (const char *file = std::getenv("UMACCT_METRICS_OUT"))
        std::ofstream(file) << text;
}

TEST_F(Metrics, TheTopAndTheRestAreAll) {
    for (const std::size_t top : {0, 1, 2, 3, 4, 9}) {
        const std::string text = this->text({.top = top});

        EXPECT_EQ(sum(text, "umacct_account_local_bytes") + sum(text, "umacct_rest_local_bytes"),
                  sum(text, "umacct_usage_bytes"))
            << top;
        EXPECT_EQ(sum(text, "umacct_rest_accounts"), top < 4 ? 4 - top : 0);
    }
    const std::string text = this->text({.top = 2});
    EXPECT_NE(text.find("umacct_account_usage_bytes{cgroup=\"/system"), std::string::npos);
    EXPECT_EQ(text.find("cgroup=\"/small\""), std::string::npos);
}

TEST_F(Metrics, WhoHoldsNothingAndHasNoLimitIsNotTold) {
    add("/empty", 0, 0);
    add("/limited", 0, 0);
    fake_.accounts.back().hard = mib;
    const std::string text = this->text();

    EXPECT_EQ(text.find("cgroup=\"/empty\""), std::string::npos);
    EXPECT_NE(text.find("cgroup=\"/limited\""), std::string::npos);
    EXPECT_TRUE(has(text, "umacct_rest_accounts 1"));
}

TEST_F(Metrics, LabelsSayWhoItIsAndAreShort) {
    const std::string deep = "/" + std::string(4000, 'x');

    add(deep, 2 * mib, 2 * mib);
    add(deep + "y", 2 * mib, 2 * mib);
    add("/system.slice/ollama.service", 2 * mib, 2 * mib);
    const std::string text = this->text();

    EXPECT_NE(text.find(R"({cgroup="/system.slice/ollama.service",unit="ollama.service"})"),
              std::string::npos)
        << text;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        EXPECT_LT(line.size(), 400U) << line;
    EXPECT_NE(text.find("xxx...5\""), std::string::npos) << "the id tells it from the next one";
    EXPECT_NE(text.find("xxx...6\""), std::string::npos);
}

TEST_F(Metrics, NamesThatLookTheSameAreTwoSeries) {
    add("/a\x01", 2 * mib, 2 * mib);
    add("/a\x02", 2 * mib, 2 * mib);
    std::istringstream lines(text());
    std::set<std::string> series;

    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with('#')) {
            EXPECT_TRUE(series.insert(line.substr(0, line.rfind(' '))).second) << line;
        }
    }
}

TEST_F(Metrics, ATenantChoosesNoUnit) {
    const std::string manager = "/user.slice/user-1000.slice/user@1000.service";

    add("/system.slice/a.service/inner", 2 * mib, 2 * mib);
    add(manager, 3 * mib, 0);
    add(manager + "/app.slice/vllm.service", 3 * mib, 3 * mib);
    const std::string text = this->text();

    EXPECT_NE(text.find(R"({cgroup="/system.slice/a.service/inner",unit="a.service"})"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("{cgroup=\"" + manager + "\",unit=\"user@1000.service\"}"),
              std::string::npos);
    EXPECT_NE(text.find("{cgroup=\"" + manager + "/app.slice/vllm.service\"}"), std::string::npos)
        << "a person may run one that is called as the machine's";
}

TEST_F(Metrics, NewCgroupsAddASeriesEachOnlyForAWhile) {
    RecentAccounts recent;
    std::set<std::string> told;

    // A tenant can do so: the old ones are gone at the next scrape.
    for (int i = 0; i < 100; ++i) {
        fake_.accounts.resize(1);
        for (int at = 0; at < 3; ++at)
            add("/tenant/" + std::to_string(i) + "-" + std::to_string(at), mib, mib);
        std::istringstream lines(text({.top = 4, .recent = &recent}));
        for (std::string line; std::getline(lines, line);) {
            if (line.starts_with("umacct_account_usage_bytes{"))
                told.insert(line.substr(0, line.find(' ')));
        }
    }
    EXPECT_EQ(told.size(), 16U) << "four times as many as are told at once";
    EXPECT_TRUE(told.contains("umacct_account_usage_bytes{cgroup=\"/\"}"));

    const auto now = RecentAccounts::Clock::now();
    EXPECT_FALSE(recent.take("/new", "", 16, now));
    recent.forget(now + RecentAccounts::lasts + std::chrono::minutes(1));
    EXPECT_TRUE(recent.take("/new", "", 16, now));
}

TEST_F(Metrics, ATenantsCgroupsLeaveRoomForOthers) {
    const std::string container = "/system.slice/docker-" + std::string(64, 'a') + ".scope";
    RecentAccounts recent;

    for (int i = 0; i < 100; ++i) {
        fake_.accounts.resize(1);
        for (int at = 0; at < 3; ++at)
            add(container + '/' + std::to_string(i) + '-' + std::to_string(at), mib, mib);
        text({.top = 4, .recent = &recent});
    }
    add("/system.slice/new.service", 2 * mib, 2 * mib);
    EXPECT_NE(text({.top = 4, .recent = &recent}).find("new.service"), std::string::npos);
}

TEST_F(Metrics, OpenMetricsSaysItsUnitsAndItsEnd) {
    const std::string text = this->text({.format = MetricsFormat::openmetrics});

    EXPECT_TRUE(has(text, "# TYPE umacct_hook_calls counter"));
    EXPECT_TRUE(has(text, "# UNIT umacct_usage_bytes bytes"));
    EXPECT_TRUE(has(text, "# TYPE umacct_module info"));
    EXPECT_TRUE(has(text, "umacct_hook_calls_total{hook=\"allocate\"} 12"));
    EXPECT_TRUE(text.ends_with("\n# EOF\n"));
}

TEST_F(Metrics, WithoutTheModule) {
    loaded_ = false;
    const std::string text = this->text();

    EXPECT_TRUE(has(text, "umacct_up 0"));
    EXPECT_TRUE(has(text, "umacct_machine_free_bytes 1073741824"));
    EXPECT_EQ(text.find("umacct_usage_bytes"), std::string::npos);
    loaded_ = true;
    EXPECT_TRUE(has(this->text(), "umacct_up 1"));
}

TEST_F(Metrics, AModuleThatGoesMeanwhileIsNone) {
    fake_.goes_after = 0;
    EXPECT_TRUE(has(text(), "umacct_up 0"));
    fake_.goes_after.reset();
    EXPECT_TRUE(has(text(), "umacct_up 1"));
}

TEST_F(Metrics, HowManyThePolicySays) {
    const auto root = sandbox_.root();

    EXPECT_EQ(top_of({}, root), 50U);
    sandbox_.write("etc/umacct.toml", "[exporter]\ntop = 7\n");
    EXPECT_EQ(top_of({}, root), 7U);
    EXPECT_EQ(top_of(3, root), 3U);
    sandbox_.write("etc/umacct.toml", "[exporter\n");
    EXPECT_EQ(top_of({}, root), 50U) << "there are figures all the same";
}

TEST_F(Metrics, Requests) {
    Exporter exporter(connection_, machine_, 50, {}, nullptr, {"spark.lan"});

    EXPECT_EQ(exporter.answer({"GET", "/metrics", ""}).status, 200U);
    EXPECT_EQ(exporter.answer({"GET", "/", ""}).status, 404U);
    EXPECT_EQ(exporter.answer({"HEAD", "/metrics", ""}).status, 200U);
    EXPECT_EQ(exporter.answer({"POST", "/metrics", ""}).status, 405U);
    for (const char *host : {"localhost:9752", "127.0.0.1:9752", "192.0.2.7:9753", "[fd00::1]:9752",
                             "localhost", "spark.lan"})
        EXPECT_EQ(exporter.answer({"GET", "/metrics", "", host}).status, 200U) << host;
    for (const char *host : {"rebound.example:9752", "127.0.0.1.example", "1.2.3.4.5"})
        EXPECT_EQ(exporter.answer({"GET", "/metrics", "", host}).status, 421U) << host;
    EXPECT_EQ(exporter.answer({"GET", "/metrics", "", "localhost", "http://evil.example"}).status,
              403U);
    EXPECT_EQ(exporter.answer({"GET", "/metrics", "", "localhost", "http://localhost"}).status,
              200U);
    const auto open =
        exporter.answer({"GET", "/metrics", "application/openmetrics-text;version=1.0.0"});
    EXPECT_TRUE(open.body.ends_with("# EOF\n"));
    EXPECT_TRUE(std::string(open.type).starts_with("application/openmetrics-text"));
    fake_.fail_with = EIO;
    EXPECT_EQ(exporter.answer({"GET", "/metrics", ""}).status, 500U);
}

int connect_to(const std::string &path) {
    const int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};

    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(connect(client, reinterpret_cast<const sockaddr *>(&address), sizeof(address)), 0);
    return client;
}

/// All that the server says to a request, until it closes.
std::string ask(Exporter &exporter, const std::string &path, const std::string &request) {
    const FileDescriptor client(connect_to(path));
    std::array<char, 4096> part{};
    std::string answer;

    EXPECT_EQ(write(client.get(), request.data(), request.size()),
              static_cast<ssize_t>(request.size()));
    for (int rounds = 0; rounds < 1000; ++rounds) {
        exporter.run();
        const ssize_t size = recv(client.get(), part.data(), part.size(), MSG_DONTWAIT);

        if (size == 0)
            return answer;
        if (size > 0)
            answer.append(part.data(), static_cast<std::size_t>(size));
        else
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ADD_FAILURE() << "no end of the answer: " << answer;
    return answer;
}

TEST_F(Metrics, WhereNobodyCanBeHeard) {
    EXPECT_THROW(Exporter(connection_, machine_, 50, {open("/dev/null", O_RDWR | O_CLOEXEC)}),
                 Error);
}

TEST_F(Metrics, OverASocket) {
    const std::string path = sandbox_.proc().parent_path() / "http";
    const std::string get = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
    Exporter exporter(connection_, machine_, 50, {listen_at_path(path)});

    const std::string plain = ask(exporter, path, get + "\r\n");
    EXPECT_TRUE(plain.starts_with("HTTP/1.1 200 OK\r\n")) << plain;
    EXPECT_NE(plain.find("Content-Type: text/plain; version=0.0.4"), std::string::npos);
    EXPECT_NE(plain.find("\numacct_usage_bytes 12582912\n"), std::string::npos);
    const std::string open =
        ask(exporter, path, get + "Accept: application/openmetrics-text\r\n\r\n");
    EXPECT_TRUE(open.ends_with("# EOF\n")) << open;
    EXPECT_TRUE(ask(exporter, path,
                    "POST /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                    "Content-Length: 5\r\n\r\nhello")
                    .starts_with("HTTP/1.1 405"));
    EXPECT_FALSE(ask(exporter, path, "nonsense\r\n\r\n").starts_with("HTTP/1.1 200"));
}

/// Whether the server has closed it.
bool is_closed(int client) {
    char byte = 0;

    return recv(client, &byte, 1, MSG_DONTWAIT) == 0;
}

TEST_F(Metrics, WhoIsSlowKeepsNobodyFromAnAnswer) {
    const std::string path = sandbox_.proc().parent_path() / "http";
    Exporter exporter(connection_, machine_, 50, {listen_at_path(path)});
    std::deque<FileDescriptor> slow;

    for (int i = 0; i < 100; ++i) {
        const int client = slow.emplace_back(connect_to(path)).get();

        EXPECT_EQ(write(client, "G", 1), 1);
        exporter.run();
    }
    EXPECT_TRUE(ask(exporter, path, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    .starts_with("HTTP/1.1 200"));
    const auto open =
        std::ranges::count_if(slow, [](const auto &client) { return !is_closed(client.get()); });
    EXPECT_LE(open, static_cast<std::ptrdiff_t>(Exporter::most_of_user));
    EXPECT_GT(open, 0);

    // However steadily they send.
    const auto start = Exporter::Clock::now();
    while (!std::ranges::all_of(slow, [](const auto &client) { return is_closed(client.get()); })) {
        for (const FileDescriptor &client : slow)
            static_cast<void>(send(client.get(), "x", 1, MSG_NOSIGNAL));
        exporter.run();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        ASSERT_LT(Exporter::Clock::now() - start, 4 * Exporter::longest);
    }
    EXPECT_FALSE(exporter.due());
}

/// Becomes another user in this thread alone: the C library would change all threads.
void become(uid_t user) {
    ASSERT_EQ(syscall(SYS_setresuid, user, user, user), 0);
}

/// One who connects as often as it can, sends a byte now and then, and never a whole request.
void hog(const std::stop_token &stop, const std::string &path) {
    constexpr std::size_t most_open = 200;
    std::deque<FileDescriptor> open;
    sockaddr_un address{};

    become(65534);
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    while (!stop.stop_requested()) {
        const int client =
            open.emplace_back(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)).get();

        if (connect(client, reinterpret_cast<const sockaddr *>(&address), sizeof(address)) != 0)
            open.pop_back();
        for (const FileDescriptor &each : open)
            static_cast<void>(send(each.get(), "G", 1, MSG_NOSIGNAL | MSG_DONTWAIT));
        if (open.size() > most_open)
            open.pop_front();
    }
}

TEST_F(Metrics, AStrangerKeepsNoScrapeFromItsAnswer) {
    if (geteuid() != 0)
        GTEST_SKIP() << "not run as root";
    const std::string path = sandbox_.proc().parent_path() / "http";
    const int listener = listen_at_path(path);
    Exporter exporter(connection_, machine_, 50, {listener});
    // Acts as if the stranger were in the socket's group.
    std::filesystem::permissions(path, std::filesystem::perms(0666));
    const std::jthread server([&exporter](const std::stop_token &stop) {
        std::vector<pollfd> files;

        for (const int fd : exporter.fds())
            files.push_back({fd, POLLIN, 0});
        while (!stop.stop_requested()) {
            poll(files.data(), files.size(), 50);
            exporter.run();
        }
    });
    const std::jthread one(hog, path);
    const std::jthread another(hog, path);
    std::vector<std::chrono::milliseconds> took;

    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    for (int i = 0; i < 20; ++i) {
        const auto begin = Exporter::Clock::now();
        const FileDescriptor client(connect_to(path));
        const std::string request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
        std::array<char, 4096> part{};
        std::string answer;

        ASSERT_EQ(send(client.get(), request.data(), request.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(request.size()));
        for (ssize_t size = 1; size > 0;) {
            size = recv(client.get(), part.data(), part.size(), 0);
            answer.append(part.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
        }
        EXPECT_TRUE(answer.starts_with("HTTP/1.1 200")) << answer.substr(0, 100);
        took.push_back(
            std::chrono::duration_cast<std::chrono::milliseconds>(Exporter::Clock::now() - begin));
    }
    // One that waits for all that the others ask for is slow each time.
    std::ranges::sort(took);
    std::printf("the slowest of 20 scrapes: %lld ms\n",
                static_cast<long long>(took.back().count()));
    EXPECT_LE(took[took.size() / 2], std::chrono::seconds(2));
}

TEST_F(Metrics, AFileWhereTheSocketShouldBeStays) {
    const auto path = sandbox_.root() / "notes";

    sandbox_.write("notes", "of somebody");
    EXPECT_THROW(listen_at_path(path), Error);
    EXPECT_TRUE(std::filesystem::is_regular_file(path));
    // One that an earlier exporter left is taken over.
    std::filesystem::remove(path);
    const FileDescriptor first(listen_at_path(path));
    const FileDescriptor second(listen_at_path(path));
    const FileDescriptor client(connect_to(path));
    EXPECT_GE(client.get(), 0);
}

} // namespace
} // namespace umacct
