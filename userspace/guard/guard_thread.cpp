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
/// Number of failures after which the guard counts as blind, and thaws all cgroups.
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
    want([](Wanted &wanted) { wanted.ends = true; });
    thread_.join();
}

template <class Change>
void GuardThread::want(Change change) {
    {
        const std::lock_guard lock(mutex_);

        change(wanted_);
        ++asked_;
    }
    changed_.notify_all();
}

void GuardThread::set(const std::optional<GuardPolicy> &policy, std::uint64_t reserve) {
    want([&](Wanted &wanted) {
        wanted.policy = policy;
        wanted.reserve = reserve;
        wanted.paused = false;
    });
    if (!thread_.joinable())
        thread_ = std::thread([this] { keep_doing("guard", [this] { run(); }); });
}

void GuardThread::module_is(bool there) {
    want([there](Wanted &wanted) { wanted.there = there; });
}

void GuardThread::pause() {
    want([](Wanted &wanted) { wanted.paused = true; });
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

    // An unknown failure restarts from nothing: steps are undone by the record of them.
    bool is_first = true;
    for (;;) {
        const Wanted wanted = wanted_;
        const std::uint64_t asked = asked_;
        const bool is_new = std::exchange(is_first, false) || asked != answered_;

        lock.unlock();
        heartbeat_.begin();
        const bool went_well = turn(host, connection, wanted, is_new);
        heartbeat_.end();
        lock.lock();
        is_first = is_new && !went_well;
        answered_ = asked;
        changed_.notify_all();
        if (wanted.ends)
            return;

        const auto other = [this] { return asked_ != answered_; };
        if (!went_well)
            changed_.wait_for(lock, after_failure, other);
        else if (const auto due = host.due(); due && wanted.acts())
            changed_.wait_until(lock, *due, other);
        else
            changed_.wait(lock, other);
    }
}

bool GuardThread::turn(GuardHost &host, Connection &connection, const Wanted &wanted, bool is_new) {
    try {
        if (is_new) {
            if (!wanted.acts())
                host.stop();
            connection.reset();
            // Clears the ranking as well, or "umacct show guard" would show the guard as on.
            host.set(wanted.ends ? std::nullopt : wanted.policy, wanted.reserve);
            host.recover();
        }
        if (const auto due = host.due();
            due && *due <= std::chrono::steady_clock::now() && wanted.acts())
            host.run();
        failures_ = 0;
        return true;
    } catch (const Error &error) {
        // Unloading of the module is announced, too.
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
