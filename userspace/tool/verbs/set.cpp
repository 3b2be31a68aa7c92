// SPDX-License-Identifier: GPL-2.0-or-later
/// "set": all settings of a cgroup, or of the machine, by the names that a policy has for them.
#include <map>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/json.h"
#include "lib/memory/preflight.h"
#include "lib/settings.h"
#include "lib/text.h"
#include "tool/arguments.h"
#include "tool/headroom.h"
#include "tool/session.h"
#include "tool/settings.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

struct SetOptions {
    std::string target;
    std::vector<std::string> settings; ///< NAME=VALUE
};

/// By name. Throws Error (usage).
std::map<std::string, std::string> values_of(const SetOptions &options) {
    std::map<std::string, std::string> values;

    for (const std::string &each : options.settings) {
        const auto equals = each.find('=');

        if (equals == std::string::npos)
            throw Error(Failure::usage, fmt::format("SETTING: '{}' has no value", each),
                        "a setting is NAME=VALUE, such as hard=40G");
        if (!values.emplace(each.substr(0, equals), each.substr(equals + 1)).second)
            throw Error(Failure::usage,
                        fmt::format("SETTING: '{}' is there twice", each.substr(0, equals)),
                        "which of the values is it?");
    }
    if (values.empty())
        throw Error(Failure::usage, "SETTING is missing: what is to be set?",
                    "for example: umacct set ollama.service hard=40G view=on");
    return values;
}

/// What only the machine has.
void for_each_setting_of_the_machine(auto &&use) {
    for_each_machine_setting(use);
    for_each_headroom_setting(use);
}

/// The names of all settings that for_each() has.
std::string names_of(auto for_each) {
    std::string names;

    for_each([&](const auto &setting) {
        names += (names.empty() ? "" : ", ") + std::string(setting.policy);
    });
    return names;
}

/// What one command line changes: of the target's account, and of the machine.
class Change {
public:
    AccountChange account;
    MachineChange machine;
    HeadroomChange headroom;

    /// Throws Error (usage) that names the setting.
    Change(const Machine &host, const Target &target, bool machine_first,
           std::map<std::string, std::string> values)
        : values_(std::move(values)), account_of_(target.path) {
        WrittenSettings written;

        if (machine_first)
            read_machine(host);
        for_each_setting([&](const auto &setting) {
            take(setting, account_of_, [&](const std::string &text) {
                text == none_word ? written.clear(setting) : written.read(setting, text);
            });
        });
        if (!machine_first && target.path == "/")
            read_machine(host);
        refuse_others(target.path == "/");
        account = written.on(written.has_shares() ? host.meminfo().total() : 0);
    }

private:
    void read_machine(const Machine &host) {
        for_each_machine_setting([&](const auto &setting) {
            take(setting, machine_itself, [&](const std::string &text) {
                machine.*setting.change =
                    text == none_word
                        ? setting.neutral
                        : read_setting(setting, text,
                                       text.ends_with('%') ? host.meminfo().total() : 0);
            });
        });
        for_each_headroom_setting([&](const auto &setting) {
            take(setting, machine_itself, [&](const std::string &text) {
                headroom.*setting.change =
                    text == none_word ? setting.neutral : setting.parse(text, host);
            });
        });
    }

    void take(const auto &setting, const std::string &whose, auto read) {
        const auto found = values_.find(setting.policy);

        if (found == values_.end())
            return;
        try {
            read(found->second);
        } catch (const Error &error) {
            throw Error(error.failure(), cannot_set(setting.policy, whose, error.what()),
                        error.hint().empty() ? fmt::format("{}: {}", setting.policy, setting.help)
                                             : error.hint());
        }
        values_.erase(found);
    }

    void refuse_others(bool of_machine) const {
        const auto any = [](auto &&use) { for_each_setting(use); };
        const auto machines = [](auto &&use) { for_each_setting_of_the_machine(use); };

        if (values_.empty())
            return;
        const std::string &name = values_.begin()->first;
        bool is_machines = false;
        for_each_setting_of_the_machine(
            [&](const auto &setting) { is_machines = is_machines || name == setting.policy; });
        if (is_machines)
            throw Error(Failure::usage, cannot_set(name, account_of_, "it is the machine's"),
                        fmt::format("'umacct set machine {}={}'", name, values_.begin()->second));
        throw Error(Failure::usage, cannot_set(name, account_of_, "there is no such setting"),
                    fmt::format("the settings are {}{}", names_of(any),
                                of_machine ? "; the machine's are " + names_of(machines) : ""));
    }

    std::map<std::string, std::string> values_; ///< those that are still to be read
    std::string account_of_;
};

/// The machine's settings, then the account's; where those are refused, the former are taken
/// back.
Enforcement make_it_so(Module &module, const Target &target, const Change &change,
                       const MachineChange &machine_before) {
    Enforcement made;

    if (!change.machine.empty())
        made = set_machine(module, change.machine);
    if (change.account.empty())
        return made;
    try {
        return set_account(module, target, change.account);
    } catch (const Error &error) {
        if (change.machine.empty())
            throw;
        try {
            set_machine(module, machine_before);
        } catch (const Error &) {
            throw Error(error.failure(), error.what(),
                        "the machine's settings were changed before, and could not be taken back");
        }
        throw Error(error.failure(), error.what(), "the machine's settings are as they were");
    }
}

/// The settings that for_each() has, for the verb's help.
std::string help_of(const char *title, auto for_each) {
    std::string text = title;

    for_each([&](const auto &setting) {
        text += fmt::format("\n  {:<17}{}{}", setting.policy, setting.help,
                            setting.kind == SettingKind::flag ? ": on or off" : "");
    });
    return text;
}

/// Those that were asked for.
Json to_json(const HeadroomChange &asked, const Headroom &headroom) {
    Json members = Json::object();

    if (asked.bytes)
        members["headroom_bytes"] = headroom.bytes;
    if (asked.block)
        members["headroom_block_bytes"] = headroom.block;
    return members;
}

/// Whether umacctd runs, which keeps it. others: the module's settings were changed before.
bool keep(const Machine &machine, const Headroom &headroom, bool others) {
    try {
        return set_headroom(machine, headroom).has_value();
    } catch (const Error &error) {
        if (!others)
            throw;
        throw Error(error.failure(), error.what(),
                    "the other settings were changed before, and stay so");
    }
}

int set(Session &session, const SetOptions &options) {
    const bool of_machine = options.target == machine_word;
    const auto values = values_of(options);
    const Target target = of_machine ? session.machine.resolve("/")
                                     : resolve_to_change(session.machine, options.target);
    const Change change(session.machine, target, of_machine, values);
    const bool of_module = !change.account.empty() || !change.machine.empty();
    const auto account_now = [&] {
        return change.account.empty()
                   ? Account()
                   : read_account(session.module(), session.machine.cgroups(), target);
    };
    const auto machine_now = [&] {
        return as_it_is(change.machine,
                        change.machine.empty() ? Status() : session.module().status());
    };
    const auto headroom_before =
        change.headroom.empty() ? Headroom() : headroom_now(session.machine);
    const MachineChange machine_before = machine_now();
    const AccountChange before = as_it_is(change.account, account_now());
    const Enforcement made =
        of_module ? make_it_so(session.module(), target, change, machine_before) : Enforcement();
    // The last: the module may refuse what it is asked for, and then no headroom changes.
    const Headroom headroom = change.headroom.on(headroom_before);
    const bool kept = change.headroom.empty() || keep(session.machine, headroom, of_module) ||
                      headroom.bytes == 0;
    const MachineChange machine_after = machine_now();
    const Account account = account_now();
    const AccountChange after = as_it_is(change.account, account);

    if (session.output.json) {
        session.output.document(
            merged({{"path", target.path},
                    {"before", merged(merged(to_json(machine_before), to_json(before)),
                                      to_json(change.headroom, headroom_before))},
                    {"after", merged(merged(to_json(machine_after), to_json(after)),
                                     to_json(change.headroom, headroom))}},
                   of_module ? to_json(made) : Json::object()));
    } else {
        print_changes(session.output, machine_before, machine_after);
        print_changes(session, target, before, after);
        if (!change.headroom.empty())
            print_change(session.output, "headroom", words_of(headroom_before), words_of(headroom));
    }
    note_what_stays(session, target, change.account, account);
    const int code = report_enforcement(session.output, made);
    return kept ? code : report_no_umacctd(session.output);
}

} // namespace

Action add_set(CLI::App &verb) {
    auto options = std::make_shared<SetOptions>();

    verb.add_option("TARGET", options->target,
                    "cgroup path, unit, container, pod or pid; machine for the machine")
        ->required();
    verb.add_option("SETTING", options->settings, "NAME=VALUE: what is to be set");
    verb.footer(help_of("Settings:", [](auto &&use) { for_each_setting(use); }) +
                help_of("\nOf the machine, beside these:",
                        [](auto &&use) { for_each_setting_of_the_machine(use); }));
    add_examples(verb, "umacct set ollama.service hard=40G soft=36G view=on\n"
                       "umacct set ollama.service hard=none     no hard limit any more\n"
                       "umacct set / view=on                    of every cgroup\n"
                       "umacct set machine reserve=8G charge=on headroom=12G");
    return [options](Session &session) { return set(session, *options); };
}

} // namespace umacct::tool
