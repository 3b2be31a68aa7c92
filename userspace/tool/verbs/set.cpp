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
#include "tool/machine_order.h"
#include "tool/permanent.h"
#include "tool/session.h"
#include "tool/settings.h"
#include "tool/total.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

struct SetOptions {
    std::string target;
    std::vector<std::string> settings; ///< NAME=VALUE
    bool permanent = false;
};

/// Returns the values by name. Throws Error (usage).
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

/// The setting that is charging and memory.max.
struct TotalSetting {
    const char *policy = total_key;
    const char *help = total_help;
    SettingKind kind = SettingKind::limit;
};

/// Visits the settings of a cgroup.
void for_each_setting_of_a_cgroup(auto &&use) {
    for_each_setting(use);
    use(TotalSetting());
}

/// Visits the settings that only the machine has.
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

/// Changes of one command line: to the target's account, and to the machine.
class Change {
public:
    PersonChange account;
    MachineWish machine;
    std::optional<std::uint64_t> total; ///< memory.max

    /// Throws Error (usage) that names the setting.
    Change(const Machine &host, const Target &target, bool machine_first,
           std::map<std::string, std::string> values)
        : values_(std::move(values)), account_of_(target.path) {
        WrittenSettings written;

        if (machine_first)
            read_machine(host);
        for_each_setting([&](const auto &setting) {
            take(setting, account_of_, [&](const std::string &text) {
                if (text == back_word)
                    account.taken_back.push_back(setting.attribute);
                else
                    text == none_word ? written.clear(setting) : written.read(setting, text);
            });
        });
        if (!machine_first && target.path == "/")
            read_machine(host);
        take(TotalSetting(), account_of_, [&](const std::string &text) {
            total = text == back_word ? UMACCT_UNLIMITED : parse_total(text, host);
        });
        refuse_others(target.path == "/");
        account.asked = written.on(written.has_shares() ? host.meminfo().total() : 0);
        if (total)
            charge_for_total(*total, account);
    }

private:
    void read_machine(const Machine &host) {
        for_each_machine_setting([&](const auto &setting) {
            take(setting, machine_itself, [&](const std::string &text) {
                if (text == back_word)
                    machine.taken_back.emplace_back(setting.policy);
                else
                    machine.module.*setting.change =
                        text == none_word
                            ? setting.neutral
                            : read_setting(setting, text,
                                           text.ends_with('%') ? host.meminfo().total() : 0);
            });
        });
        for_each_headroom_setting([&](const auto &setting) {
            take(setting, machine_itself, [&](const std::string &text) {
                if (text == back_word)
                    machine.taken_back.emplace_back(setting.policy);
                else
                    machine.headroom.*setting.change =
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
        const auto any = [](auto &&use) { for_each_setting_of_a_cgroup(use); };
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

/// The settings that for_each() has, for the verb's help.
std::string help_of(const char *title, auto for_each) {
    std::string text = title;

    for_each([&](const auto &setting) {
        text += fmt::format("\n  {:<17}{}{}", setting.policy, setting.help,
                            setting.kind == SettingKind::flag ? ": on or off" : "");
    });
    return text;
}

/// Those that were asked for and are not in the module.
Json rest_json(const MachineWish &wish, const Headroom &headroom,
               const std::optional<TotalChange> &total, std::uint64_t TotalChange::*when) {
    const auto is_named = [&](const auto &asked, const char *key) {
        return asked || std::ranges::count(wish.taken_back, key) > 0;
    };
    Json members = Json::object();

    if (is_named(wish.headroom.bytes, "headroom"))
        members["headroom_bytes"] = headroom.bytes;
    if (is_named(wish.headroom.block, "headroom_blocks"))
        members["headroom_block_bytes"] = headroom.block;
    if (total)
        members["total_bytes"] = (*total).*when == UMACCT_UNLIMITED ? Json() : Json((*total).*when);
    return members;
}

/// The machine's settings, then the account's; where those are refused, the former are as they
/// were.
Carried make_it_so(Session &session, const Target &target, const Change &change,
                   MachineChanged &machine) {
    if (!change.machine.empty())
        machine = change_machine(session, change.machine);
    if (change.account.empty())
        return {};
    try {
        return carry_out(session, target, change.account);
    } catch (const Error &error) {
        if (change.machine.empty())
            throw;
        undo(session, machine);
        throw Error(error.failure(), error.what(), "the machine's settings are as they were");
    }
}

int set(Session &session, const SetOptions &options) {
    const bool of_machine = options.target == machine_word;
    const auto values = values_of(options);

    if (options.permanent && of_machine)
        throw Error(Failure::usage, "--permanent: the machine's settings are not a rule's",
                    "write them to [machine] in /etc/umacct.toml");
    if (options.permanent) {
        const Change change(session.machine, {.path = options.target, .id = 0, .pid = {}}, false,
                            values);

        return change_for_good(session, options.target, change.account, change.total);
    }

    const Target target = of_machine ? session.machine.resolve("/")
                                     : resolve_to_change(session.machine, options.target);
    const Change change(session.machine, target, of_machine, values);
    const Output &output = session.output;
    const bool of_module = !change.account.empty() || !change.machine.module.empty();
    MachineChanged machine;
    std::optional<TotalChange> total;
    Carried carried;
    const auto make = [&] { carried = make_it_so(session, target, change, machine); };
    if (change.total)
        total = set_total(session.machine, target, *change.total, make);
    else
        make();
    const MachineChange &before = machine.of_module.before;
    const MachineChange after =
        before.empty() ? before : as_it_is(before, session.module().status());
    const Account account = change.account.empty()
                                ? Account()
                                : read_account(session.module(), session.machine.cgroups(), target);
    const AccountChange account_after = as_it_is(carried.set, account);
    const Enforcement &made = change.account.empty() ? machine.of_module.made : carried.made;

    if (output.json) {
        output.document(merged({{"path", target.path},
                                {"before", merged(merged(to_json(before), to_json(carried.before)),
                                                  rest_json(change.machine, machine.before, total,
                                                            &TotalChange::before))},
                                {"after", merged(merged(to_json(after), to_json(account_after)),
                                                 rest_json(change.machine, machine.after, total,
                                                           &TotalChange::after))}},
                               of_module ? to_json(made) : Json::object()));
    } else {
        print_changes(output, before, after);
        print_changes(session, target, carried.before, account_after);
        if (change.machine.has_headroom())
            print_change(output, "headroom", words_of(machine.before), words_of(machine.after));
    }
    if (total)
        report_total(output, *total, account);
    if (!change.account.empty())
        note_orders(session, carried, change.account);
    if (!change.machine.empty())
        note_machine(output, machine);
    note_what_stays(session, target, carried.set, account);
    const int code = report_enforcement(output, made);
    return change.machine.has_headroom() && machine.after.bytes != 0 && !machine.daemon
               ? report_no_umacctd(output)
               : code;
}

} // namespace

Action add_set(CLI::App &verb) {
    auto options = std::make_shared<SetOptions>();

    verb.add_option("TARGET", options->target,
                    "cgroup path, unit, container, pod or pid; machine for the machine")
        ->required();
    verb.add_option("SETTING", options->settings, "NAME=VALUE: what is to be set");
    verb.add_flag("--permanent", options->permanent, permanent_help);
    verb.footer(help_of("Settings:", [](auto &&use) { for_each_setting_of_a_cgroup(use); }) +
                help_of("\nOf the machine, beside these:",
                        [](auto &&use) { for_each_setting_of_the_machine(use); }));
    add_examples(verb,
                 "umacct set ollama.service total=60G     all its memory, driver and programs\n"
                 "umacct set ollama.service hard=40G soft=36G view=on\n"
                 "umacct set ollama.service hard=none     no hard limit, whatever a rule says\n"
                 "umacct set ollama.service hard=-        as without this order\n"
                 "umacct set / view=on                    of every cgroup\n"
                 "umacct set machine reserve=8G charge=on headroom=12G");
    return [options](Session &session) { return set(session, *options); };
}

} // namespace umacct::tool
