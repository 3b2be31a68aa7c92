// SPDX-License-Identifier: GPL-2.0-or-later
/// The policy's command, or address, that gets each event as JSON.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>

#include <nlohmann/json.hpp>
#include <sys/types.h>

#include "lib/json.h"

namespace umacct::tool {

/// Runs the command for one event at a time, with the event on its standard input. Events that come
/// meanwhile wait in a queue of bounded length, those of one type and cgroup as one, with their
/// count; beyond that the oldest of the tenant that has most are dropped, and counted. umacctd's
/// own events go first, and each for itself.
class Notifier {
public:
    using Clock = std::chrono::steady_clock;
    /// Takes a line about a command that failed.
    using Log = std::function<void(const std::string &line)>;

    static constexpr std::size_t most_waiting = 64;
    /// Least time between two events of one type and cgroup.
    static constexpr std::chrono::seconds quiet{10};
    /// Longest time for one command.
    static constexpr std::chrono::seconds patience{30};

    /// to: a command for the shell, or an address that begins with http:// or https://.
    /// The command inherits no capability that this process got from its own parent.
    Notifier(std::string to, Log log);

    Notifier(const Notifier &) = delete;
    Notifier &operator=(const Notifier &) = delete;
    Notifier(Notifier &&) = delete;
    Notifier &operator=(Notifier &&) = delete;

    /// Ends a command that runs.
    ~Notifier() { end(); }

    /// Adds an event to the queue. Does not wait.
    void put(Json event);

    /// Reaps a command that ended, ends one that hangs, and starts the next. Does not wait.
    void look(Clock::time_point now = Clock::now());

    /// Returns whether no command runs and no event waits.
    bool is_idle() const { return pid_ < 0 && waiting_.empty(); }

private:
    void drop();
    void start(const std::string &event, Clock::time_point now);
    void end();

    std::string to_;
    Log log_;
    std::deque<Json> waiting_;
    std::map<std::string, Clock::time_point> quiet_; ///< ends of that time, by type and cgroup
    std::uint64_t dropped_ = 0;                      ///< number since the last start
    pid_t pid_ = -1;
    Clock::time_point until_;
};

} // namespace umacct::tool
