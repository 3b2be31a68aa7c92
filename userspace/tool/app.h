// SPDX-License-Identifier: GPL-2.0-or-later
/// The command line: parses, runs one verb, turns errors into exit codes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tool/session.h"
#include "tool/verbs.h"

namespace umacct::tool {

/// Global options of a command line.
struct Asked {
    bool json = false;
    bool version = false;
    Action verb; ///< empty for none
};

/// Everything that the command line understands, and says about itself. It refers to
/// what is asked. words: of the command line; a verb that isn't among them is left out
/// then, which saves a good part of a start's time.
std::unique_ptr<CLI::App> make_app(Asked &asked, const std::vector<std::string> *words = nullptr);

/// Runs the tool; its exit code. Never throws.
int run_tool(int argc, const char *const *argv, const Surroundings &surroundings);

} // namespace umacct::tool
