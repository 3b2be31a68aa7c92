// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/orders/carry_out.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "lib/error.h"
#include "lib/host/umacctd.h"
#include "lib/owners/identity.h"
#include "lib/settings.h"

namespace umacct {

namespace {

/// Adds a change to a person's order. A neutral value where no other order asks for anything is no
/// order: it would hold against a rule that comes later.
Order with(Order person, const PersonChange &change, const Orders &others) {
    const std::int64_t now = std::time(nullptr);
    const Settled without =
        settle({.rule = others.rule, .container = others.container, .person = {}});

    for_each_setting([&](const auto &setting) {
        auto &value = person.asked.*setting.change;
        const bool is_back = std::ranges::count(change.taken_back, setting.attribute) > 0;

        if (const auto &asked = change.asked.*setting.change) {
            value = asked;
            person.times[setting.attribute] = now;
        }
        if (is_back ||
            (value == setting.neutral && without.by(setting.attribute) == Author::nobody)) {
            value.reset();
            person.times.erase(setting.attribute);
        }
    });
    return person;
}

/// Returns the settled values that the module is to have, in that extent.
AccountChange wanted(const Errand &errand, const Settled &settled) {
    if (errand.extent == Extent::all)
        return settled.values;
    if (errand.extent == Extent::ordered)
        return settled.ordered();

    AccountChange change;
    for_each_setting([&](const auto &setting) {
        if (errand.person.asked.*setting.change ||
            std::ranges::count(errand.person.taken_back, setting.attribute) > 0)
            change.*setting.change = settled.values.*setting.change;
    });
    return change;
}

/// The module takes no soft limit above the hard one. Where one of them is what an account has and
/// the other is new, the hard one holds; what a person asks for together is refused as a whole.
void fit_soft(AccountChange &next, const Account &now, const Settled &settled) {
    // It may have been lowered for a hard limit that is no more.
    if (next.hard && !next.soft && settled.by(UMACCT_A_ACCOUNT_SOFT) != Author::nobody &&
        settled.values.soft != now.soft)
        next.soft = settled.values.soft;
    const std::uint64_t hard = next.hard.value_or(now.hard.value_or(UMACCT_UNLIMITED));
    const std::uint64_t soft = next.soft.value_or(now.soft.value_or(UMACCT_UNLIMITED));
    const bool is_persons = settled.by(UMACCT_A_ACCOUNT_SOFT) == Author::person &&
                            settled.by(UMACCT_A_ACCOUNT_HARD) == Author::person;

    if (!is_persons && (next.hard || next.soft) && soft != UMACCT_UNLIMITED && soft > hard)
        next.soft = hard;
}

} // namespace

Orders read_orders(const Machine &machine, std::string_view path, RuleOrder rule) {
    const OrderBook book(machine.cgroups(), machine.root());

    return {
        .rule = std::move(rule), .container = book.container(path), .person = book.person(path)};
}

PolicyChanged::PolicyChanged()
    : Error(Failure::failed, "umacctd has taken another policy meanwhile", "try again") {}

OwnerChanged::OwnerChanged()
    : Error(Failure::failed, "a container's hook names the cgroup just now", "try again") {}

Carried carry_out(const Machine &machine, Module &module, Errand errand, const SetAccount &set) {
    const OrderBook book(machine.cgroups(), machine.root());
    const OrderLock lock(machine.root(), errand.setter);
    if (errand.mark && *errand.mark != policy_mark(machine.root()))
        throw PolicyChanged();
    if (errand.is_named && *errand.is_named != has_kept_owner(machine.cgroups(), errand.path))
        throw OwnerChanged();

    Carried carried;
    carried.orders = read_orders(machine, errand.path, std::move(errand.rule));
    const Order &person_before = carried.person_before = carried.orders.person;

    if (!errand.person.empty()) {
        carried.orders.person = with(person_before, errand.person, carried.orders);
        if (carried.orders.person != person_before)
            carried.unkept = book.keep_person(errand.path, carried.orders.person);
    }
    carried.settled = settle(carried.orders);
    try {
        const Account now = module.account(errand.id).value_or(Account{});
        AccountChange next = wanted(errand, carried.settled);

        fit_soft(next, now, carried.settled);
        if (!errand.always) {
            for_each_setting([&](const auto &setting) {
                if (next.*setting.change == value_of(setting, now))
                    (next.*setting.change).reset();
            });
        }
        carried.before = as_it_is(next, now);
        carried.set = next;
        if (!next.empty())
            carried.made = set ? set(next) : module.set_account(errand.id, next);
    } catch (const Error &) {
        if (carried.orders.person != person_before)
            book.keep_person(errand.path, person_before);
        throw;
    }
    return carried;
}

void undo(const Machine &machine, Module &module, std::string_view path, std::uint64_t id,
          const Carried &carried) {
    const OrderLock lock(machine.root(), OrderLock::Setter::other);

    if (carried.orders.person != carried.person_before)
        OrderBook(machine.cgroups(), machine.root()).keep_person(path, carried.person_before);
    module.set_account(id, carried.before);
}

std::optional<std::uint64_t> guards_reserve(const Machine &machine) {
    std::ifstream file(machine.root() / guard_file);
    std::uint64_t bytes = 0;

    for (std::string line; std::getline(file, line);) {
        if (std::istringstream words(line); words >> line && line == "reserve" && words >> bytes)
            return bytes;
    }
    return std::nullopt;
}

MachineCarried carry_out(const Machine &machine, Module &module, const MachineOrder &order,
                         bool named, OrderLock::Setter setter) {
    const OrderLock lock(machine.root(), setter);
    const Status now = module.status();
    MachineCarried carried;

    carried.guard = guards_reserve(machine);

    for_each_machine_setting([&](const auto &setting) {
        auto &next = carried.set.*setting.change;

        next = order.asked.*setting.change;
        if (!next && !named)
            next = setting.neutral;
    });
    if (carried.set.reserve && carried.guard)
        carried.set.reserve = std::max(*carried.set.reserve, *carried.guard);
    // A person learns by asking again whether it is enforced.
    if (!named) {
        for_each_machine_setting([&](const auto &setting) {
            if (carried.set.*setting.change == value_of(setting, now))
                (carried.set.*setting.change).reset();
        });
    }
    carried.before = as_it_is(carried.set, now);
    if (!carried.set.empty())
        carried.made = module.set_machine(carried.set);
    return carried;
}

std::string words_of(const Carried &carried) {
    std::string text;
    std::string last;

    for_each_setting([&](const auto &setting) {
        const auto &value = carried.set.*setting.change;

        if (!value)
            return;
        std::string reason = why(carried.orders, carried.settled, setting);
        if (reason.empty())
            reason = "no order asks for it any more";
        if (!last.empty())
            text += last == reason ? ", " : fmt::format(" ({}), ", last);
        text += fmt::format("{} {} -> {}", setting.policy,
                            words_of(setting, *(carried.before.*setting.change)),
                            words_of(setting, *value));
        last = reason;
    });
    return text + (last.empty() ? "" : fmt::format(" ({})", last));
}

std::vector<std::string> lines_of(const Orders &orders) {
    const Settled settled = settle(orders);
    std::vector<std::string> lines;

    for_each_setting([&](const auto &setting) {
        if (settled.by(setting.attribute) != Author::nobody)
            lines.push_back(fmt::format("{} {}, {}", setting.policy,
                                        words_of(setting, *(settled.values.*setting.change)),
                                        why(orders, settled, setting)));
    });
    return lines;
}

} // namespace umacct
