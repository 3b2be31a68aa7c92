// SPDX-License-Identifier: GPL-2.0-or-later
/// Settles which of several orders holds, setting by setting; docs/policy.md has the rules.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <fmt/format.h>

#include "lib/orders/order.h"
#include "lib/settings.h"

namespace umacct {

struct Settled {
    AccountChange values;                   ///< all settings: neutral where no order asks
    std::map<std::uint16_t, Author> author; ///< the authors, by attribute
    bool soft_lowered = false;              ///< soft is as low as hard

    Author by(std::uint16_t attribute) const {
        const auto found = author.find(attribute);

        return found == author.end() ? Author::nobody : found->second;
    }

    /// The settings that an order asks for.
    AccountChange ordered() const;
};

Settled settle(const Orders &orders);

/// Values of orders that don't hold; empty for none.
struct Lost {
    std::string rule;
    std::string container;
    std::string person;
};

std::string why_text(const Orders &orders, const Settled &settled, std::uint16_t attribute,
                     const Lost &lost);

/// "by a person at 12:03; rule "people", /etc/umacct.toml:12, says 40.00 GiB": whose order it
/// is, and which others say something else. Empty where there is no order.
template <class Change, class Value, class Neutral>
std::string why(const Orders &orders, const Settled &settled,
                const Setting<Change, Value, Neutral> &setting) {
    const auto words = [&](const auto &value) {
        return value ? words_of(setting, static_cast<Neutral>(*value)) : std::string();
    };
    const auto is_lost = [&](const auto &value) {
        return value && static_cast<Neutral>(*value) != *(settled.values.*setting.change);
    };
    const auto &rule = orders.rule.asked.*setting.change;
    const auto &container = orders.container.asked.*setting.change;
    const auto &person = orders.person.asked.*setting.change;

    return why_text(orders, settled, setting.attribute,
                    {.rule = is_lost(rule) ? words(rule) : "",
                     .container = is_lost(container) ? words(container) : "",
                     .person = is_lost(person) ? words(person) : ""});
}

/// The same of what an account has, be it as the orders want it or not; empty where nothing is set,
/// or where the reader may not see all orders.
template <class Change, class Value, class Neutral>
std::string why_now(const Orders &orders, const Settled &settled,
                    const Setting<Change, Value, Neutral> &setting, const Account &now,
                    bool sees_all) {
    const Neutral is = value_of(setting, now);
    const Neutral should = *(settled.values.*setting.change);
    std::string reason = why(orders, settled, setting);

    if (is == should)
        return reason;
    if (!sees_all)
        return "";
    if (settled.by(setting.attribute) == Author::nobody)
        return "no order asks for it: until umacctd applies its policy";
    return fmt::format("not yet {}, {}", words_of(setting, should), reason);
}

} // namespace umacct
