// SPDX-License-Identifier: GPL-2.0-or-later
#include "guard/guard_thread.h"

#include <chrono>
#include <utility>

#include "lib/error.h"
#include "service/log.h"

namespace umacct {

namespace {

using namespace std::chrono_literals;

constexpr auto after_failure = 1s;
/// After so many of them nothing is known any more, and nobody stays frozen.
constexpr int most_failures = 30;

} // namespace

GuardThread::GuardThread(Connection::Connect connect, std::filesystem::path proc,
                         std::filesystem::path root, GuardHost::Tell tell,
                         Connection::Connect observe)
    : connect_(std::move(connect)),
      observe_(std::move(observe)),
      proc_(std::move(proc)),
      root_(std::move(root)),
      tell_(std::move(tell)) {}

GuardThread::~GuardThread() {
    if (!thread_.joinable())
        return;
    {
        const std::lock_guard lock(mutex_);

        wanted_.ends = true;
        ++asked_;
    }
    changed_.notify_all();
    thread_.join();
}

void GuardThread::want(Wanted wanted) {
    {
        const std::lock_guard lock(mutex_);

        wanted_ = std::move(wanted);
        ++asked_;
    }
    changed_.notify_all();
}

// Nobody but the one who calls these writes to wanted_.

void GuardThread::set(const std::optional<GuardPolicy> &policy) {
    want({.policy = policy, .there = wanted_.there});
    if (!thread_.joinable())
        thread_ = std::thread([this] { run(); });
}

void GuardThread::module_is(bool there) {
    want({.policy = wanted_.policy, .there = there, .paused = wanted_.paused});
}

void GuardThread::pause() {
    want({.policy = wanted_.policy, .there = wanted_.there, .paused = true});
    if (!thread_.joinable())
        return;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return answered_ == asked_; });
}

void GuardThread::run() {
    Connection connection(connect_, observe_);
    Machine machine(proc_, root_, connect_);
    GuardHost host(connection, machine, tell_);
    std::unique_lock lock(mutex_);

    for (;;) {
        const Wanted wanted = wanted_;
        const std::uint64_t asked = asked_;
        const bool is_new = asked != answered_;

        lock.unlock();
        const bool went_well = turn(host, connection, wanted, is_new);
        lock.lock();
        answered_ = asked;
        changed_.notify_all();
        if (wanted.ends)
            return;

        const auto other = [this] { return asked_ != answered_; };
        if (!went_well)
            changed_.wait_for(lock, after_failure, other);
        else if (const auto due = host.due(); due && wanted.there && !wanted.paused)
            changed_.wait_until(lock, *due, other);
        else
            changed_.wait(lock, other);
    }
}

bool GuardThread::turn(GuardHost &host, Connection &connection, const Wanted &wanted, bool is_new) {
    try {
        if (is_new) {
            if (wanted.ends || wanted.paused || !wanted.there)
                host.stop();
            connection.reset();
            // What it saw goes with it, or "umacct guard" would say that it is on.
            host.set(wanted.ends ? std::nullopt : wanted.policy);
            host.recover();
        }
        if (const auto due = host.due(); due && *due <= std::chrono::steady_clock::now() &&
                                         wanted.there && !wanted.paused && !wanted.ends)
            host.run();
        failures_ = 0;
        return true;
    } catch (const Error &error) {
        // That the module went is announced, too.
        if (error.failure() == Failure::missing && !wanted.there)
            return true;
        if (failures_++ == 0 && error.failure() != Failure::missing)
            log_error(error, "guard: ");
        if (error.failure() == Failure::missing || failures_ == most_failures)
            host.stop();
        connection.reset();
        return false;
    }
}

} // namespace umacct
