// SPDX-License-Identifier: GPL-2.0-or-later
/// Settings of an account, all of one form: for for_each_setting(), which is made from
/// docs/netlink/umacct.yaml.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "lib/module/model.h"
#include "lib/units.h"

namespace umacct {

/// Returns the current value of a setting in the form of a change: UMACCT_UNLIMITED for no limit.
template <class Change, class Value, class Neutral, class Whole, class Of>
Neutral value_of(const Setting<Change, Value, Neutral, Whole, Of> &setting, const Of &of) {
    if constexpr (std::is_same_v<Value, Limit>)
        return (of.*setting.value).value_or(UMACCT_UNLIMITED);
    else
        return of.*setting.value;
}

/// Returns the current values of the settings that the change names.
AccountChange as_it_is(const AccountChange &asked, const Account &account);
MachineChange as_it_is(const MachineChange &asked, const Status &status);

/// All there is to set of an account, as it is.
AccountChange settings_of(const Account &account);

/// "40.00 GiB", "50 ms", "on", "inherit"
template <class Change, class Value, class Neutral, class Whole, class Of>
std::string words_of([[maybe_unused]] const Setting<Change, Value, Neutral, Whole, Of> &setting,
                     Neutral value) {
    if constexpr (std::is_same_v<Value, Limit>)
        return format_limit(value == UMACCT_UNLIMITED ? Limit() : Limit(value));
    else if constexpr (std::is_same_v<Value, bool>)
        return value ? "on" : "off";
    else if constexpr (std::is_enum_v<Value>)
        return std::string(name_of(value));
    else if (value == 0)
        return "off";
    else
        return setting.kind == SettingKind::time ? format_time(value) : format_size(value);
}

/// "on", "off" or "inherit". Throws Error (usage) on anything else.
umacct_charge_mode parse_charge_mode(const std::string &text);

/// "on" or "off", which a policy's file says as true or false. Throws Error (usage) on anything
/// else.
bool parse_switch(const std::string &text);

/// Parses a setting of the machine, with that much memory. Throws Error (usage) without its name.
template <class Change, class Value, class Neutral>
Neutral read_setting(const Setting<Change, Value, Neutral, MachineChange, Status> & /*setting*/,
                     const std::string &text, [[maybe_unused]] std::uint64_t total) {
    if constexpr (std::is_enum_v<Value>)
        return parse_switch(text) ? UMACCT_CHARGE_ON : UMACCT_CHARGE_OFF;
    else
        return parse_reserve(text).of(total);
}

/// Settings as people write them, in a policy or on a command line: an amount may be a share of
/// the machine's memory.
struct WrittenSettings {
    AccountChange exact;                     ///< those that are no amount
    std::map<std::uint16_t, Amount> amounts; ///< the key is the setting's attribute

    /// Throws Error (usage) that doesn't name the setting.
    template <class Change, class Value, class Neutral>
    void read(const Setting<Change, Value, Neutral> &setting, const std::string &text) {
        if constexpr (std::is_same_v<Value, bool>)
            exact.*setting.change = parse_switch(text);
        else if constexpr (std::is_enum_v<Value>)
            exact.*setting.change = parse_charge_mode(text);
        else if (setting.kind == SettingKind::limit)
            amounts[setting.attribute] = parse_amount(text);
        else if (setting.kind == SettingKind::size)
            amounts[setting.attribute] = parse_reserve(text);
        else
            exact.*setting.change = parse_time(text);
    }

    /// Nothing is asked for.
    template <class Change, class Value, class Neutral>
    void clear(const Setting<Change, Value, Neutral> &setting) {
        exact.*setting.change = setting.neutral;
    }

    /// One that is a limit or a size, if it was read.
    std::optional<Amount> amount(std::uint16_t attribute) const;

    /// Something depends on the machine's memory.
    bool has_shares() const;

    /// Returns the change on a machine with that much memory.
    AccountChange on(std::uint64_t total) const;
};

} // namespace umacct
