// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/app.h"

#include <algorithm>
#include <array>
#include <exception>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/ostream.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/json.h"
#include "lib/text.h"
#include "lib/units.h"
#include "tool/exit_code.h"
#include "tool/words.h"

namespace umacct::tool {

namespace {

constexpr const char *description =
    "umacct shows who holds the system memory that NVIDIA's driver takes on machines whose CPU\n"
    "and GPU share one memory, and can limit it. Without a verb it prints a summary.";

constexpr const char *footer =
    "TARGET is a cgroup path (/system.slice/ollama.service), a systemd unit (ollama.service),\n"
    "a container's name (vllm) or the beginning of its id, a pod and its containers\n"
    "(default/llm-0, default/llm-0/vllm), or a pid. Sizes read 40G, 512M or bytes.\n"
    "\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 module or driver missing, 4 no permission,\n"
    "5 set, but nothing enforces it; of preflight: 6 after reclaim, 7 only after compaction,\n"
    "8 no. More is in umacct(1) and the page of each verb.\n"
    "\n"
    "Examples:\n"
    "  umacct                                  the machine at a glance\n"
    "  umacct ls                               every cgroup that holds driver memory\n"
    "  umacct top                              the same, live\n"
    "  umacct limit ollama.service --hard 40G  refuse what would take it above 40 GiB\n"
    "  umacct VERB --help                      more about one verb";

int print_version(Session &session) {
    std::optional<std::string> module_version;
    std::string without = "not loaded";

    // The tool has its version wherever it runs, in a sandbox too.
    try {
        module_version = session.connection.loaded().status().module_version;
    } catch (const Error &error) {
        if (error.failure() != Failure::missing)
            without = fmt::format("unknown: {}", error.what());
    }
    if (session.output.json)
        session.output.document(
            {{"tool_version", UMACCT_VERSION},
             {"abi_version", UMACCT_FAMILY_VERSION},
             {"module_version", module_version ? Json(*module_version) : Json()}});
    else
        fmt::print(session.output.out, "umacct {} (netlink ABI {})\nmodule {}\n", UMACCT_VERSION,
                   UMACCT_FAMILY_VERSION, printable(module_version.value_or(without)));
    return 0;
}

void print_error(std::ostream &err, const std::string &what, const std::string &hint) {
    fmt::print(err, "umacct: {}\n", printable(what));
    if (!hint.empty())
        fmt::print(err, "hint: {}\n", printable(hint));
}

/// Says in the tool's words what the parser found wrong.
std::string words_of(const CLI::ParseError &error) {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 6> others{{
        {": 1 required ", ": "},
        {" missing", " is missing"},
        {"Could not convert: ", "not a number: "},
        {": Value ", ": "},
        {" not in range ", " is not in the range "},
        {" not in {", " is none of {"},
    }};
    std::string text = error.what();

    for (const auto &[word, ours] : others) {
        if (const std::size_t at = text.find(word); at != std::string::npos)
            text.replace(at, word.size(), ours);
    }
    return text;
}

/// "umacct limit --help" for an error made while reading that verb's arguments.
std::string help_of(const CLI::App &app) {
    const auto verbs = app.get_subcommands();

    return fmt::format("see 'umacct {}--help'",
                       verbs.empty() ? "" : verbs.front()->get_name() + " ");
}

/// How many letters have to be changed to make one word the other.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);

    for (std::size_t j = 0; j < row.size(); ++j)
        row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i);

        for (std::size_t j = 1; j <= b.size(); ++j)
            diagonal = std::exchange(row[j], std::min({diagonal + (a[i - 1] == b[j - 1] ? 0 : 1),
                                                       row[j] + 1, row[j - 1] + 1}));
    }
    return row.back();
}

/// "did you mean 'limit'?", for a word that is nearly one that there is.
std::string nearest(const std::string &word, const std::vector<std::string> &known) {
    // Two letters that changed places are two; of a short word that would be half of it.
    std::size_t least = std::max<std::size_t>(word.size() > 4 ? 3 : 2, word.size() / 3 + 1);
    std::string found;

    for (const std::string &each : known) {
        // A short word with another first letter is another word: "stop" is not "top".
        if (word.size() <= 4 && !each.starts_with(word.front()))
            continue;
        if (distance(word, each) < least) {
            least = distance(word, each);
            found = each;
        }
    }
    return found.empty() ? "" : fmt::format("did you mean '{}'? ", found);
}

/// Returns the verb for a word that other tools have for it; empty if there is none.
std::string translated(const std::string &word) {
    static constexpr std::array words{std::pair{"check", "doctor"}, std::pair{"log", "history"},
                                      std::pair{"stats", "top"}};
    const auto *const found =
        std::ranges::find_if(words, [&](const auto &each) { return word == each.first; });

    return found == words.end() ? "" : fmt::format("did you mean '{}'? ", found->second);
}

/// Returns whether a word is a size with its unit, such as the one in "limit ollama 40G".
bool is_size(const std::string &word) {
    try {
        return parse_size(word) >= 1024;
    } catch (const Error &) {
        return false;
    }
}

/// A word that the parser has no use for: what it would be, and what it may have been
/// meant to be.
void print_extra(std::ostream &err, const CLI::App &app) {
    const std::string extra = app.remaining(true).front();
    const auto parsed = app.get_subcommands();
    const CLI::App &at = parsed.empty() ? app : *parsed.front();
    const bool option = extra.starts_with('-');
    std::vector<std::string> known;

    if (option) {
        for (const CLI::Option *each : at.get_options())
            known.push_back(each->get_name());
    } else if (parsed.empty()) {
        for (const Verb &verb : verbs())
            known.emplace_back(*verb.summary == '\0' ? "help" : verb.name);
    }
    std::string meant = parsed.empty() && !option ? translated(extra) : "";
    if (meant.empty() && !parsed.empty() && at.get_option_no_throw("--hard") != nullptr &&
        is_size(extra))
        meant = fmt::format("did you mean '--hard {}'? ", extra);
    print_error(err,
                fmt::format("{} '{}'",
                            option           ? "there is no option"
                            : parsed.empty() ? "there is no verb"
                                             : "one argument too many:",
                            extra),
                (meant.empty() ? nearest(extra, known) : meant) + help_of(app));
}

/// "help ls" is "ls --help", whatever options stand between them.
void understand_help(std::vector<std::string> &words) {
    const auto next_word = [&words](auto from) {
        return std::find_if(from, words.end(),
                            [](const std::string &word) { return !word.starts_with('-'); });
    };
    const auto help = next_word(words.begin());

    if (help == words.end() || *help != "help")
        return;

    const auto verb = next_word(words.erase(help));
    if (verb == words.end())
        words.emplace_back("--help");
    else if (std::ranges::any_of(verbs(), [&](const Verb &each) { return *verb == each.name; }))
        words.insert(verb + 1, "--help");
}

/// Replaces a verb that other tools have, or that there once was, by the words for it here.
void understand_others(const Output &output, std::vector<std::string> &words) {
    struct Other {
        std::string_view verb;
        std::vector<std::string> ours;
        bool was_ours = true;
    };

    static const std::array others{Other{"status", {}, false},
                                   Other{"list", {"ls"}, false},
                                   Other{"events", {"watch"}, false},
                                   Other{"version", {"--version"}, false},
                                   Other{"guard", {"show", "guard"}},
                                   Other{"nvml", {"run", "--nvml"}},
                                   Other{"observer", {"setup", "observer"}},
                                   Other{"reclaim", {"preflight", "--fix"}},
                                   Other{"report", {"history", "--html"}},
                                   Other{"restore", {"config", "load"}},
                                   Other{"save", {"config", "save"}}};
    const auto is_plain = [](const std::string &word) { return !word.starts_with('-'); };
    auto verb = std::ranges::find_if(words, is_plain);

    if (verb != words.end() && *verb == "help")
        verb = std::find_if(verb + 1, words.end(), is_plain);
    const auto *const other =
        verb == words.end() ? others.end() : std::ranges::find(others, *verb, &Other::verb);
    if (other == others.end())
        return;
    if (other->was_ours)
        output.note(
            fmt::format("'umacct {}' is 'umacct {}' now", *verb, fmt::join(other->ours, " ")));
    verb = words.erase(verb);
    words.insert(verb, other->ours.begin(), other->ours.end());
}

int parse_and_run(CLI::App &app, const Asked &asked, Session &session,
                  std::vector<std::string> words) {
    std::ostream &err = session.output.err;

    understand_help(words);
    auto command = take_command(app, words);
    // The command has all codes from 1 on: ours is one that it hardly has. But who may not
    // run anything gets the same error as from every verb, before there is a command.
    const auto code_of = [runs = command.has_value()](Failure failure) {
        return runs && failure != Failure::permission ? exit_of_run : static_cast<int>(failure);
    };

    try {
        session.command = std::move(command).value_or(std::vector<std::string>{});
        std::reverse(words.begin(), words.end()); // the parser's order
        app.parse(std::move(words));
        session.output.json = asked.json;

        const int code = asked.version ? print_version(session)
                         : asked.verb  ? asked.verb(session)
                                       : print_summary(session);
        session.output.flush();
        return code;
    } catch (const CLI::Success &help) {
        Asked nothing;

        if (!app.get_subcommands().empty())
            app.exit(help, session.output.out, err);
        else
            make_app(nothing)->exit(help, session.output.out, err); // lists all verbs
        return 0;
    } catch (const CLI::ExtrasError &) {
        print_extra(err, app);
        return code_of(Failure::usage);
    } catch (const CLI::ParseError &error) {
        print_error(err, words_of(error), help_of(app));
        return code_of(Failure::usage);
    } catch (const Error &error) {
        print_error(err, error.what(), error.hint());
        return code_of(error.failure());
    } catch (const std::exception &error) {
        print_error(err, error.what(), "");
        return code_of(Failure::failed);
    }
}

} // namespace

std::unique_ptr<CLI::App> make_app(Asked &asked, const std::vector<std::string> *words) {
    auto app = std::make_unique<CLI::App>(description, "umacct");
    const auto add_json = [&asked](CLI::App &to) {
        to.add_flag("-j,--json", asked.json, "print JSON: bytes as integers, stable keys");
    };

    app->footer(footer);
    app->require_subcommand(0, 1);
    app->get_formatter()->column_width(34);
    app->get_formatter()->label("OPTIONS", "options");
    app->get_formatter()->label("SUBCOMMAND", "VERB");
    app->get_formatter()->label("Positionals", "Arguments");
    app->get_formatter()->label("TEXT", "");
    app->get_formatter()->label("Excludes", "not with");
    app->set_help_flag("-h,--help", "print this help");
    add_json(*app);
    app->add_flag("-V,--version", asked.version,
                  "print the versions of the tool, the ABI and the module");
    for (const Verb &row : verbs()) {
        if (words != nullptr && std::ranges::find(*words, row.name) == words->end())
            continue;

        CLI::App *verb = app->add_subcommand(row.name, row.summary);

        verb->group(row.group);
        verb->footer(""); // not the one from above
        verb->callback([&asked, action = row.add(*verb)] { asked.verb = action; });
        add_json(*verb);
    }
    return app;
}

int run_tool(int argc, const char *const *argv, const Surroundings &surroundings) {
    try {
        Session session(surroundings);
        Asked asked;
        std::vector<std::string> words(argv + 1, argv + argc);

        understand_others(session.output, words);
        const std::unique_ptr<CLI::App> app = make_app(asked, &words);

        return parse_and_run(*app, asked, session, words);
    } catch (const std::exception &error) {
        print_error(surroundings.output.err, error.what(), "");
        return static_cast<int>(Failure::failed);
    }
}

} // namespace umacct::tool
