// SPDX-License-Identifier: GPL-2.0-or-later
#include "docgen/interface.h"

#include <sstream>

namespace umacct::docgen {

namespace {

std::vector<std::string> split(const std::string &text, const std::string &separator) {
    std::vector<std::string> parts;
    std::size_t begin = 0;

    for (std::size_t end = 0; end != std::string::npos; begin = end + separator.size()) {
        end = text.find(separator, begin);
        parts.push_back(text.substr(begin, end == std::string::npos ? end : end - begin));
    }
    return parts;
}

std::string one_line(std::string text) {
    for (char &c : text) {
        if (c == '\n')
            c = ' ';
    }
    return text;
}

/// "TEXT:{on,off}" has words.
std::vector<std::string> words_of(const std::string &type) {
    const auto open = type.find('{');
    const auto close = type.find('}', open);

    if (open == std::string::npos || close == std::string::npos)
        return {};
    return split(type.substr(open + 1, close - open - 1), ",");
}

Argument argument_of(const CLI::Option &option) {
    Argument argument;
    const std::string type = option.get_type_name();

    argument.description = one_line(option.get_description());
    argument.preset = option.get_default_str();
    argument.required = option.get_required();
    argument.words = words_of(type);
    if (option.get_positional()) {
        argument.names = {option.get_name(true)};
        argument.value = argument.names.front();
    } else {
        for (const std::string &name : option.get_snames())
            argument.names.push_back("-" + name);
        for (const std::string &name : option.get_lnames())
            argument.names.push_back("--" + name);
        // CLI11's own words for types say less than these.
        argument.value = !argument.words.empty() ? "WORD" : type == "TEXT" ? "NAME" : type;
    }

    if (option.get_items_expected_max() == 0)
        argument.kind = Kind::flag;
    else if (!argument.words.empty())
        argument.kind = Kind::words;
    else if (argument.value == "TARGET")
        argument.kind = Kind::target;
    else if (argument.value == "FILE")
        argument.kind = Kind::file;
    else if (argument.value == "CMD")
        argument.kind = Kind::command;
    return argument;
}

/// "Exit codes: 0 done, 1 failed." has two.
std::vector<std::string> exit_codes_of(std::string text) {
    while (!text.empty() && text.back() == '.')
        text.pop_back();
    return split(text.substr(text.find(':') + 2), ", ");
}

Verb verb_of(const CLI::App &app) {
    Verb verb;

    verb.name = app.get_name();
    verb.description = one_line(app.get_description());
    for (const std::string &paragraph : split(app.get_footer(), "\n\n")) {
        if (paragraph.starts_with("Exit codes:")) {
            verb.exit_codes = exit_codes_of(one_line(paragraph));
        } else if (paragraph.starts_with("Examples:\n")) {
            verb.examples = split(paragraph, "\n");
            verb.examples.erase(verb.examples.begin());
        } else if (!paragraph.empty()) {
            verb.paragraphs.push_back(one_line(paragraph));
        }
    }
    for (const CLI::Option *option : app.get_options({}))
        (option->get_positional() ? verb.positionals : verb.options)
            .push_back(argument_of(*option));
    return verb;
}

} // namespace

Interface read_interface(const CLI::App &app) {
    Interface interface;

    interface.tool = verb_of(app);
    for (const CLI::App *verb : app.get_subcommands([](const CLI::App *) { return true; })) {
        if (!verb->get_group().empty())
            interface.verbs.push_back(verb_of(*verb));
    }
    return interface;
}

} // namespace umacct::docgen
