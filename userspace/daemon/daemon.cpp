// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/daemon.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "daemon/log.h"
#include "daemon/signals.h"
#include "lib/error.h"

namespace umacct {

namespace {

using namespace std::chrono_literals;

constexpr auto tick_interval = 1s;

std::string rules_of(const Policy &policy) {
    return fmt::format("{} rule{}", policy.rules.size(), policy.rules.size() == 1 ? "" : "s");
}

} // namespace

Daemon::Daemon(Connection::Connect connect, const std::filesystem::path &proc,
               const std::filesystem::path &root)
    : connection_(std::move(connect)),
      machine_(proc, root),
      enforcer_(connection_, machine_, read_policy(policy_files(root)),
                [](const std::string &line) { log_line(Level::notice, line); }),
      watch_(machine_.cgroups()) {}

void Daemon::run() {
    const FileDescriptor signals = take_signals();

    take_changes();
    connect();
    sd_notify(0, "READY=1");
    while (!stopping_) {
        std::array<pollfd, 2> files{pollfd{watch_.fd(), POLLIN, 0},
                                    pollfd{signals.get(), POLLIN, 0}};

        if (poll(files.data(), files.size(), static_cast<int>(patience().count())) < 0 &&
            errno != EINTR)
            throw Error(Failure::failed, "poll: " + std::generic_category().message(errno));
        if (files[0].revents != 0)
            take_changes();
        if (files[1].revents != 0)
            take_signal(signals.get());
        if (connected_ && enforcer_.due() && *enforcer_.due() <= Enforcer::Clock::now())
            enforcer_.retry();
        if (next_tick_ <= Enforcer::Clock::now())
            tick();
    }
    sd_notify(0, "STOPPING=1");
    log_line(Level::info, "ends; what was set stays set");
}

std::chrono::milliseconds Daemon::patience() const {
    auto until = next_tick_;

    if (connected_ && enforcer_.due())
        until = std::min(until, *enforcer_.due());
    return std::max(std::chrono::ceil<std::chrono::milliseconds>(until - Enforcer::Clock::now()),
                    0ms);
}

void Daemon::take_changes() {
    const CgroupWatch::Changes changes = watch_.take();

    try {
        enforcer_.follow(changes.appeared, changes.gone);
    } catch (const Error &error) {
        if (error.failure() != Failure::missing)
            throw;
        connected_ = false;
    }
}

void Daemon::take_signal(int signals) {
    signalfd_siginfo signal{};

    while (read(signals, &signal, sizeof(signal)) == sizeof(signal)) {
        if (signal.ssi_signo == SIGHUP)
            reload();
        else
            stopping_ = true;
    }
}

void Daemon::reload() {
    sd_notify(0, "RELOADING=1");
    try {
        Policy policy = read_policy(policy_files(machine_.root()));
        const std::string rules = rules_of(policy);

        enforcer_.replace(std::move(policy));
        log_line(Level::info, "the policy was read again: " + rules);
    } catch (const Error &error) {
        if (error.failure() == Failure::missing) {
            connected_ = false;
            log_line(Level::info, "the policy was read again, for when the module is loaded");
        } else {
            log_error(error, "the policy stays as it was: ");
        }
    }
    sd_notify(0, "READY=1");
}

void Daemon::tick() {
    next_tick_ = Enforcer::Clock::now() + tick_interval;
    try {
        // What it tells else is for "umacct watch".
        if (connected_ && connection_.module().receive(0ms).gone) {
            log_line(Level::warning, "the module was unloaded, and all limits with it");
            connected_ = false;
        }
    } catch (const Error &error) {
        log_error(error);
        connected_ = false;
    }
    if (!connected_)
        connect();
    sd_notify(0, "WATCHDOG=1");
}

void Daemon::connect() {
    connection_.reset();
    try {
        connection_.module().subscribe();
        enforcer_.apply_all();
        connected_ = true;
        told_missing_ = false;
        const std::string state = fmt::format("{} in force", rules_of(enforcer_.policy()));
        log_line(Level::info, state);
        sd_notifyf(0, "STATUS=%s", state.c_str());
    } catch (const Error &error) {
        if (error.failure() == Failure::permission)
            throw;
        if (!std::exchange(told_missing_, true)) {
            log_error(error);
            sd_notifyf(0, "STATUS=waits: %s", error.what());
        }
    }
}

} // namespace umacct
