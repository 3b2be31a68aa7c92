// SPDX-License-Identifier: GPL-2.0-or-later
/// What Prometheus and its like may know: the module's figures and the machine's, as text.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <unordered_map>

#include "lib/machine.h"
#include "lib/module/module.h"

namespace umacct {

/// The two forms differ in a few words: OpenMetrics has units and an end.
enum class MetricsFormat { prometheus, openmetrics };

/// The accounts that were exported individually of late. Prometheus keeps a series for hours after
/// its last sample: a tenant that makes cgroups and removes them must not add new ones for ever.
class RecentAccounts {
public:
    using Clock = std::chrono::steady_clock;

    /// As long as Prometheus keeps what it writes to at hand.
    static constexpr std::chrono::hours lasts{2};
    /// So many times the accounts that are told at once.
    static constexpr std::size_t spare = 4;

    /// What was told too long ago is forgotten.
    void forget(Clock::time_point now);
    /// Whether the account may be told: it was lately, or fewer than most were.
    bool take(const std::string &cgroup, std::size_t most, Clock::time_point now);

private:
    std::unordered_map<std::string, Clock::time_point> told_;
};

struct MetricsOptions {
    MetricsFormat format = MetricsFormat::prometheus;
    std::size_t top = 50; ///< accounts that are exported individually; the others are one sum
    RecentAccounts *recent = nullptr; ///< of earlier answers, if there were any
};

/// Also without a module, which umacct_up says then. Throws Error when it doesn't answer.
std::string metrics_text(Connection &connection, Machine &machine, const MetricsOptions &options);

} // namespace umacct
