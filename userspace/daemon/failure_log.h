// SPDX-License-Identifier: GPL-2.0-or-later
/// The journal's lines about requests for which the driver had no memory: of a cgroup one at
/// once, and from then on one every ten seconds that says how many there were.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "lib/json.h"
#include "lib/module/failure_event.h"

namespace umacct {

class FailureLog {
public:
    using Clock = std::chrono::steady_clock;
    using Tell = std::function<void(const Json &event, const std::string &line)>;

    /// So many cgroups at a time, whose tenants have equal parts of them where there are more; the
    /// journal has nothing of the rest, the history has.
    static constexpr std::size_t most = 64;
    static constexpr std::chrono::seconds quiet{10};

    explicit FailureLog(Tell tell) : tell_(std::move(tell)) {}

    void take(const Event &event, const FirstHolder &holder, Clock::time_point now);

    /// Tells what has come since, of those whose time has come.
    void look(Clock::time_point now);

private:
    struct Waiting {
        Event newest;
        FirstHolder holder;
        std::uint64_t count = 0; ///< not told yet
        Clock::time_point next;
    };

    bool make_room(const std::string &path);
    void tell(const Waiting &waiting) const;

    Tell tell_;
    std::map<std::string, Waiting> waiting_; ///< by cgroup
};

} // namespace umacct
