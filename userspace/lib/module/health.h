// SPDX-License-Identifier: GPL-2.0-or-later
/// What makes the module's figures wrong or incomplete: said once, for whoever shows
/// figures.
#pragma once

#include <string>
#include <vector>

#include "lib/module/model.h"

namespace umacct {

/// One sentence for each; safe to print.
std::vector<std::string> warnings(const Status &status);

} // namespace umacct
