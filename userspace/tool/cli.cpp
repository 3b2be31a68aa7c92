// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/cli.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/json.h"
#include "lib/text.h"
#include "tool/print/text.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

constexpr int exit_of_run = 125; ///< of "run", for a failure of ours

constexpr const char *description =
    "umacct shows who holds the system memory that NVIDIA's driver takes on machines whose CPU\n"
    "and GPU share one memory, and can limit it. Without a verb it prints a summary.";

constexpr const char *footer =
    "TARGET is a cgroup path (/system.slice/ollama.service), a systemd unit (ollama.service),\n"
    "a container's name (vllm), its id or the id's beginning (4f5a9c), a pod and its containers\n"
    "(default/llm-0, default/llm-0/vllm), or a pid. Containers are Docker's, Podman's,\n"
    "containerd's and CRI-O's; their names are read from files that root may read.\n"
    "Sizes read 40G, 512M, 1.5GiB or bytes, in binary units; max is no limit.\n"
    "\n"
    "Words: an account is a cgroup's memory taken through the driver. Charged is the part that\n"
    "the kernel's own memory controller (memory.current, memory.max) sees, uncharged the part\n"
    "that it doesn't see. Usage is both.\n"
    "\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 module or driver missing, 4 no permission.\n"
    "\n"
    "Examples:\n"
    "  umacct                                  the machine at a glance\n"
    "  umacct ls                               every cgroup that holds driver memory\n"
    "  umacct top                              the same, live\n"
    "  umacct limit ollama.service --hard 40G  refuse what would take it above 40 GiB\n"
    "  umacct VERB --help                      more about one verb";

void print_version(Context &context) {
    std::optional<std::string> module_version;

    try {
        module_version = context.module().status().module_version;
    } catch (const Error &error) {
        if (error.failure() != Failure::missing)
            throw;
    }
    if (context.json) {
        print_json(context.out(),
                   merged(json_document(),
                          {{"tool_version", UMACCT_VERSION},
                           {"abi_version", UMACCT_FAMILY_VERSION},
                           {"module_version", module_version ? Json(*module_version) : Json()}}));
        return;
    }
    fmt::print(context.out(), "umacct {} (netlink ABI {})\nmodule {}\n", UMACCT_VERSION,
               UMACCT_FAMILY_VERSION, module_version.value_or("not loaded"));
}

void print_error(Context &context, const std::string &what, const std::string &hint) {
    fmt::print(context.err(), "umacct: {}\n", printable(what));
    if (!hint.empty())
        fmt::print(context.err(), "hint: {}\n", hint);
}

/// "umacct limit --help" for an error made while reading that verb's arguments.
std::string help_hint(const CLI::App &app) {
    const auto verbs = app.get_subcommands();

    return fmt::format("see 'umacct {}--help'",
                       verbs.empty() ? "" : verbs.front()->get_name() + " ");
}

int parse_and_run(CLI::App &app, Context &context, std::vector<std::string> words) {
    auto command = take_command(app, words);
    // From 1 on they are the command's.
    const auto code_of = [runs = command.has_value()](Failure failure) {
        return runs ? exit_of_run : static_cast<int>(failure);
    };

    try {
        context.command = std::move(command).value_or(std::vector<std::string>{});
        std::reverse(words.begin(), words.end()); // as the parser wants them
        app.parse(std::move(words));
        if (!context.out().flush())
            throw Error(Failure::failed, "the output could not be written");
        return context.exit_code;
    } catch (const CLI::Success &asked) { // --help
        app.exit(asked, context.out(), context.err());
        return 0;
    } catch (const CLI::ExtrasError &) {
        const std::string extra = app.remaining(true).front();
        const char *what = extra.starts_with('-')          ? "there is no option"
                           : app.get_subcommands().empty() ? "there is no verb"
                                                           : "one argument too many:";

        print_error(context, fmt::format("{} '{}'", what, extra), help_hint(app));
        return code_of(Failure::usage);
    } catch (const CLI::ParseError &error) {
        print_error(context, error.what(), help_hint(app));
        return code_of(Failure::usage);
    } catch (const Error &error) {
        print_error(context, error.what(), error.hint());
        return code_of(error.failure());
    } catch (const std::exception &error) {
        print_error(context, error.what(), "");
        return code_of(Failure::failed);
    }
}

} // namespace

std::unique_ptr<CLI::App> make_app(Context &context) {
    auto app = std::make_unique<CLI::App>(description, "umacct");
    auto version = std::make_shared<bool>(false);

    app->footer(footer);
    app->fallthrough();
    app->require_subcommand(0, 1);
    app->get_formatter()->column_width(34);
    app->get_formatter()->label("OPTIONS", "options");
    app->get_formatter()->label("SUBCOMMAND", "VERB");
    app->add_flag("-j,--json", context.json, "print JSON: bytes as integers, stable keys");
    app->add_flag("--version", *version, "print the versions of the tool, the ABI and the module");
    add_ls(*app, context);
    add_ps(*app, context);
    add_show(*app, context);
    add_top(*app, context);
    add_limit(*app, context);
    add_reserve(*app, context);
    add_charge(*app, context);
    add_run(*app, context);
    add_watch(*app, context);
    add_audit(*app, context);
    add_verify(*app, context);
    add_doctor(*app, context);
    for (CLI::App *verb : app->get_subcommands({}))
        verb->group("Verbs");
    add_complete_targets(*app, context);
    app->callback([app = app.get(), version, &context] {
        if (*version)
            print_version(context);
        else if (app->get_subcommands().empty())
            print_summary(context);
    });
    return app;
}

std::optional<std::vector<std::string>> take_command(const CLI::App &app,
                                                     std::vector<std::string> &words) {
    const CLI::App *verb = nullptr;

    for (auto word = words.begin(); word != words.end(); ++word) {
        const bool option = word->starts_with('-') && *word != "-" && *word != "--";

        if (verb == nullptr && !option) {
            if (*word != "run")
                return std::nullopt;
            verb = app.get_subcommand(*word);
        } else if (verb != nullptr && !option) {
            std::vector<std::string> command(*word == "--" ? word + 1 : word, words.end());

            words.erase(word, words.end());
            return command;
        } else if (verb != nullptr && word + 1 != words.end()) {
            const CLI::Option *known = verb->get_option_no_throw(*word);

            if (known != nullptr && known->get_items_expected_max() > 0)
                ++word;
        }
    }
    return verb != nullptr ? std::optional(std::vector<std::string>{}) : std::nullopt;
}

int run_tool(int argc, const char *const *argv, Surroundings surroundings) {
    std::ostream &err = surroundings.err;

    try {
        Context context(std::move(surroundings));
        const std::unique_ptr<CLI::App> app = make_app(context);

        return parse_and_run(*app, context, {argv + 1, argv + argc});
    } catch (const std::exception &error) {
        fmt::print(err, "umacct: {}\n", error.what());
        return static_cast<int>(Failure::failed);
    }
}

} // namespace umacct::tool
