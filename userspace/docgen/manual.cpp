// SPDX-License-Identifier: GPL-2.0-or-later
#include "docgen/manual.h"

#include <algorithm>
#include <cctype>

#include <fmt/ostream.h>

namespace umacct::docgen {

namespace {

constexpr const char *notice = ".\\\" Made by umacct_docgen from what the tool says of itself.\n"
                               ".\\\" SPDX-License-Identifier: GPL-2.0-or-later\n";

std::string upper(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return text;
}

std::string bold(std::string_view text) {
    return "\\fB" + roff(text) + "\\fR";
}

std::string italic(std::string_view text) {
    return "\\fI" + roff(text) + "\\fR";
}

void print_head(std::ostream &out, const std::string &page, const std::string &description,
                const Edition &edition) {
    fmt::print(out, "{}.TH {} 1 {} \"umacct {}\" \"User Commands\"\n", notice, roff(upper(page)),
               edition.date, roff(edition.version));
    fmt::print(out, ".SH NAME\n{} \\- {}\n", roff(page), roff(description));
}

void print_synopsis(std::ostream &out, const std::string &command, const Verb &verb,
                    const std::string &rest = "") {
    fmt::print(out, ".SH SYNOPSIS\n.B {}\n[{}]...{}\n", roff(command), italic("OPTION"), rest);
    for (const Argument &argument : verb.positionals) {
        const std::string name = italic(argument.value);

        if (argument.kind == Kind::command)
            fmt::print(out, "{} {}...\n", roff("--"), name);
        else
            fmt::print(out, "{}\n", argument.required ? name : "[" + name + "]");
    }
}

void print_description(std::ostream &out, const std::vector<std::string> &paragraphs) {
    const char *before = ".SH DESCRIPTION\n";

    for (const std::string &paragraph : paragraphs) {
        fmt::print(out, "{}{}\n", before, roff(paragraph));
        before = ".PP\n";
    }
}

void print_argument(std::ostream &out, const Argument &argument) {
    std::string names;

    for (const std::string &name : argument.names)
        names += (names.empty() ? "" : ", ") + (name == argument.value ? italic(name) : bold(name));
    if (argument.kind != Kind::flag && argument.names.front() != argument.value)
        names += " " + italic(argument.value);

    std::string text = argument.description;
    if (!argument.words.empty()) {
        text += ". One of: ";
        for (const std::string &word : argument.words)
            text += (word == argument.words.front() ? "" : ", ") + word;
    }
    if (!argument.preset.empty())
        text += ". Default: " + argument.preset;
    fmt::print(out, ".TP\n{}\n{}.\n", names, roff(text));
}

/// common: the options that every verb takes.
void print_options(std::ostream &out, const Verb &verb, const std::vector<Argument> &common) {
    fmt::print(out, ".SH OPTIONS\n");
    for (const Argument &argument : verb.positionals)
        print_argument(out, argument);
    for (const Argument &argument : verb.options)
        print_argument(out, argument);
    for (const Argument &argument : common)
        print_argument(out, argument);
}

void print_exit_codes(std::ostream &out, const std::vector<std::string> &codes) {
    fmt::print(out, ".SH EXIT STATUS\n");
    for (const std::string &code : codes) {
        const auto space = code.find(' ');

        fmt::print(out, ".TP\n{}\n{}.\n", bold(code.substr(0, space)),
                   roff(code.substr(space + 1)));
    }
}

void print_examples(std::ostream &out, const std::vector<std::string> &lines) {
    if (lines.empty())
        return;
    fmt::print(out, ".SH EXAMPLES\n.EX\n");
    for (const std::string &line : lines)
        fmt::print(out, "{}\n",
                   roff(std::string_view(line).substr(line.starts_with("  ") ? 2 : 0)));
    fmt::print(out, ".EE\n");
}

std::string reference(const std::string &page) {
    return bold(page) + "(1)";
}

std::string page_of(const Verb &verb) {
    return "umacct-" + verb.name;
}

/// What a verb's page tells once more: what TARGET and sizes are.
bool is_about_arguments(const std::string &paragraph) {
    return paragraph.starts_with("TARGET ");
}

/// For verbs that take a TARGET.
std::vector<std::string> shared_paragraphs(const Interface &interface, const Verb &verb) {
    std::vector<std::string> paragraphs;
    const auto takes_target = [](const Argument &argument) {
        return argument.kind == Kind::target;
    };

    if (std::any_of(verb.positionals.begin(), verb.positionals.end(), takes_target))
        std::copy_if(interface.tool.paragraphs.begin(), interface.tool.paragraphs.end(),
                     std::back_inserter(paragraphs), is_about_arguments);
    return paragraphs;
}

std::vector<std::string> joined(std::vector<std::string> first,
                                const std::vector<std::string> &second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

} // namespace

std::string roff(std::string_view text) {
    // What starts a line so is a request.
    std::string result = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";

    for (const char c : text) {
        switch (c) {
        case '\\':
            result += "\\e";
            break;
        case '-':
            result += "\\-";
            break;
        case '\'':
            result += "\\(aq";
            break;
        case '`':
            result += "\\(ga";
            break;
        case '^':
            result += "\\(ha";
            break;
        case '~':
            result += "\\(ti";
            break;
        case '"':
            result += "\\(dq";
            break;
        default:
            result += c;
        }
    }
    return result;
}

void print_manual(std::ostream &out, const Interface &interface, const Edition &edition) {
    const Verb &tool = interface.tool;
    std::string references;

    print_head(out, "umacct", "who holds the memory that NVIDIA's driver takes", edition);
    print_synopsis(out, "umacct", tool,
                   "\n[" + italic("VERB") + " [" + italic("ARGUMENT") + "]...]");
    print_description(out, joined({tool.description}, tool.paragraphs));
    fmt::print(out, ".SH VERBS\n");
    for (const Verb &verb : interface.verbs) {
        fmt::print(out, ".TP\n{}\n{}.\n", reference(page_of(verb)), roff(verb.description));
        references += (references.empty() ? "" : ",\n") + reference(page_of(verb));
    }
    print_options(out, tool, {});
    print_exit_codes(out, tool.exit_codes);
    print_examples(out, tool.examples);
    fmt::print(out, ".SH SEE ALSO\n{}\n", references);
}

void print_manual(std::ostream &out, const Interface &interface, const Verb &verb,
                  const Edition &edition) {
    std::vector<Argument> common;

    std::copy_if(interface.tool.options.begin(), interface.tool.options.end(),
                 std::back_inserter(common),
                 [](const Argument &argument) { return argument.names.back() == "--json"; });
    print_head(out, page_of(verb), verb.description, edition);
    print_synopsis(out, "umacct " + verb.name, verb);
    print_description(out, joined(verb.paragraphs, shared_paragraphs(interface, verb)));
    print_options(out, verb, common);
    print_exit_codes(out, interface.tool.exit_codes);
    print_examples(out, verb.examples);
    fmt::print(out, ".SH SEE ALSO\n{}\n", reference("umacct"));
}

} // namespace umacct::docgen
