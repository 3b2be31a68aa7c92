// SPDX-License-Identifier: GPL-2.0-or-later
/// The command line: parses, runs one verb, turns errors into exit codes.
#pragma once

#include <memory>

#include <CLI/CLI.hpp>

#include "tool/context.h"

namespace umacct::tool {

/// Everything that the command line understands, and says about itself. It refers to
/// the context.
std::unique_ptr<CLI::App> make_app(Context &context);

/// Runs the tool; its exit code. Never throws.
int run_tool(int argc, const char *const *argv, Surroundings surroundings);

} // namespace umacct::tool
