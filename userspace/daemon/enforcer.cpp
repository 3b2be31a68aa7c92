// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/enforcer.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/host/cgroup_tree.h"
#include "lib/settings.h"
#include "lib/text.h"
#include "lib/units.h"

namespace umacct {

namespace {

using namespace std::chrono_literals;

/// A runtime makes the cgroup first, and may tell its name a little later.
constexpr auto retry_after = 50ms;
constexpr auto name_may_take = 10s;
/// So many cgroups are waited for at a time, and half as many of those that aren't root's: a tenant
/// may make thousands that look like containers. No runtime makes longer paths.
constexpr std::size_t most_unnamed = 1024;
constexpr std::size_t longest_unnamed = 512;

/// So many lines about cgroups in so long: who makes thousands of them would push all else out
/// of the journal.
constexpr std::size_t most_told = 500;
constexpr auto tell_interval = 10s;

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

/// The path that both are at or below.
std::string common_path(std::string a, const std::string &b) {
    while (a != b && !is_below(b, a))
        a = parent_path(a);
    return a;
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
                      const std::vector<CgroupWatch::Gone> &gone) {
    // One of the same name may be there again: then it appeared.
    for (const CgroupWatch::Gone &each : gone) {
        set_.forget(each.id);
        unnamed_.erase(each.path);
    }
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
        tell_(fmt::format("[machine]: {}", error.what()), {{"failed", true}});
    }

    std::unordered_set<std::uint64_t> ids;
    machine_.cgroups().for_each([&](const std::string &path) {
        try_to_apply(path);
        if (const auto folder = folder_of(machine_.cgroups(), path))
            ids.insert(folder->id);
    });
    set_.keep(ids);
}

std::size_t Enforcer::replace(Policy policy) {
    const SetByPolicy::Machine set = set_.values().machine;
    const Policy last = std::exchange(policy_, std::move(policy));
    std::size_t refused = 0;

    try {
        apply_machine();
    } catch (const Error &error) {
        // Nothing is set without a module, so that nothing is to be put back.
        if (error.failure() == Failure::missing)
            throw;
        policy_ = last;
        set_.set_machine(set);
        throw;
    }
    machine_.refresh_owners();
    machine_.cgroups().for_each(
        [&](const std::string &path) { refused += try_to_apply(path) ? 0 : 1; });
    return refused;
}

std::optional<Enforcer::Clock::time_point> Enforcer::due() const {
    if (untold_.below.empty())
        return due_;
    return std::min(due_.value_or(Clock::time_point::max()), telling_since_ + tell_interval);
}

void Enforcer::retry() {
    if (Clock::now() >= telling_since_ + tell_interval)
        tell_rest();
    if (!due_ || Clock::now() < *due_)
        return;

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
    // First what may be refused for want of something in the kernel: then nothing was set.
    if (next.charge && *next.charge != now.charge_default) {
        module.set_charge_default(*next.charge);
        tell_(fmt::format("charging {} -> {}", name_of(now.charge_default), name_of(*next.charge)),
              {{"failed", false}, {"charge", name_of(*next.charge)}});
    }
    if (!next.reserve || *next.reserve == now.reserve)
        return;
    try {
        module.set_reserve(*next.reserve);
    } catch (const Error &) {
        if (next.charge && *next.charge != now.charge_default) {
            module.set_charge_default(now.charge_default);
            tell_(fmt::format("charging {} -> {}, put back", name_of(*next.charge),
                              name_of(now.charge_default)),
                  {{"failed", false}, {"charge", name_of(now.charge_default)}});
        }
        throw;
    }
    tell_(fmt::format("reserve {} -> {}", format_size(now.reserve), format_size(*next.reserve)),
          {{"failed", false}, {"reserve_bytes", *next.reserve}});
}

void Enforcer::apply(const std::string &path) {
    const auto owner = machine_.owners().of(path);
    const Rule *rule = policy_.match({.path = path,
                                      .owner = owner ? &*owner : nullptr,
                                      .inside = is_made_inside(path, machine_.owners())});
    const bool waits = policy_.needs_names() && waits_for_name(path, owner);

    change(path, rule, waits);
}

bool Enforcer::try_to_apply(const std::string &path) {
    try {
        apply(path);
        return true;
    } catch (const Error &error) {
        if (error.failure() == Failure::missing || error.failure() == Failure::permission)
            throw;
        tell_of(path, fmt::format("{}: {}", printable(path), error.what()),
                {{"failed", true}, {"path", path}});
        return false;
    }
}

void Enforcer::change(const std::string &path, const Rule *source, bool waits) {
    const ContractLock lock(machine_.root(), ContractLock::Setter::daemon);
    const Contract contract = contract_of(machine_.cgroups(), path);
    const AccountChange wanted = policy_.change(path, source, total_, contract);

    if (wanted.empty() && set_.values().accounts.empty())
        return;
    try {
        const std::uint64_t id = machine_.cgroups().id(path);
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
            Json event = merged({{"failed", false}, {"path", path}}, to_json(next));
            std::string said_by = wanted.empty()     ? "no rule matches this cgroup any more"
                                  : contract.empty() ? "[machine]"
                                                     : "as it was started";
            if (source != nullptr) {
                event["rule"] = source->name;
                event["place"] = source->place.text();
                said_by = fmt::format("{}, {}", source->name, source->place.text());
            }
            tell_of(path, fmt::format("{}: {} ({})", printable(path), words, said_by),
                    std::move(event));
        }
    } catch (const Error &error) {
        if (error.failure() == Failure::missing || machine_.cgroups().exists(path))
            throw;
    }
}

bool Enforcer::waits_for_name(const std::string &path, const std::optional<Owner> &owner) {
    const Clock::time_point now = Clock::now();
    // What users' own runtimes wrote down is in their homes, where umacctd doesn't look.
    const bool named =
        !owner || owner->kind == OwnerKind::unit || user_of(path).value_or(0) != 0 ||
        (owner->kind == OwnerKind::pod
             ? !owner->pod.empty() && (!owner->labels.empty() || !policy_.needs_labels())
             : !owner->name.empty() || !owner->container.empty());

    if (named || !has_room_for(path) ||
        unnamed_.try_emplace(path, now + name_may_take).first->second <= now)
        unnamed_.erase(path);
    else
        due_ = now + retry_after;
    return unnamed_.contains(path);
}

bool Enforcer::has_room_for(const std::string &path) const {
    if (unnamed_.size() < most_unnamed / 2 || unnamed_.contains(path))
        return path.size() <= longest_unnamed;
    const auto folder = folder_of(machine_.cgroups(), path);

    return path.size() <= longest_unnamed && unnamed_.size() < most_unnamed && folder &&
           folder->owner == 0;
}

void Enforcer::tell_of(const std::string &path, const std::string &line, Json event) {
    const Clock::time_point now = Clock::now();

    if (now >= telling_since_ + tell_interval) {
        tell_rest();
        telling_since_ = now;
        told_ = 0;
    }
    if (told_ < most_told) {
        ++told_;
        tell_(line, event);
        return;
    }
    untold_.below = untold_.below.empty() ? parent_path(path) : common_path(untold_.below, path);
    untold_.last = line;
    ++(event.at("failed").get<bool>() ? untold_.failed : untold_.set);
}

void Enforcer::tell_rest() {
    const Untold untold = std::exchange(untold_, {});

    if (untold.below.empty())
        return;
    tell_(fmt::format("below {}: the policy was applied to {} more cgroups, and failed for {}; "
                      "the last was {}",
                      printable(untold.below), untold.set, untold.failed, untold.last),
          {{"failed", untold.failed > 0},
           {"path", untold.below},
           {"set", untold.set},
           {"refused", untold.failed}});
}

} // namespace umacct
