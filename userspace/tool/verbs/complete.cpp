// SPDX-License-Identifier: GPL-2.0-or-later
/// Completions of a command line, for the shells: a line for each word, with a tab and its
/// description. ":file" makes the shell complete files, ":command N" another program's words from
/// the Nth on.
#include <algorithm>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/ostream.h>

#include "lib/settings.h"
#include "lib/text.h"
#include "tool/machine_order.h"
#include "tool/print/columns.h"
#include "tool/session.h"
#include "tool/settings.h"
#include "tool/total.h"
#include "tool/verbs.h"
#include "tool/words.h"

namespace umacct::tool {

namespace {

constexpr std::size_t most_targets = 1000;

/// Returns whether a shell takes the text as one word: cgroups may have any names, and a completion
/// ends up on a command line.
bool is_plain(std::string_view text) {
    return !text.empty() && text.find_first_not_of("abcdefghijklmnopqrstuvwxyz"
                                                   "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                   "0123456789_./@:,+-") == std::string_view::npos;
}

class Candidates {
public:
    explicit Candidates(std::string prefix) : prefix_(std::move(prefix)) {}

    const std::string &prefix() const { return prefix_; }

    void add(const std::string &word, const std::string &what) {
        if (word.starts_with(prefix_) && is_plain(word) && words_.size() < most_targets)
            words_.emplace(word, what);
    }

    /// NAME=VALUE: our own words, which are plain.
    void add_setting(const std::string &word, const std::string &what) {
        if (word.starts_with(prefix_))
            words_.emplace(word, what);
    }

    /// Names come first to mind; a path is written by who begins with "/".
    void add_cgroup(const std::string &path, const std::optional<Owner> &owner) {
        if (prefix_.starts_with('/'))
            add(path, owner ? owner->label() : "cgroup");
        if (!owner)
            return;
        if (owner->kind == OwnerKind::unit) {
            add(owner->id, "unit");
            return;
        }
        const bool is_container = owner->kind == OwnerKind::container;
        const std::string name = owner->full_name();
        if (!name.empty() && (!is_container || owner->pod.empty() || !owner->container.empty()))
            add(name, is_container ? owner->runtime : "pod");
        if (!prefix_.empty() || name.empty())
            add(owner->id, owner->label());
    }

    void print(std::ostream &out) const {
        for (const auto &[word, what] : words_)
            fmt::print(out, "{}\t{}\n", word, printable(what));
    }

private:
    std::string prefix_;
    std::map<std::string, std::string> words_;
};

/// Each source may be missing; the others will do.
template <class Source>
void without_complaint(Source source) {
    try {
        source();
    } catch (const std::exception &) {
        // A shell that is about to complete a word can't show it.
    }
}

void add_targets(Session &session, Candidates &candidates) {
    without_complaint([&] {
        for (const Account &account : session.connection.loaded().accounts()) {
            if (candidates.prefix().empty() && (account.usage > 0 || account.configured()))
                candidates.add(account.path, "cgroup");
        }
    });
    without_complaint([&] {
        const Owners &owners = session.machine.owners();

        session.machine.cgroups().for_each(
            [&](const std::string &path) { candidates.add_cgroup(path, owners.of(path)); });
    });
}

/// COLUMN, or after -o the last of COLUMN,...
void add_columns(Candidates &candidates, const std::string &verb, bool several) {
    const auto last = several ? candidates.prefix().find_last_of("+,") + 1 : 0;
    const std::string before = candidates.prefix().substr(0, last);
    const Of of = verb == "ps" ? Of::processes : verb == "top" ? Of::both : Of::accounts;

    for (const Column &each : columns()) {
        if ((static_cast<unsigned>(each.of) & static_cast<unsigned>(of)) != 0)
            candidates.add(before + std::string(each.name), each.help);
    }
}

void add_options(const CLI::App &app, Candidates &candidates) {
    for (const CLI::Option *option : app.get_options()) {
        for (const std::string &name : option->get_lnames())
            candidates.add("--" + name, option->get_description());
    }
}

/// Returns the words that a setting accepts besides a size or a time. clang 14 does not see that a
/// generic lambda calls it.
[[maybe_unused]] std::vector<std::string_view> words_for(SettingKind kind) {
    switch (kind) {
    case SettingKind::limit:
        return {"max", none_word};
    case SettingKind::flag:
        return {"on", "off", none_word};
    case SettingKind::mode: {
        std::vector<std::string_view> words(std::begin(charge_mode_words),
                                            std::end(charge_mode_words));

        words.emplace_back(none_word);
        return words;
    }
    default:
        return {"off", none_word};
    }
}

/// "hard=", "view=on": names that are not there yet, and after one the words that it takes.
void add_settings(Candidates &candidates, std::span<const std::string> given) {
    const std::string prefix = candidates.prefix();
    const auto equals = prefix.find('=');
    const auto add_name = [&](const auto &setting) {
        const std::string name = setting.policy + std::string("=");

        if (equals == std::string::npos &&
            std::ranges::none_of(given,
                                 [&](const std::string &word) { return word.starts_with(name); }))
            candidates.add_setting(name, setting.help);
    };
    const auto add = [&](const auto &setting) {
        const std::string name = setting.policy + std::string("=");

        add_name(setting);
        if (equals != std::string::npos && prefix.starts_with(name)) {
            for (const std::string_view word : words_for(setting.kind))
                candidates.add_setting(name + std::string(word), setting.title);
        }
    };

    for_each_setting(add);
    if (equals == std::string::npos)
        candidates.add_setting(total_key + std::string("="), total_help);
    if (given.front() == "/" || given.front() == machine_word) {
        for_each_machine_setting(add);
        for_each_headroom_setting(add_name);
    }
}

/// Adds the values of an argument; returns the directive for the shell, or nothing.
std::string add_values(Session &session, const CLI::App &verb, const CLI::Option &argument,
                       std::span<const std::string> given, Candidates &candidates) {
    const std::string name = argument.get_positional() ? argument.get_name(true) : "";
    const std::string type = argument.get_type_name();

    if (type == "FILE")
        return ":file";
    if (type.starts_with("COLUMN"))
        add_columns(candidates, verb.get_name(), type != "COLUMN");
    if (name == "TARGET")
        add_targets(session, candidates);
    if (name == "TARGET" && verb.get_name() == "set")
        candidates.add(std::string(machine_word), "the machine");
    if (name == "TARGET" && verb.get_name() == "show")
        candidates.add("guard", "umacctd's guard");
    if (name == "SETTING")
        add_settings(candidates, given);
    if (verb.get_name() == "charge" && (name == "TARGET" || name == "MODE")) {
        for (const char *mode : {"on", "off", "inherit"})
            candidates.add(mode, "mode");
    }
    return "";
}

/// Whether TARGET stands for a file after these words.
bool takes_file(const std::string &verb, std::span<const std::string> words) {
    const auto is_there = [&](const char *word) { return std::ranges::count(words, word) > 0; };

    return (verb == "config" && is_there("load")) ||
           (verb == "history" && (is_there("--html") || is_there("--svg")));
}

std::string complete_argument(Session &session, const CLI::App &verb,
                              std::span<const std::string> words, Candidates &candidates) {
    std::vector<const CLI::Option *> positionals;
    std::vector<std::string> given;

    for (const CLI::Option *option : verb.get_options()) {
        if (option->get_positional())
            positionals.push_back(option);
    }
    for (std::size_t at = first_plain(words, 0, &verb); at != words.size();
         at = first_plain(words, at + 1, &verb)) {
        if (at > words.size()) // its value is still to come
            return add_values(session, verb, *verb.get_option_no_throw(words.back()), given,
                              candidates);
        given.push_back(words[at]);
    }
    if (candidates.prefix().starts_with('-'))
        add_options(verb, candidates);
    else if (given.size() + 1 == positionals.size() && takes_file(verb.get_name(), words))
        return ":file";
    else if (given.size() < positionals.size())
        return add_values(session, verb, *positionals[given.size()], given, candidates);
    else if (!positionals.empty() && positionals.back()->get_items_expected_max() > 1)
        return add_values(session, verb, *positionals.back(), given, candidates);
    return "";
}

const CLI::App *verb_of(const CLI::App &app, const std::string &name) {
    const auto found =
        app.get_subcommands([&](const CLI::App *verb) { return verb->get_name() == name; });

    return found.empty() ? nullptr : found.front();
}

int complete(Session &session, const CLI::App &app, std::span<const Verb> verbs,
             std::vector<std::string> words) {
    Candidates candidates(words.empty() ? "" : words.back());
    std::string asked;

    if (!words.empty())
        words.pop_back();

    const std::size_t at = first_plain(words, 0, nullptr);
    if (at >= words.size() || words[at] == "help") {
        for (const Verb &verb : verbs) {
            if (*verb.summary != '\0' && !candidates.prefix().starts_with('-'))
                candidates.add(verb.name, verb.summary);
        }
        if (candidates.prefix().starts_with('-'))
            add_options(app, candidates);
    } else if (const CLI::App *verb = verb_of(app, words[at])) {
        const std::size_t command = first_plain(words, at + 1, verb);

        if (verb->get_name() == "run" &&
            (command < words.size() ||
             (command == words.size() && !candidates.prefix().starts_with('-'))))
            asked = fmt::format(":command {}", command < words.size() && words[command] == "--"
                                                   ? command + 1
                                                   : command);
        else
            asked = complete_argument(session, *verb, std::span(words).subspan(at + 1), candidates);
    }
    if (!asked.empty())
        fmt::print(session.output.out, "{}\n", asked);
    candidates.print(session.output.out);
    return 0;
}

} // namespace

Action add_complete(CLI::App &verb, std::span<const Verb> verbs) {
    return [&verb, verbs](Session &session) {
        return complete(session, *verb.get_parent(), verbs, session.command);
    };
}

} // namespace umacct::tool
