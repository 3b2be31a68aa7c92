// SPDX-License-Identifier: GPL-2.0-or-later
/// The command line: parses, runs one verb, turns errors into exit codes.
#pragma once

#include "tool/context.h"

namespace umacct::tool {

/// Runs the tool; its exit code. Never throws.
int run_tool(int argc, const char *const *argv, Surroundings surroundings);

} // namespace umacct::tool
