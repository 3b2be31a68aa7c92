// SPDX-License-Identifier: GPL-2.0-or-later
/// The words of a command line, before and after it is parsed.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace umacct::tool {

/// The position, from one on, of the first word that is no option of the verb's, nor such an
/// option's value; as many as there are where there is none, and one more where the last one's
/// value is missing. verb: null for what stands before one.
std::size_t first_plain(std::span<const std::string> words, std::size_t from, const CLI::App *verb);

/// Splits a command line with "run", or "complete": removes the words that are another program's,
/// from the first that is no option of ours, so that the parser can't misread or change them. Empty
/// for another verb.
std::optional<std::vector<std::string>> take_command(const CLI::App &app,
                                                     std::vector<std::string> &words);

} // namespace umacct::tool
