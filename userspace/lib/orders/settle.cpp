// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/orders/settle.h"

#include <algorithm>

#include <fmt/format.h>

#include "lib/units.h"

namespace umacct {

namespace {

/// Merges a rule's order and a container's: never more than the rule says.
AccountChange both(const RuleOrder &rule, const Order &container) {
    const AccountChange &asked = container.asked;
    AccountChange result = rule.asked;

    result.hard = lower_limit(result.hard ? result.hard : container.memory_limit, asked.hard);
    result.soft = lower_limit(result.soft, asked.soft);
    if (asked.keep) {
        const std::uint64_t keep = std::min(*asked.keep, rule.asked.keep.value_or(rule.most_keep));

        if (rule.asked.keep || keep > 0)
            result.keep = keep;
    }
    if (asked.view == true)
        result.view = true;
    if (asked.charge == UMACCT_CHARGE_ON)
        result.charge = UMACCT_CHARGE_ON;
    return result;
}

std::string at_time(const Order &person, std::uint16_t attribute) {
    const auto time = person.times.find(attribute);

    return time == person.times.end()
               ? ""
               : " at " + format_clock(static_cast<std::uint64_t>(time->second) * 1'000'000'000);
}

/// The rule, or [machine] for a view that is that table's.
std::string rule_words(const RuleOrder &rule, std::uint16_t attribute) {
    return attribute == UMACCT_A_ACCOUNT_VIEW && rule.view ? "[machine], " + *rule.view : rule.rule;
}

} // namespace

AccountChange Settled::ordered() const {
    AccountChange result;

    for_each_setting([&](const auto &setting) {
        if (author.contains(setting.attribute))
            result.*setting.change = values.*setting.change;
    });
    return result;
}

Settled settle(const Orders &orders) {
    const AccountChange rule_and_container = both(orders.rule, orders.container);
    Settled settled;

    for_each_setting([&](const auto &setting) {
        const auto &person = orders.person.asked.*setting.change;
        const auto &rest = rule_and_container.*setting.change;

        settled.values.*setting.change = person ? person : rest ? rest : setting.neutral;
        if (person)
            settled.author[setting.attribute] = Author::person;
        else if (rest)
            settled.author[setting.attribute] =
                orders.rule.asked.*setting.change == rest ? Author::rule : Author::container;
    });
    // The module refuses a person's order that contradicts itself.
    const bool is_persons = orders.person.asked.soft && orders.person.asked.hard;
    if (!is_persons && settled.values.soft != UMACCT_UNLIMITED &&
        settled.values.soft > settled.values.hard) {
        settled.values.soft = settled.values.hard;
        settled.soft_lowered = true;
    }
    return settled;
}

std::string why_text(const Orders &orders, const Settled &settled, std::uint16_t attribute,
                     const Lost &lost) {
    std::string text;
    const auto add = [&](const std::string &part) { text += (text.empty() ? "" : "; ") + part; };

    if (attribute == UMACCT_A_ACCOUNT_SOFT && settled.soft_lowered) {
        add("lowered to the hard limit");
    } else if (settled.by(attribute) == Author::rule) {
        add("by " + rule_words(orders.rule, attribute));
    } else if (settled.by(attribute) == Author::container) {
        add(attribute == UMACCT_A_ACCOUNT_HARD && settled.values.hard != orders.container.asked.hard
                ? "by the container's memory limit"
                : "as the container asked");
    } else if (settled.by(attribute) == Author::person) {
        add("by a person" + at_time(orders.person, attribute));
    }
    if (!lost.rule.empty())
        add(fmt::format("{}, says {}", rule_words(orders.rule, attribute), lost.rule));
    if (!lost.container.empty())
        add(fmt::format("the container asked for {}", lost.container));
    if (!lost.person.empty())
        add(fmt::format("a person asked for {}{}", lost.person, at_time(orders.person, attribute)));
    return text;
}

} // namespace umacct
