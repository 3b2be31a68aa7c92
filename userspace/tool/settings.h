// SPDX-License-Identifier: GPL-2.0-or-later
/// Changing what is set, and saying what changed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "lib/machine.h"
#include "lib/module/module.h"
#include "tool/output.h"
#include "tool/print/columns.h"

namespace umacct::tool {

struct Session;

/// "TARGET MODE" of a verb that sets one thing, or lists it.
struct ModeOptions {
    std::optional<std::string> target; ///< empty for the whole machine
    std::optional<std::string> mode;   ///< empty to list
    ListOptions list{.columns = {}, .sort = "name"};

    /// Sorts out which word is the mode: there may be one word, and a mode may come before
    /// its target, as it once did. Throws Error (usage) where none of two words is one.
    void understand(const std::vector<std::string_view> &modes, const char *hint);
};

/// TARGET and MODE, and what every list takes. whose, modes: their help.
void add_mode_options(CLI::App &verb, ModeOptions &options, const char *whose, const char *modes);

/// What of accounts such a verb lists.
struct AccountList {
    bool (*worth)(const Account &account); ///< one of all accounts
    std::vector<std::string_view> columns; ///< without -o
    const char *none = "";                 ///< to say where there are none
    std::string head = {};                 ///< to say before them, unless --no-header is given
    Json members = Json::object();         ///< of the document, before them
    bool binders = false;                  ///< in JSON, too: the paths of whose limit binds
};

/// Lists the target, or all accounts that are worth it; always 0.
int list_accounts(Session &session, const std::optional<std::string> &target,
                  const ListOptions &options, const AccountList &list);

/// What clears any setting.
constexpr std::string_view none_word = "none";
/// What TARGET is for the machine's own settings; a cgroup of that name is "path:/machine".
constexpr std::string_view machine_word = "machine";
/// What errors call the machine.
constexpr const char *machine_itself = "the machine";

/// Understands TARGET, of which settings are to be changed. Throws Error (usage) where it is the
/// root by something else than "/", such as an empty variable of a script.
Target resolve_to_change(const Machine &machine, const std::string &target);

/// Sets it; an error names the target and the setting.
Enforcement set_account(Module &module, const Target &target, const AccountChange &change);
Enforcement set_machine(Module &module, const MachineChange &change);

/// Sets it, and prints every setting that was asked for, before and after. Returns the
/// exit code.
int change_account(Session &session, const Target &target, const AccountChange &change);

/// Prints what was asked for, before and after.
void print_changes(Session &session, const Target &target, const AccountChange &before,
                   const AccountChange &after);
void print_changes(const Output &output, const MachineChange &before, const MachineChange &after);

/// Says what the change does not do: what is held stays.
void note_what_stays(Session &session, const Target &target, const AccountChange &change,
                     const Account &after);

/// "reserve off -> 4.00 GiB"
std::string change_text(const std::string &what, const std::string &before,
                        const std::string &after);
void print_change(const Output &output, const std::string &what, const std::string &before,
                  const std::string &after);

/// Nothing enforces what was set, and nothing will: a driver that is not there yet does once
/// it is.
bool is_unenforced(const Enforcement &made);

/// Says when nothing enforces what was just set; the exit code.
int report_enforcement(const Output &output, const Enforcement &made);

} // namespace umacct::tool
