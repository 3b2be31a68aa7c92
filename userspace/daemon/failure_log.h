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

    /// A bounded number of cgroups at a time, with equal parts for tenants if there are more; the
    /// journal has nothing of the rest, the history has.
    static constexpr std::size_t most = 64;
    static constexpr std::chrono::seconds quiet{10};

    explicit FailureLog(Tell tell) : tell_(std::move(tell)) {}

    void take(const Event &event, const FirstHolder &holder, Clock::time_point now);

    /// Logs the failures since, of the cgroups that are due.
    void look(Clock::time_point now);

private:
    struct Waiting {
        Event newest;
        FirstHolder holder;
        std::uint64_t count = 0; ///< not logged yet
        Clock::time_point next;
    };

    bool make_room(const std::string &path);
    void tell(const Waiting &waiting) const;

    Tell tell_;
    std::map<std::string, Waiting> waiting_; ///< the key is the cgroup
};

} // namespace umacct
