// SPDX-License-Identifier: GPL-2.0-or-later
/// page_server ACCOUNTS TOKEN ORIGIN: the page of a machine that is made up, for a browser. At a
/// free port of 127.0.0.1, which is the first line that it prints. Lines that it reads:
///
///     tick        all figures change
///     tool WORDS  prints what "umacct WORDS" prints of them, in one line
///     break       the module is gone; mend: it is there again
///
/// It ends with its input.
///
/// page_server top: "umacct top" of that machine, whose figures change each second; page_server
/// summary: "umacct".
#include <algorithm>
#include <array>
#include <chrono>
#include <clocale>
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exporter/exporter.h"
#include "exporter/page.h"
#include "lib/error.h"
#include "lib/text.h"
#include "tests/fake_module.h"
#include "tests/history_story.h"
#include "tests/sandbox.h"
#include "tool/app.h"
#include "tool/top/terminal.h"

namespace umacct::test {
namespace {

constexpr std::int64_t second = 1000;

/// Seconds after this start of the machine, of two hours: each event is of what the figures are
/// then.
constexpr int refused_at = 6300;
constexpr int guard_at = 6600;

std::int64_t now_ms() {
    timespec now{};

    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<std::int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

/// Files of every such machine.
struct Known {
    const char *path = "";
    std::uint64_t id = 0; ///< number in the history, from 101 on
    std::optional<std::size_t> parent;
    std::uint32_t level = 0;
    std::uint64_t usage = 0; ///< its own, as at the end of the history
};

constexpr std::array known{
    Known{"/", 101, std::nullopt, 0, 0},
    Known{"/system.slice", 900, 0, 1, 0},
    Known{"/system.slice/ollama.service", 104, 1, 2, 6 * gib},
    Known{"/models", 901, 0, 1, 0},
    Known{"/models/vllm", 102, 3, 2, 40 * gib},
    Known{"/models/llama", 103, 3, 2, 15 * gib},
};

class MadeUp {
public:
    explicit MadeUp(std::size_t accounts) {
        sandbox_.write("proc/sys/kernel/random/boot_id", "two\n");
        sandbox_.write("proc/zoneinfo", "              count: 4096\n");
        sandbox_.write("proc/vmstat", "nr_foll_pin_acquired 5000\nnr_foll_pin_released 2000\n");
        for (const Known &each : known)
            add(each.path, each.id, each.parent, each.level);
        fake_.accounts[2].hard = fake_.accounts[2].effective = 40 * gib;
        fake_.accounts[4].hard = fake_.accounts[4].effective = 60 * gib;
        fake_.accounts[4].soft = 50 * gib;
        // Twenty folders of many.
        for (std::size_t i = 0; fake_.accounts.size() < accounts; ++i) {
            const std::size_t folder = fake_.accounts.size();

            add(fmt::format("/many-{}", i), 1000 + folder, 0, 1);
            for (std::size_t n = 0; n < accounts / 20 && fake_.accounts.size() < accounts; ++n)
                add(fmt::format("/many-{}/job-{}", i, n), 1000 + fake_.accounts.size(), folder, 2);
        }
        fake_.status.reserve = 4 * gib;
        tell_history();
        tick();
    }

    void tick() {
        ++ticks_;
        for (Account &account : fake_.accounts)
            account.usage = account.local = account.charged = 0;
        for (std::size_t i = 1; i < fake_.accounts.size(); ++i) {
            const bool of_many = i > 5;

            // Those of the lists trade places all the time.
            hold(i, of_many ? ((i * 7919 + ticks_ * 104729) % 997 + 1) * 4096
                            : known.at(i).usage + known.at(i).usage / gib * ticks_ * 12345);
        }
        // The kernel counts in memory.current what is charged.
        for (Account &account : fake_.accounts)
            account.memory_current = account.charged + (account.id % 100) * mib;
        fake_.status.usage = fake_.accounts[0].usage;
        fake_.status.charged = fake_.accounts[0].charged;
        fake_.status.driver_usage = 512 * mib + ticks_ * mib;
        fake_.status.accounts = static_cast<std::uint32_t>(fake_.accounts.size());
        const std::uint64_t left = 110 * gib - fake_.status.usage - ticks_ * mib;
        fake_.status.available = left + 6 * gib;
        sandbox_.write("proc/meminfo",
                       fmt::format("MemTotal:       {} kB\nMemFree:         {} kB\n"
                                   "MemAvailable:    {} kB\nBuffers:            1024 kB\n"
                                   "Cached:          {} kB\nAnonPages:       {} kB\n"
                                   "Shmem:           1048576 kB\nKReclaimable:     524288 kB\n"
                                   "Slab:             786432 kB\nSReclaimable:     262144 kB\n"
                                   "KernelStack:       16384 kB\nPageTables:        32768 kB\n"
                                   "VmallocUsed:       65536 kB\nPercpu:             8192 kB\n",
                                   128 * gib >> 10U, left >> 10U, (left + 6 * gib) >> 10U,
                                   8 * gib >> 10U, 6 * gib >> 10U));
    }

    /// The tool in this process's terminal.
    int run_here(const std::vector<const char *> &words) {
        return tool::run_tool(
            static_cast<int>(words.size()), words.data(),
            {.connect = [this] { return std::make_unique<Ticking>(*this); },
             .output = {.out = std::cout,
                        .err = std::cerr,
                        .colour = true,
                        .terminal = true,
                        .proc = sandbox_.proc()},
             .root = sandbox_.root(),
             .open_terminal = [] { return tool::open_curses_terminal(true, std::cerr); }});
    }

    Ran run(const std::vector<std::string> &words) {
        std::vector<const char *> arguments{"umacct"};
        std::ostringstream out;
        std::ostringstream err;

        for (const std::string &word : words)
            arguments.push_back(word.c_str());
        const int code =
            tool::run_tool(static_cast<int>(arguments.size()), arguments.data(),
                           {.connect = [this] { return connect(); },
                            .output = {.out = out, .err = err, .proc = sandbox_.proc()},
                            .root = sandbox_.root()});
        return {.code = code, .out = out.str(), .err = err.str()};
    }

    std::unique_ptr<Transport> connect() {
        if (!loaded)
            throw Error(Failure::missing, "the umacct kernel module is not loaded", "load it");
        return fake_.connect();
    }

    const Sandbox &sandbox() const { return sandbox_; }

    bool loaded = true;

private:
    /// All figures are others each time that the status is asked for.
    class Ticking : public Transport {
    public:
        explicit Ticking(MadeUp &machine) : machine_(machine), module_(machine.connect()) {}

        Payload request(umacct_cmd command, const Payload &attributes) override {
            if (command == UMACCT_CMD_STATUS_GET)
                machine_.tick();
            return module_->request(command, attributes);
        }

        bool dump(umacct_cmd command, const Payload &attributes, const Take &take) override {
            return module_->dump(command, attributes, take);
        }

        void subscribe() override { module_->subscribe(); }

        Received<Payload> receive(std::chrono::milliseconds timeout) override {
            return module_->receive(timeout);
        }

    private:
        MadeUp &machine_;
        std::unique_ptr<Transport> module_;
    };

    void add(const std::string &path, std::uint64_t id, std::optional<std::size_t> parent,
             std::uint32_t level) {
        Account account;

        account.id = id;
        account.path = path;
        if (parent)
            account.parent_id = fake_.accounts.at(*parent).id;
        account.level = level;
        fake_.accounts.push_back(account);
        parents_.push_back(parent);
    }

    /// Its own memory; half of it charged if its number is odd.
    void hold(std::size_t index, std::uint64_t bytes) {
        const std::uint64_t charged = index % 2 == 1 ? bytes / 2 : 0;

        fake_.accounts[index].local += bytes;
        for (std::optional<std::size_t> at = index; at; at = parents_[*at]) {
            fake_.accounts[*at].usage += bytes;
            fake_.accounts[*at].charged += charged;
            fake_.accounts[*at].peak =
                std::max(fake_.accounts[*at].peak, fake_.accounts[*at].usage);
        }
    }

    /// A start that ran out of memory, a day ago, and this one, for two hours.
    void tell_history() {
        using history::Figure;
        using history::Holding;
        // It takes a while to write: then it ends just now.
        const std::int64_t now = (now_ms() + 3 * second) / second * second;
        {
            const std::int64_t start = now - 24L * 3600 * second;
            Story story(sandbox_, "one", start);
            history::Holdings &vllm = story.account("/models/vllm");
            story.account("/models/llama")[Holding::driver] = 20 * gib;
            story.sample.machine[Figure::driver] = gib;

            story.pass(600);
            story.pass(90, [&] {
                vllm[Holding::driver] += gib;
                story.set_available(story.sample.machine[Figure::available] - gib);
            });
            story.happenings.push_back({.time_ms = start + 689 * second,
                                        .type = "reserve_refused",
                                        .path = "/models/vllm",
                                        .comm = "python3",
                                        .pid = 4711,
                                        .size = gib,
                                        .usage = 9 * gib,
                                        .limit = 10 * gib});
            story.pass(10);
        }
        Story story(sandbox_, "two", now - 7200 * second);
        story.account("/");
        story.account("/models/vllm")[Holding::driver] = 12 * gib;
        story.account("/models/llama")[Holding::driver] = 18 * gib;
        story.account("/system.slice/ollama.service")[Holding::driver] = 6 * gib;
        story.sample.machine[Figure::driver] = 512 * mib;
        story.sample.machine[Figure::reserve] = 4 * gib;
        int at = 0;
        const auto wave = [&] {
            ++at;
            history::Holdings &vllm = story.account("/models/vllm");
            history::Holdings &llama = story.account("/models/llama");
            history::Holdings &ollama = story.account("/system.slice/ollama.service");
            // Grows to its limit, and is started anew.
            vllm[Holding::driver] = (10 + static_cast<std::uint64_t>(at) * 50 / refused_at) * gib;
            vllm[Holding::driver] =
                at > refused_at + 700 ? 10 * gib : std::min(vllm[Holding::driver], 60 * gib);
            vllm[Holding::hard] = 60 * gib;
            llama[Holding::driver] = (18 - static_cast<std::uint64_t>(at / 600) % 9) * gib;
            // Takes what is left, until the guard freezes it; it ends soon after.
            if (at > guard_at - 60 && at <= guard_at + 90) {
                const auto taking = static_cast<std::uint64_t>(std::min(at - guard_at, 0) + 60);

                llama[Holding::driver] = (17 + taking * 17 / 60) * gib;
            }
            ollama[Holding::driver] = at % 1500 < 700 ? 22 * gib : 6 * gib;
            // The last minute is what "top" begins with.
            if (at > 7140)
                vllm[Holding::driver] = 40 * gib - static_cast<std::uint64_t>(7200 - at) * gib / 2;
            const std::uint64_t left = 118 * gib - vllm[Holding::driver] - llama[Holding::driver] -
                                       ollama[Holding::driver];
            story.set_available(left);
            story.sample.machine[Figure::free] = left - std::min(left, 9 * gib);
            story.sample.machine[Figure::cached] = std::min(left, 9 * gib) - gib;
        };

        story.pass(refused_at, wave);
        story.happenings.push_back({.time_ms = now - (7200 - refused_at) * second,
                                    .type = "hard_refused",
                                    .path = "/models/vllm",
                                    .limit_path = "/models/vllm",
                                    .comm = "python3",
                                    .pid = 815,
                                    .size = gib,
                                    .usage = 60 * gib,
                                    .limit = 60 * gib,
                                    .count = 3});
        story.pass(guard_at - refused_at, wave);
        story.happenings.push_back({.time_ms = now - (7200 - guard_at) * second,
                                    .type = "guard_step",
                                    .path = "/models/llama",
                                    .comm = "",
                                    .text = "2.00 GiB available: froze /models/llama"});
        story.pass(7200 - guard_at, wave);
    }

    Sandbox sandbox_;
    FakeModule fake_;
    std::vector<std::optional<std::size_t>> parents_;
    std::uint64_t ticks_ = 0;
};

void obey(MadeUp &machine, const std::string &line) {
    std::istringstream words(line);
    std::string verb;
    std::vector<std::string> rest;

    words >> verb;
    for (std::string word; words >> word;)
        rest.push_back(word);
    if (verb == "tick")
        machine.tick();
    else if (verb == "break" || verb == "mend")
        machine.loaded = verb == "mend";
    std::string out = verb == "tool" ? machine.run(rest).out : verb + '\n';
    if (out.empty())
        out = "\n";
    fmt::print("{}", out);
    std::fflush(stdout);
}

int serve(std::size_t accounts, const std::string &token, const std::string &origin) {
    MadeUp machine(accounts);
    Connection connection([&] { return machine.connect(); });
    Machine host(machine.sandbox().proc(), machine.sandbox().root(),
                 [&] { return machine.connect(); });
    Page page({.token = token, .origins = {origin}, .hosts = {}},
              [&](const std::vector<std::string> &words) { return machine.run(words); });
    const int socket = listen_at_port(0);
    std::string input;

    fmt::print("{}\n", port_of(socket));
    std::fflush(stdout);
    Exporter exporter(connection, host, 50, {socket}, &page);
    std::vector<pollfd> files{{STDIN_FILENO, POLLIN, 0}};
    for (const int fd : exporter.fds())
        files.push_back({fd, POLLIN, 0});
    for (;;) {
        if (poll(files.data(), files.size(), exporter.due() ? 100 : 1000) < 0)
            return 1;
        if (files[0].revents != 0) {
            std::array<char, 4096> part{};
            const ssize_t size = read(STDIN_FILENO, part.data(), part.size());

            if (size <= 0)
                return 0;
            input.append(part.data(), static_cast<std::size_t>(size));
            for (std::size_t end = 0; (end = input.find('\n')) != std::string::npos;) {
                obey(machine, input.substr(0, end));
                input.erase(0, end + 1);
            }
        }
        exporter.run();
    }
}

} // namespace
} // namespace umacct::test

int main(int argc, char **argv) {
    std::setlocale(LC_CTYPE, "");
    try {
        if (argc == 2 && argv[1] == std::string_view("top"))
            return umacct::test::MadeUp(0).run_here({"umacct", "top"});
        if (argc == 2 && argv[1] == std::string_view("summary"))
            return umacct::test::MadeUp(0).run_here({"umacct"});
        if (argc == 4)
            return umacct::test::serve(std::stoul(argv[1]), argv[2], argv[3]);
    } catch (const std::exception &error) {
        fmt::print(stderr, "page_server: {}\n", error.what());
        return 1;
    }
    fmt::print(stderr, "usage: page_server ACCOUNTS TOKEN ORIGIN, or page_server top|summary\n");
    return 2;
}
