// SPDX-License-Identifier: GPL-2.0-or-later
/// A report as one HTML file: nothing of it is elsewhere, and no script runs in it.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "lib/history/analysis.h"
#include "tool/doctor/check.h"
#include "tool/history/period.h"
#include "tool/report/plot.h"

namespace umacct::tool {

/// The contents of a report. Where it is redacted, its names are pseudonyms already.
struct Report {
    std::string made; ///< time of the report
    bool redacted = false;
    std::vector<std::pair<std::string, std::string>> versions; ///< versions of programs
    std::vector<std::string> remarks;                          ///< parts that are missing, and the
                                                               ///< reasons
    std::optional<history::End> end;
    Period period;
    std::optional<Plot> plot; ///< empty where nothing is known of the machine's memory
    doctor::Findings findings;
};

void print_page(std::ostream &out, const Report &report, const NameAccount &name);

/// "The machine's memory, 2026-11-25 03:00:01 to 03:12:58"
std::string plot_title(const Plot &plot);

} // namespace umacct::tool
