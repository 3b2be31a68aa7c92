// SPDX-License-Identifier: GPL-2.0-or-later
/// Sets in the module what the orders of a cgroup come to. Each program that sets something calls
/// this.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/error.h"
#include "lib/machine.h"
#include "lib/module/module.h"
#include "lib/orders/order.h"
#include "lib/orders/settle.h"

namespace umacct {

/// An addition to a person's order.
struct PersonChange {
    AccountChange asked;
    std::vector<std::uint16_t> taken_back; ///< the settings, by their attributes, to be as without

    bool empty() const { return asked.empty() && taken_back.empty(); }
};

/// The settings of the module that may be changed.
enum class Extent : std::uint8_t {
    all,
    ordered, ///< those that an order asks for
    named,   ///< those of the new order
};

struct Errand {
    std::string path;
    std::uint64_t id = 0;
    RuleOrder rule;
    /// The policy_mark() from before the rule's policy was read; empty for umacctd's own.
    std::optional<std::string> mark = {};
    /// Whether umacct-hook had kept the cgroup's owner before the rule was chosen, where that
    /// counts.
    std::optional<bool> is_named = {};
    PersonChange person = {}; ///< kept from now on
    Extent extent = Extent::all;
    /// Asks the module also where all is so already: it answers whether that is enforced.
    bool always = false;
    OrderLock::Setter setter = OrderLock::Setter::other;
};

struct Carried {
    Order person_before;
    Orders orders;
    Settled settled;
    AccountChange before; ///< the settings that were changed, as they were
    AccountChange set;    ///< empty where all was so already
    Enforcement made;
    int unkept = 0; ///< why a person's order ends when the policy is applied again; an errno
};

/// Sets it; the module's, or one that says more of a refusal.
using SetAccount = std::function<Enforcement(const AccountChange &change)>;

/// umacctd has taken another policy since the rule was read; nothing was done.
class PolicyChanged : public Error {
public:
    PolicyChanged();
};

/// The same of the name of a container that starts: another rule may be for it.
class OwnerChanged : public Error {
public:
    OwnerChanged();
};

/// All or nothing: where the module refuses, the orders are as they were. Throws PolicyChanged,
/// OwnerChanged, or Error.
Carried carry_out(const Machine &machine, Module &module, Errand errand,
                  const SetAccount &set = {});

/// All is as before it. Throws Error.
void undo(const Machine &machine, Module &module, std::string_view path, std::uint64_t id,
          const Carried &carried);

struct MachineCarried {
    MachineChange before; ///< the settings that were changed, as they were
    MachineChange set;
    Enforcement made;
    std::optional<std::uint64_t> guard; ///< the reserve that the guard has raised it to
};

/// The same of the machine, where the guard's reserve holds if it is the higher one. named: what
/// the order doesn't say stays, else it is neutral. Throws Error.
MachineCarried carry_out(const Machine &machine, Module &module, const MachineOrder &order,
                         bool named, OrderLock::Setter setter = OrderLock::Setter::other);

/// The reserve that the guard has raised it to, by its own file.
std::optional<std::uint64_t> guards_reserve(const Machine &machine);

/// "hard max -> 40.00 GiB, view off -> on (by rule "people", /etc/umacct.toml:12)"
std::string words_of(const Carried &carried);

/// The settings that an order asks for, with their reasons: "hard 40.00 GiB, by rule "people",
/// /etc/umacct.toml:12".
std::vector<std::string> lines_of(const Orders &orders);

/// The orders of a cgroup as they are now.
Orders read_orders(const Machine &machine, std::string_view path, RuleOrder rule);

} // namespace umacct
