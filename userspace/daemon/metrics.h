// SPDX-License-Identifier: GPL-2.0-or-later
/// What Prometheus and its like may know: the module's figures and the machine's, as text.
#pragma once

#include <cstddef>
#include <string>

#include "lib/machine.h"
#include "lib/module/module.h"

namespace umacct {

/// The two forms differ in a few words: OpenMetrics has units and an end.
enum class MetricsFormat { prometheus, openmetrics };

struct MetricsOptions {
    MetricsFormat format = MetricsFormat::prometheus;
    std::size_t top = 50; ///< accounts that are told one by one; the others are one sum
};

/// Also without a module, which umacct_up says then. Throws Error when it doesn't answer.
std::string metrics_text(Connection &connection, Machine &machine, const MetricsOptions &options);

} // namespace umacct
