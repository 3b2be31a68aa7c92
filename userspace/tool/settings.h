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
#include "lib/orders/carry_out.h"
#include "lib/policy/policy.h"
#include "tool/machine_order.h"
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

/// Selection of accounts for a verb's list.
struct AccountList {
    bool (*worth)(const Account &account); ///< one of all accounts
    std::vector<std::string_view> columns; ///< the usual ones, without -o
    const char *none = "";                 ///< the text if there are none
    std::string head = {};                 ///< the text before them, unless --no-header is given
    Json members = Json::object();         ///< members of the document, before them
    bool reasons = false; ///< why each has what it has, too, and in JSON whose limit binds
};

/// Lists the target, or all accounts that are worth it; always 0.
int list_accounts(Session &session, const std::optional<std::string> &target,
                  const ListOptions &options, const AccountList &list);

/// The word that clears any setting.
constexpr std::string_view none_word = "none";
/// TARGET of the machine's own settings; a cgroup of that name is "path:/machine".
constexpr std::string_view machine_word = "machine";
/// Understands TARGET, of which settings are to be changed. Throws Error (usage) where it is the
/// root by something else than "/", such as an empty variable of a script.
Target resolve_to_change(const Machine &machine, const std::string &target);

/// Returns the owner as umacctd knows it: names of users' own containers are in their homes, where
/// it does not look.
std::optional<Owner> owner_for_daemon(const Machine &machine, const std::string &path);

/// The orders of cgroups, by the policy in force; a policy that is wrong has none.
class OrderReader {
public:
    explicit OrderReader(const Machine &machine);

    RuleOrder rule(const std::string &path) const;
    Orders of(const std::string &path) const;

private:
    const Machine &machine_;
    Policy policy_;
    std::uint64_t total_;
};

/// Returns a line for each setting that an account has or an order asks for: "hard 40.00 GiB, by
/// rule "people", /etc/umacct.toml:12".
std::vector<std::string> reasons_of(const Orders &orders, const Account &now, bool sees_all);
/// The same as JSON.
Json reasons_json(const Orders &orders, const Account &now, bool sees_all);

/// Keeps a person's order, and carries it out; an error names the target and the setting. rule: by
/// the policy in force, unless it is given.
Carried carry_out(Session &session, const Target &target, const PersonChange &change,
                  std::optional<RuleOrder> rule = {});

/// The same, and prints every setting that was asked for, before and after. Returns the exit code.
int change_account(Session &session, const Target &target, const PersonChange &change,
                   std::optional<RuleOrder> rule = {});

/// Prints what was set, before and after. Returns the exit code.
int report_change(Session &session, const Target &target, const Account &before,
                  const Carried &carried);

/// Says until when the change holds, and what of it does not hold against another order.
void note_orders(Session &session, const Carried &carried, const PersonChange &change);

/// The same of the machine.
void note_machine(const Output &output, const MachineChanged &changed);

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
