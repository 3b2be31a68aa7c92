// SPDX-License-Identifier: GPL-2.0-or-later
/// The audit as a picture, for a report or a bug's thread.
#pragma once

#include <ostream>
#include <vector>

#include "lib/owners/owners.h"
#include "tool/audit/statement.h"

namespace umacct::tool {

/// One bar for the machine, one for each cgroup: what memory.current has, and
/// beside it what it doesn't see.
void print_svg(std::ostream &out, const Owners &owners, const Statement &machine,
               const std::vector<CgroupStatement> &cgroups);

} // namespace umacct::tool
