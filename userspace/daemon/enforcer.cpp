// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/enforcer.h"

#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/settings.h"
#include "lib/text.h"
#include "lib/units.h"

namespace umacct {

namespace {

using namespace std::chrono_literals;

/// A runtime makes the cgroup first, and may tell its name a little later.
constexpr auto retry_after = 50ms;
constexpr auto name_may_take = 10s;

/// The module takes no soft limit above the hard one. Where one of them is a person's and the
/// other a rule's, the hard one holds, whosever it is.
void fit_soft(AccountChange &change, const Account &now) {
    const std::uint64_t hard = change.hard.value_or(now.hard.value_or(UMACCT_UNLIMITED));
    const std::uint64_t soft = change.soft.value_or(now.soft.value_or(UMACCT_UNLIMITED));

    if ((change.hard || change.soft) && soft != UMACCT_UNLIMITED && soft > hard)
        change.soft = hard;
}

/// What of a change isn't so already, in words ("hard max -> 40.00 GiB, view off -> on"); the
/// rest is taken out of it.
std::string reduce(AccountChange &change, const Account &now) {
    std::string differences;

    for_each_setting([&](const auto &setting) {
        auto &wanted = change.*setting.change;
        const auto is = value_of(setting, now);

        if (wanted == is)
            wanted.reset();
        if (wanted)
            differences +=
                fmt::format("{}{} {} -> {}", differences.empty() ? "" : ", ", setting.policy,
                            words_of(setting, is), words_of(setting, *wanted));
    });
    return differences;
}

/// What the last policy set and the next one doesn't is again as without any, unless somebody
/// changed it since.
template <class Value>
void reset(std::optional<Value> &next, const std::optional<Value> &last, const Value &now,
           const Value &without) {
    if (!next && last == now)
        next = without;
}

AccountChange with_reset(AccountChange next, const AccountChange &last, const Account &now) {
    for_each_setting([&](const auto &setting) {
        reset(next.*setting.change, last.*setting.change, value_of(setting, now), setting.neutral);
    });
    return next;
}

/// What the change doesn't say is as the last one said.
AccountChange with_rest(AccountChange change, const AccountChange &last) {
    for_each_setting([&](const auto &setting) {
        if (!(change.*setting.change))
            change.*setting.change = last.*setting.change;
    });
    return change;
}

/// As it is, of all that the change is about.
AccountChange before(const AccountChange &change, const Account &now) {
    AccountChange before;

    for_each_setting([&](const auto &setting) {
        if (change.*setting.change)
            before.*setting.change = value_of(setting, now);
    });
    return before;
}

} // namespace

Enforcer::Enforcer(Connection &connection, Machine &machine, Policy policy, Tell tell)
    : connection_(connection),
      machine_(machine),
      policy_(std::move(policy)),
      tell_(std::move(tell)),
      total_(machine.meminfo().total()),
      set_(machine, [tell = tell_](const std::string &line) {
          tell(line, {{"failed", true}});
      }) {}

void Enforcer::follow(const std::vector<std::string> &appeared,
                      const std::vector<std::string> &gone) {
    // One of the same name may be there again: then it appeared.
    for (const std::string &path : gone) {
        if (const auto known = known_.extract(path))
            set_.forget(known.mapped());
        unnamed_.erase(path);
    }
    for (const std::string &path : appeared)
        known_[path] = 0;
    if (!appeared.empty())
        machine_.refresh_owners();
    for (const std::string &path : appeared)
        try_to_apply(path);
}

void Enforcer::apply_all() {
    machine_.refresh_owners();
    try {
        apply_machine();
    } catch (const Error &error) {
        if (error.failure() == Failure::missing || error.failure() == Failure::permission)
            throw;
        // Where charging can't be, limits still can.
        tell_failure(fmt::format("[machine]: {}", error.what()));
    }

    std::unordered_set<std::uint64_t> ids;
    for (const auto &[path, id] : known_) {
        try_to_apply(path);
        ids.insert(id);
    }
    set_.keep(ids);
}

void Enforcer::replace(Policy policy) {
    const SetByPolicy::Values set = set_.values();
    const Policy last = std::exchange(policy_, std::move(policy));
    std::optional<Status> status;
    Undos undos;

    try {
        status = connection_.module().status();
        machine_.refresh_owners();
        apply_machine();
        for (const auto &[path, ignored] : known_)
            apply(path, &undos);
    } catch (const Error &error) {
        // Nothing is set without a module, so nothing is undone.
        if (error.failure() == Failure::missing)
            throw;
        policy_ = last;
        if (status)
            roll_back(undos, *status);
        set_.replace(set);
        throw;
    }
}

void Enforcer::retry() {
    const auto waiting = std::exchange(unnamed_, {});

    due_.reset();
    machine_.refresh_owners();
    for (const auto &[path, until] : waiting) {
        unnamed_.emplace(path, until);
        try_to_apply(path);
    }
}

void Enforcer::apply_machine() {
    Module &module = connection_.module();
    const Status now = module.status();
    const SetByPolicy::Machine last = set_.values().machine;
    SetByPolicy::Machine next{.reserve = {}, .charge = policy_.charge};

    if (policy_.reserve)
        next.reserve = policy_.reserve->of(total_);
    set_.set_machine(next);
    reset(next.reserve, last.reserve, now.reserve, std::uint64_t{0});
    reset(next.charge, last.charge, now.charge_default, UMACCT_CHARGE_OFF);
    if (next.reserve && *next.reserve != now.reserve) {
        module.set_reserve(*next.reserve);
        tell_(fmt::format("reserve {} -> {}", format_size(now.reserve), format_size(*next.reserve)),
              {{"failed", false}, {"reserve_bytes", *next.reserve}});
    }
    if (next.charge && *next.charge != now.charge_default) {
        module.set_charge_default(*next.charge);
        tell_(fmt::format("charging {} -> {}", name_of(now.charge_default), name_of(*next.charge)),
              {{"failed", false}, {"charge", name_of(*next.charge)}});
    }
}

void Enforcer::apply(const std::string &path, Undos *undos) {
    const auto known = known_.find(path);

    if (known == known_.end())
        return;
    const auto owner = machine_.owners().of(path);
    const Rule *rule = policy_.match({.path = path,
                                      .owner = owner ? &*owner : nullptr,
                                      .inside = is_made_inside(path, machine_.owners())});
    const bool waits = policy_.needs_names() && waits_for_name(path, owner);

    change(path, known->second, policy_.change(path, rule, total_), rule, waits, undos);
}

void Enforcer::try_to_apply(const std::string &path) {
    try {
        apply(path, nullptr);
    } catch (const Error &error) {
        if (error.failure() == Failure::missing)
            throw;
        tell_failure(fmt::format("{}: {}", printable(path), error.what()), path);
    }
}

void Enforcer::change(const std::string &path, std::uint64_t &id, const AccountChange &wanted,
                      const Rule *source, bool waits, Undos *undos) {
    if (wanted.empty() && set_.values().accounts.empty())
        return;
    try {
        id = machine_.cgroups().id(path);
        const AccountChange last = set_.of(id);
        if (wanted.empty() && last.empty())
            return;

        Module &module = connection_.module();
        const Account now = module.account(id).value_or(Account{});
        // Once it has its name, another rule may say what the last one did.
        AccountChange next = waits ? wanted : with_reset(wanted, last, now);
        fit_soft(next, now);
        AccountChange record = waits ? with_rest(wanted, last) : wanted;
        if (record.soft && next.soft)
            record.soft = next.soft;
        const std::string words = reduce(next, now);
        set_.set(id, record);
        if (!next.empty()) {
            try {
                module.set_account(id, next);
            } catch (const Error &) {
                set_.set(id, last);
                throw;
            }
            if (undos != nullptr)
                undos->push_back({path, id, before(next, now)});
            Json event = merged({{"failed", false}, {"path", path}}, to_json(next));
            std::string said_by = wanted.empty() ? "no rule is for it any more" : "[machine]";
            if (source != nullptr) {
                event["rule"] = source->name;
                event["place"] = source->place.text();
                said_by = fmt::format("{}, {}", source->name, source->place.text());
            }
            tell_(fmt::format("{}: {} ({})", printable(path), words, said_by), event);
        }
    } catch (const Error &error) {
        if (error.failure() == Failure::missing || machine_.cgroups().exists(path))
            throw;
    }
}

bool Enforcer::waits_for_name(const std::string &path, const std::optional<Owner> &owner) {
    const Clock::time_point now = Clock::now();
    const bool named =
        !owner || owner->kind == OwnerKind::unit ||
        (owner->kind == OwnerKind::pod
             ? !owner->pod.empty() && (!owner->labels.empty() || !policy_.needs_labels())
             : !owner->name.empty() || !owner->container.empty());

    if (named || unnamed_.try_emplace(path, now + name_may_take).first->second <= now)
        unnamed_.erase(path);
    else
        due_ = now + retry_after;
    return unnamed_.contains(path);
}

/// As far as it goes: what is gone meanwhile needs no undoing.
void Enforcer::roll_back(const Undos &undos, const Status &status) {
    const auto attempt = [this](const std::string &what, const auto &undo) {
        try {
            undo(connection_.module());
        } catch (const Error &error) {
            tell_failure(fmt::format("{} can't be put back: {}", what, error.what()));
        }
    };

    for (const Undo &undo : undos) {
        if (machine_.cgroups().exists(undo.path))
            attempt(printable(undo.path),
                    [&](Module &module) { module.set_account(undo.id, undo.before); });
    }
    attempt("the reserve", [&](Module &module) { module.set_reserve(status.reserve); });
    attempt("charging", [&](Module &module) { module.set_charge_default(status.charge_default); });
}

void Enforcer::tell_failure(const std::string &line, const std::string &path) const {
    Json event{{"failed", true}};

    if (!path.empty())
        event["path"] = path;
    tell_(line, event);
}

} // namespace umacct
