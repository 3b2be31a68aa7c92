// SPDX-License-Identifier: GPL-2.0-or-later
/// The command line: parses, runs one verb, turns errors into exit codes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "tool/context.h"

namespace umacct::tool {

/// Everything that the command line understands, and says about itself. It refers to
/// the context.
std::unique_ptr<CLI::App> make_app(Context &context);

/// Of a command line with "run": takes the words out of it that are the command's, from
/// the first that is no option of ours. The parser never sees them, so that it can't take
/// one for its own, or change it. Empty for another verb.
std::optional<std::vector<std::string>> take_command(const CLI::App &app,
                                                     std::vector<std::string> &words);

/// Runs the tool; its exit code. Never throws.
int run_tool(int argc, const char *const *argv, Surroundings surroundings);

} // namespace umacct::tool
