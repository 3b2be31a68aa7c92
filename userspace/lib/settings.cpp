// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/settings.h"

#include <algorithm>

#include <fmt/format.h>

#include "lib/error.h"
#include "lib/text.h"

namespace umacct {

umacct_charge_mode parse_charge_mode(const std::string &text) {
    const auto *const found = std::ranges::find(charge_mode_words, text);

    if (text == "none")
        return UMACCT_CHARGE_INHERIT;
    if (found == std::end(charge_mode_words))
        throw Error(Failure::usage,
                    fmt::format("'{}' is none of on, off and inherit", printable(text)));
    return static_cast<umacct_charge_mode>(found - std::begin(charge_mode_words));
}

bool parse_switch(const std::string &text) {
    if (text == "none")
        return false;
    if (text != "on" && text != "off" && text != "true" && text != "false")
        throw Error(Failure::usage, fmt::format("'{}' is neither 'on' nor 'off'", printable(text)));
    return text == "on" || text == "true";
}

AccountChange as_it_is(const AccountChange &asked, const Account &account) {
    AccountChange now;

    for_each_setting([&](const auto &setting) {
        if (asked.*setting.change)
            now.*setting.change = value_of(setting, account);
    });
    return now;
}

AccountChange settings_of(const Account &account) {
    AccountChange all;

    for_each_setting(
        [&](const auto &setting) { all.*setting.change = value_of(setting, account); });
    return all;
}

MachineChange as_it_is(const MachineChange &asked, const Status &status) {
    MachineChange now;

    for_each_machine_setting([&](const auto &setting) {
        if (asked.*setting.change)
            now.*setting.change = value_of(setting, status);
    });
    return now;
}

std::optional<Amount> WrittenSettings::amount(std::uint16_t attribute) const {
    const auto found = amounts.find(attribute);

    return found == amounts.end() ? std::nullopt : std::optional(found->second);
}

bool WrittenSettings::has_shares() const {
    return std::ranges::any_of(amounts,
                               [](const auto &each) { return each.second.percent.has_value(); });
}

AccountChange WrittenSettings::on(std::uint64_t total) const {
    AccountChange change = exact;

    for_each_setting([&]<class Change, class Value, class Neutral>(
                         const Setting<Change, Value, Neutral> &setting) {
        if constexpr (std::is_same_v<Neutral, std::uint64_t>) {
            if (const auto found = amounts.find(setting.attribute); found != amounts.end())
                change.*setting.change = found->second.of(total);
        }
    });
    return change;
}

} // namespace umacct
