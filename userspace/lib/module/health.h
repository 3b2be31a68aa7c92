// SPDX-License-Identifier: GPL-2.0-or-later
/// What makes the module's figures wrong or incomplete, or its limits not hold: said
/// once, for whoever shows figures and for the doctor.
#pragma once

#include <string>
#include <vector>

#include "lib/module/model.h"

namespace umacct {

struct Problem {
    std::string check; ///< what isn't well: "driver", "hook view", "stale"
    bool fatal;        ///< the figures are wrong, or limits don't hold; else something is missing
    std::string text;  ///< one sentence
    std::string hint;  ///< what fixes it
};

/// All of them; safe to print.
std::vector<Problem> problems(const Status &status);

/// Their texts alone.
std::vector<std::string> warnings(const Status &status);

} // namespace umacct
