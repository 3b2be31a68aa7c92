// SPDX-License-Identifier: GPL-2.0-or-later
#include "service/log.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <mutex>
#include <sstream>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/uio.h>
#include <systemd/sd-journal.h>

#include "lib/policy/policy.h"

namespace umacct {

namespace {

/// More is nothing that a person reads.
constexpr std::size_t most_waiting = 1024;
constexpr std::chrono::seconds at_the_end{1};

bool to_journal() {
    static const bool journal = std::getenv("JOURNAL_STREAM") != nullptr;

    return journal;
}

std::string field_of(std::string key, const std::string &value) {
    std::transform(key.begin(), key.end(), key.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return fmt::format("UMACCT_{}={}", key, value);
}

void write_line(Level level, const std::string &text) {
    std::istringstream lines(text);

    for (std::string line; std::getline(lines, line);) {
        if (to_journal())
            fmt::print(stderr, "<{}>{}\n", static_cast<int>(level), line);
        else
            fmt::print(stderr, "{}: {}\n", program_invocation_short_name, line);
    }
}

/// entries: "FIELD=value", as the journal takes them.
void write_event(Level level, const std::string &text, const std::vector<std::string> &entries) {
    std::vector<iovec> parts;

    parts.reserve(entries.size());
    // The journal only reads them.
    for (const std::string &entry : entries)
        parts.push_back({const_cast<char *>(entry.data()), entry.size()});
    if (!to_journal() || sd_journal_sendv(parts.data(), static_cast<int>(parts.size())) < 0)
        write_line(level, text);
}

} // namespace

struct LogThread::Queue {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> writes; ///< guarded by mutex, like the next three
    std::uint64_t lost = 0;
    bool busy = false;
    bool ends = false;
};

std::atomic<LogThread::Queue *> LogThread::current;

LogThread::LogThread() : own_(std::make_shared<Queue>()) {
    current = own_.get();
    thread_ = std::thread([queue = own_] {
        sigset_t all{};

        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, nullptr);
        run(*queue);
    });
}

LogThread::~LogThread() {
    bool written = false;

    {
        std::unique_lock lock(own_->mutex);

        current = nullptr;
        own_->ends = true;
        own_->changed.notify_all();
        written = own_->changed.wait_for(lock, at_the_end,
                                         [this] { return own_->writes.empty() && !own_->busy; });
    }
    if (written)
        thread_.join();
    else
        thread_.detach();
}

void LogThread::run(Queue &queue) {
    std::unique_lock lock(queue.mutex);

    while (true) {
        queue.changed.wait(lock, [&] { return queue.ends || !queue.writes.empty(); });
        if (queue.writes.empty())
            return;
        const std::function<void()> write = std::move(queue.writes.front());
        const std::uint64_t lost = std::exchange(queue.lost, 0);

        queue.writes.pop_front();
        queue.busy = true;
        lock.unlock();
        try {
            write();
            if (lost > 0)
                write_line(Level::warning,
                           fmt::format("the log was not read: {} lines were lost", lost));
        } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): there is no other log
        }
        lock.lock();
        queue.busy = false;
        queue.changed.notify_all();
    }
}

bool LogThread::enqueue(std::function<void()> write) {
    Queue *queue = current;

    if (queue == nullptr)
        return false;
    const std::lock_guard lock(queue->mutex);
    if (queue->writes.size() < most_waiting)
        queue->writes.push_back(std::move(write));
    else
        ++queue->lost;
    queue->changed.notify_all();
    return true;
}

void log_line(Level level, const std::string &text) {
    if (!LogThread::enqueue([level, text] { write_line(level, text); }))
        write_line(level, text);
}

void log_event(Level level, const std::string &text, const char *message_id, const Json &event) {
    std::vector<std::string> entries{
        "MESSAGE=" + text, fmt::format("PRIORITY={}", static_cast<int>(level)),
        std::string("SYSLOG_IDENTIFIER=") + program_invocation_short_name,
        std::string("MESSAGE_ID=") + message_id};

    for (const auto &[key, value] : event.items())
        entries.push_back(
            field_of(key, value.is_string() ? value.get<std::string>() : value.dump()));
    const auto write = [level, text, entries = std::move(entries)] {
        write_event(level, text, entries);
    };
    if (!LogThread::enqueue(write))
        write();
}

void log_error(const Error &error, const std::string &before, Level level) {
    if (const auto *policy = dynamic_cast<const PolicyError *>(&error)) {
        for (const Diagnostic &diagnostic : policy->diagnostics())
            log_line(level, before + diagnostic.line());
        return;
    }
    log_line(level, before + error.what());
    if (!error.hint().empty())
        log_line(level, "hint: " + error.hint());
}

} // namespace umacct
