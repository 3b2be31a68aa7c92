// SPDX-License-Identifier: GPL-2.0-or-later
/// The command line: parses, runs one verb, turns errors into exit codes.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tool/session.h"
#include "tool/verbs.h"

namespace umacct::tool {

/// What a command line asks for.
struct Asked {
    bool json = false;
    bool version = false;
    Action verb; ///< empty for none
};

/// Everything that the command line understands, and says about itself. It refers to
/// what is asked. words: of the command line; a verb that isn't among them is left out
/// then, which saves a good part of a start's time.
std::unique_ptr<CLI::App> make_app(Asked &asked, const std::vector<std::string> *words = nullptr);

/// The position, from one on, of the first word that is no option of the verb's, nor such an
/// option's value; as many as there are where there is none, and one more where the last one's
/// value is missing. verb: null for what stands before one.
std::size_t first_plain(std::span<const std::string> words, std::size_t from, const CLI::App *verb);

/// Of a command line with "run", or "complete": takes the words out of it that are
/// another program's, from the first that is no option of ours. The parser never sees
/// them, so that it can't take one for its own, or change it. Empty for another verb.
std::optional<std::vector<std::string>> take_command(const CLI::App &app,
                                                     std::vector<std::string> &words);

/// Runs the tool; its exit code. Never throws.
int run_tool(int argc, const char *const *argv, const Surroundings &surroundings);

} // namespace umacct::tool
