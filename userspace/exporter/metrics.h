// SPDX-License-Identifier: GPL-2.0-or-later
/// The metrics for Prometheus and its like: the module's figures and the machine's, as text.
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

    /// Prometheus keeps new samples in memory for that long.
    static constexpr std::chrono::hours lasts{2};
    /// Remembered accounts, as a multiple of those in one answer.
    static constexpr std::size_t spare = 4;
    /// Share of them that a tenant gets, as its inverse: others are exported whatever it makes.
    static constexpr std::size_t parts = 4;

    /// Forgets accounts that were exported too long ago.
    void forget(Clock::time_point now);
    /// Whether the account may be told: it was lately, or fewer than most were. tenant: the topmost
    /// cgroup of the tenant that it is of; empty for none.
    bool take(const std::string &cgroup, const std::string &tenant, std::size_t most,
              Clock::time_point now);

private:
    struct Told {
        Clock::time_point at;
        std::string tenant;
    };

    std::unordered_map<std::string, Told> told_; ///< the key is the cgroup's label
};

struct MetricsOptions {
    MetricsFormat format = MetricsFormat::prometheus;
    std::size_t top = 50; ///< accounts that are exported individually; the others are one sum
    RecentAccounts *recent = nullptr; ///< accounts of earlier answers, if there were any
};

/// Also without a module, which umacct_up says then. Throws Error when it doesn't answer.
std::string metrics_text(Connection &connection, Machine &machine, const MetricsOptions &options);

} // namespace umacct
