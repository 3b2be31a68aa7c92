// SPDX-License-Identifier: GPL-2.0-or-later
#include "docgen/completions.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

namespace umacct::docgen {

namespace {

constexpr const char *notice = "# SPDX-License-Identifier: GPL-2.0-or-later\n"
                               "# Made by umacct_docgen from what the tool says of itself.\n";

std::string joined(const std::vector<std::string> &words) {
    std::string line;

    for (const std::string &word : words)
        line += (line.empty() ? "" : " ") + word;
    return line;
}

std::string names_of(const std::vector<Argument> &arguments) {
    std::string line;

    for (const Argument &argument : arguments)
        line += (line.empty() ? "" : " ") + joined(argument.names);
    return line;
}

/// In single quotes for any of the shells.
std::string single_quoted(const std::string &text) {
    std::string result = "'";

    for (const char c : text)
        result += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return result + "'";
}

/// The tool's own options that verbs take as well.
std::vector<Argument> with_common(const Interface &interface, const Verb &verb) {
    std::vector<Argument> options = verb.options;

    for (const Argument &option : interface.tool.options) {
        if (option.names.back() == "--json")
            options.push_back(option);
    }
    return options;
}

// --- bash -----------------------------------------------------------------------

/// What completes a value: a name that the script's last part understands.
std::string bash_kind(const Argument &argument) {
    switch (argument.kind) {
    case Kind::words:
        return joined(argument.words);
    case Kind::target:
        return "TARGET";
    case Kind::file:
        return "FILE";
    case Kind::command:
        return "CMD";
    default:
        return "-";
    }
}

constexpr const char *bash_begin = R"bash(
# The words so far, split at spaces alone: names have '@', ':' and '=' in them, at which
# readline splits words too.
_umacct() {
    local line=${COMP_LINE:0:COMP_POINT} cur='' word verb='' before='' dashes='' kind=''
    local verbs='' options='' values=''
    local -a words=() replies=() positionals=()
    local -i given=0 i
    read -ra words <<<"$line"
    case $line in
    *[[:space:]]) ;;
    *)
        cur=${words[${#words[@]} - 1]}
        unset 'words[${#words[@]}-1]'
        ;;
    esac
    for word in "${words[@]:1}"; do
        if [[ $dashes ]]; then
            given+=1
        elif [[ -z $verb ]]; then
            [[ $word == -* ]] || verb=$word
        elif [[ $before && " $(_umacct_valued "$verb") " == *" $before "* ]]; then
            before=''
            continue
        elif [[ $word == -- ]]; then
            dashes=1
        elif [[ $word != -* ]]; then
            given+=1
        fi
        before=$word
    done
    case $verb in
)bash";

constexpr const char *bash_end = R"bash(    *) return ;;
    esac
    if [[ $values ]]; then
        kind=$values
    elif [[ $cur == -* && -z $dashes ]]; then
        kind=$options
    elif [[ -z $verb ]]; then
        kind=$verbs
    elif [[ ${positionals[0]-} == CMD ]]; then
        [[ -z $dashes ]] || kind=CMD
        [[ $given -eq 0 ]] || kind=FILE
    elif [[ $given -lt ${#positionals[@]} ]]; then
        kind=${positionals[given]}
    fi
    case $kind in
    - | '') ;;
    TARGET)
        while IFS=$'\t' read -r word _; do
            replies+=("$word")
        done < <("$1" complete-targets -- "$cur" 2>/dev/null)
        ;;
    CMD) mapfile -t replies < <(compgen -c -- "$cur") ;;
    FILE)
        mapfile -t replies < <(compgen -f -- "$cur")
        compopt -o filenames 2>/dev/null
        ;;
    *) mapfile -t replies < <(compgen -W "$kind" -- "$cur") ;;
    esac
    # Readline replaces what follows the last character that it splits words at.
    # An '@' it takes for the beginning of a word, though.
    word=${cur%"${cur##*["$COMP_WORDBREAKS"]}"}
    word=${word%@}
    for ((i = 0; i < ${#replies[@]}; i++)); do
        COMPREPLY+=("${replies[i]#"$word"}")
    done
}
complete -F _umacct umacct
)bash";

void print_bash_verb(std::ostream &out, const Interface &interface, const Verb &verb) {
    const std::vector<Argument> options = with_common(interface, verb);
    std::string positionals;

    fmt::print(out, "    {})\n        options={}\n", verb.name, single_quoted(names_of(options)));
    for (const Argument &argument : verb.positionals)
        positionals += (positionals.empty() ? "" : " ") + single_quoted(bash_kind(argument));
    if (!positionals.empty())
        fmt::print(out, "        positionals=({})\n", positionals);
    std::string cases;
    for (const Argument &option : options) {
        if (option.kind == Kind::flag)
            continue;
        std::string names;
        for (const std::string &name : option.names)
            names += (names.empty() ? "" : " | ") + name;
        cases += fmt::format("        {}) values={} ;;\n", names, single_quoted(bash_kind(option)));
    }
    if (!cases.empty())
        fmt::print(out, "        case $before in\n{}        esac\n", cases);
    fmt::print(out, "        ;;\n");
}

// --- zsh ------------------------------------------------------------------------

/// With what zsh would take for the end of it escaped.
std::string zsh_text(const std::string &text, const char *special) {
    std::string result;

    for (const char c : text) {
        if (std::string_view(special).find(c) != std::string_view::npos)
            result += '\\';
        result += c;
    }
    return result;
}

/// ":MESSAGE:ACTION"
std::string zsh_action(const Argument &argument) {
    switch (argument.kind) {
    case Kind::flag:
        return "";
    case Kind::words:
        return fmt::format(":{}:({})", argument.value, joined(argument.words));
    case Kind::target:
        return ":TARGET:_umacct_targets";
    case Kind::file:
        return ":FILE:_files";
    case Kind::command:
    case Kind::text:
        break;
    }
    return fmt::format(":{}: ", argument.value);
}

constexpr const char *zsh_begin = R"zsh(
_umacct_targets() {
    local -a lines
    lines=(${(f)"$(_call_program targets umacct complete-targets -- ${(q)PREFIX} 2>/dev/null)"})
    compadd -- ${lines%%$'\t'*}
}

_umacct() {
    local curcontext=$curcontext state
    local -a line verbs
    typeset -A opt_args
    verbs=(
)zsh";

constexpr const char *zsh_middle = R"zsh( \
            '1:VERB:->verb' \
            '*::ARGUMENT:->arguments'
    case $state in
    verb) _describe -t verbs VERB verbs ;;
    arguments)
        case $words[1] in
)zsh";

/// A command, and whatever it takes.
constexpr const char *zsh_command = " \\\n            '(-)1:CMD:_command_names -e'"
                                    " \\\n            '*::ARGUMENT:_normal'";

void print_zsh_option(std::ostream &out, const Argument &option) {
    for (const std::string &name : option.names)
        fmt::print(
            out, " \\\n            {}",
            single_quoted(fmt::format("({}){}[{}]{}", joined(option.names), name,
                                      zsh_text(option.description, "[]\\"), zsh_action(option))));
}

void print_zsh_verb(std::ostream &out, const Interface &interface, const Verb &verb) {
    fmt::print(out, "        {})\n            _arguments -S", verb.name);
    for (const Argument &option : with_common(interface, verb))
        print_zsh_option(out, option);
    int position = 0;
    for (const Argument &argument : verb.positionals) {
        if (argument.kind == Kind::command)
            out << zsh_command;
        else
            fmt::print(out, " \\\n            {}",
                       single_quoted(fmt::format("{}{}{}", ++position, argument.required ? "" : ":",
                                                 zsh_action(argument))));
    }
    fmt::print(out, "\n            ;;\n");
}

// --- fish -----------------------------------------------------------------------

/// In single quotes, where fish knows two escapes.
std::string fish_quoted(const std::string &text) {
    std::string result = "'";

    for (const char c : text) {
        if (c == '\'' || c == '\\')
            result += '\\';
        result += c;
    }
    return result + "'";
}

constexpr const char *fish_targets = "'(__umacct_targets)'";

/// How values are completed: -x takes no files, -r also does.
std::string fish_values(const Argument &argument) {
    switch (argument.kind) {
    case Kind::flag:
        return "";
    case Kind::words:
        return " -x -a " + fish_quoted(joined(argument.words));
    case Kind::target:
        return std::string(" -x -a ") + fish_targets;
    case Kind::file:
        return " -r -F";
    case Kind::command:
        return " -x -a '(complete -C (commandline -ct))'";
    case Kind::text:
        break;
    }
    return " -x";
}

constexpr const char *fish_begin = R"fish(
function __umacct_targets
    umacct complete-targets -- (commandline -ct) 2>/dev/null
end

# Whether the words so far are those of a verb, and so many arguments if that is said.
function __umacct_at
    set -l words (commandline -opc)
    set -e words[1]
    set -l verb
    set -l given 0
    set -l before
    for word in $words
        if test -z "$verb"
            string match -q -- '-*' $word; or set verb $word
        else if contains -- "$before" (__umacct_valued $verb)
            set before
            continue
        else if not string match -q -- '-*' $word
            set given (math $given + 1)
        end
        set before $word
    end
    test "$verb" = "$argv[1]"; or return 1
    test (count $argv) -eq 1; or test $given -eq $argv[2]
end

# The options of a verb that a value follows.
function __umacct_valued
    switch $argv[1]
)fish";

void print_fish_option(std::ostream &out, const std::string &condition, const Argument &option) {
    std::string names;

    for (const std::string &name : option.names)
        names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    fmt::print(out, "complete -c umacct -n {}{} -d {}{}\n", fish_quoted(condition), names,
               fish_quoted(option.description), fish_values(option));
}

void print_fish_verb(std::ostream &out, const Verb &verb) {
    int position = 0;

    fmt::print(out, "\ncomplete -c umacct -f -n __fish_use_subcommand -a {} -d {}\n", verb.name,
               fish_quoted(verb.description));
    for (const Argument &option : verb.options)
        print_fish_option(out, fmt::format("__umacct_at {}", verb.name), option);
    for (const Argument &argument : verb.positionals) {
        fmt::print(out, "complete -c umacct -n {}{}\n",
                   fish_quoted(fmt::format("__umacct_at {} {}", verb.name, position++)),
                   fish_values(argument));
        if (argument.kind == Kind::command)
            fmt::print(out,
                       "complete -c umacct -n '__umacct_at {0}; and not __umacct_at {0} 0' -F\n",
                       verb.name);
    }
}

} // namespace

void print_bash(std::ostream &out, const Interface &interface) {
    std::string verbs;

    fmt::print(out, "{}# shellcheck shell=bash\n\n", notice);
    fmt::print(out, "# The options of a verb that a value follows.\n_umacct_valued() {{\n"
                    "    case $1 in\n");
    for (const Verb &verb : interface.verbs) {
        std::string valued;

        for (const Argument &option : verb.options) {
            if (option.kind != Kind::flag)
                valued += (valued.empty() ? "" : " ") + joined(option.names);
        }
        if (!valued.empty())
            fmt::print(out, "    {}) echo {} ;;\n", verb.name, single_quoted(valued));
        verbs += (verbs.empty() ? "" : " ") + verb.name;
    }
    fmt::print(out, "    esac\n}}\n{}", bash_begin);
    fmt::print(out, "    '')\n        verbs={}\n        options={}\n        ;;\n",
               single_quoted(verbs), single_quoted(names_of(interface.tool.options)));
    for (const Verb &verb : interface.verbs)
        print_bash_verb(out, interface, verb);
    fmt::print(out, "{}", bash_end);
}

void print_zsh(std::ostream &out, const Interface &interface) {
    fmt::print(out, "#compdef umacct\n{}", notice);
    out << zsh_begin;
    for (const Verb &verb : interface.verbs)
        fmt::print(out, "        {}\n",
                   single_quoted(verb.name + ":" + zsh_text(verb.description, ":\\")));
    fmt::print(out, "    )\n    _arguments -C");
    for (const Argument &option : interface.tool.options)
        print_zsh_option(out, option);
    out << zsh_middle;
    for (const Verb &verb : interface.verbs)
        print_zsh_verb(out, interface, verb);
    fmt::print(out, "        esac\n        ;;\n    esac\n}}\n\n_umacct \"$@\"\n");
}

void print_fish(std::ostream &out, const Interface &interface) {
    fmt::print(out, "{}", notice);
    out << fish_begin;
    for (const Verb &verb : interface.verbs) {
        std::string valued;

        for (const Argument &option : verb.options) {
            if (option.kind != Kind::flag)
                valued += " " + joined(option.names);
        }
        if (!valued.empty())
            fmt::print(out, "        case {}\n            string split ' ' --{}\n", verb.name,
                       " " + single_quoted(valued.substr(1)));
    }
    fmt::print(out, "    end\nend\n\ncomplete -c umacct -f\n");
    for (const Argument &option : interface.tool.options)
        print_fish_option(out, option.names.back() == "--json" ? "true" : "__fish_use_subcommand",
                          option);
    for (const Verb &verb : interface.verbs)
        print_fish_verb(out, verb);
}

} // namespace umacct::docgen
