// SPDX-License-Identifier: GPL-2.0-or-later
/// The audit as a picture, for a report or a bug's thread.
#pragma once

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "tool/audit/statement.h"

namespace umacct::tool {

/// One bar for the machine, one for each cgroup: what memory.current has, and
/// beside it what it doesn't see. Cgroups come with their names.
void print_svg(std::ostream &out, const Statement &machine,
               const std::vector<std::pair<std::string, CgroupStatement>> &cgroups);

} // namespace umacct::tool
