// SPDX-License-Identifier: GPL-2.0-or-later
/// Reasons why the module's figures are wrong or incomplete, or its limits don't hold; for all
/// programs that show figures, and for doctor.
#pragma once

#include <string>
#include <vector>

#include "lib/module/model.h"

namespace umacct {

struct Problem {
    std::string check; ///< the failed check: "driver", "hook view", "stale"
    bool fatal;        ///< the figures are wrong, or limits don't hold; else something is missing
    std::string text;  ///< one sentence
    std::string hint;  ///< the remedy
};

/// All of them; safe to print.
std::vector<Problem> problems(const Status &status);

/// Their texts alone.
std::vector<std::string> warnings(const Status &status);

} // namespace umacct
