// SPDX-License-Identifier: GPL-2.0-or-later
/// A thread that does its work whatever happens to it.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <thread>

#include <fmt/format.h>

#include "service/log.h"

namespace umacct {

/// Calls work until it returns. Where it throws, as for want of memory, the log says so, and work
/// begins anew a second later.
template <class Work>
void keep_doing(const char *name, Work work) {
    while (true) {
        try {
            work();
            return;
        } catch (const std::exception &error) {
            try {
                log_line(Level::error, fmt::format("{}: {}; it starts again", name, error.what()));
            } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): for want of memory
            }
            std::this_thread::sleep_for(std::chrono::seconds(1));
        }
    }
}

/// Shows whether a thread that is waited for gets on.
class Heartbeat {
public:
    using Clock = std::chrono::steady_clock;

    /// The thread begins with something; end: has done it, and waits for more.
    void begin() { since_ = Clock::now().time_since_epoch().count(); }

    void end() { since_ = 0; }

    /// Whether it has been at the same thing for longer than that.
    bool is_stuck(Clock::duration longest) const {
        const Clock::rep since = since_;

        return since != 0 && Clock::now().time_since_epoch().count() - since > longest.count();
    }

private:
    std::atomic<Clock::rep> since_ = 0;
};

} // namespace umacct
