// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/words.h"

#include <algorithm>

#include <CLI/CLI.hpp>

namespace umacct::tool {

std::size_t first_plain(std::span<const std::string> words, std::size_t from,
                        const CLI::App *verb) {
    for (; from < words.size(); ++from) {
        if (!words[from].starts_with('-') || words[from] == "-" || words[from] == "--")
            break;
        const CLI::Option *option =
            verb == nullptr ? nullptr : verb->get_option_no_throw(words[from]);
        if (option != nullptr && option->get_items_expected_max() > 0)
            ++from;
    }
    return from;
}

std::optional<std::vector<std::string>> take_command(const CLI::App &app,
                                                     std::vector<std::string> &words) {
    const std::size_t verb = first_plain(words, 0, nullptr);

    if (verb == words.size() || (words[verb] != "run" && words[verb] != "complete"))
        return std::nullopt;

    const std::size_t at = first_plain(words, verb + 1, app.get_subcommand(words[verb]));
    const auto first = words.begin() + static_cast<std::ptrdiff_t>(std::min(at, words.size()));
    std::vector<std::string> command(first != words.end() && *first == "--" ? first + 1 : first,
                                     words.end());
    words.erase(first, words.end());
    return command;
}

} // namespace umacct::tool
