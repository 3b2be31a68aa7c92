// SPDX-License-Identifier: GPL-2.0-or-later
/// What the command line offers, as values, read from the parser itself: the one
/// source of the manual and of the shells' completions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace umacct::docgen {

enum class Kind : std::uint8_t {
    flag,    ///< takes no value
    words,   ///< one of a few
    target,  ///< TARGET
    file,    ///< FILE
    command, ///< a command and its arguments
    text,    ///< anything else
};

struct Argument {
    std::vector<std::string> names; ///< "-j", "--json"; one, "TARGET", of a positional
    std::string value;              ///< what an option's value is called: "SIZE"
    std::string description;
    std::string preset; ///< the value without it; may be empty
    Kind kind = Kind::text;
    std::vector<std::string> words;
    bool required = false;
};

/// A verb, or the tool itself.
struct Verb {
    std::string name;
    std::string description;
    std::vector<std::string> paragraphs; ///< more about it
    std::vector<std::string> examples;   ///< lines
    std::vector<std::string> exit_codes; ///< "0 done"
    std::vector<Argument> positionals;
    std::vector<Argument> options;
};

struct Interface {
    Verb tool;
    std::vector<Verb> verbs;
};

Interface read_interface(const CLI::App &app);

} // namespace umacct::docgen
