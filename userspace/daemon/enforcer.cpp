// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/enforcer.h"

#include <algorithm>
#include <cerrno>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/host/cgroup_tree.h"
#include "lib/owners/identity.h"
#include "lib/owners/tenant.h"
#include "lib/settings.h"
#include "lib/text.h"
#include "lib/units.h"

namespace umacct {

namespace {

using namespace std::chrono_literals;

/// A runtime makes the cgroup first, and may tell its name a little later.
constexpr auto retry_after = 50ms;
constexpr auto name_may_take = 10s;
constexpr auto retry_after_shortage = 1s;

/// Number of times that a rule is chosen for a cgroup, where a hook names it meanwhile.
constexpr int attempts = 8;

/// Whether the module or the kernel had no memory just now for what was asked.
bool is_shortage(const Error &error) {
    const auto *refusal = dynamic_cast<const RequestError *>(&error);

    return refusal != nullptr &&
           (refusal->code() == ENOMEM || refusal->code() == ENOBUFS || refusal->code() == EAGAIN);
}

/// Bound on cgroups that wait for a name, and half of it on those that aren't root's: a tenant
/// may make thousands that look like containers. No runtime makes longer paths.
constexpr std::size_t most_unnamed = 1024;
constexpr std::size_t longest_unnamed = 512;

/// Rate limit for lines about cgroups: a tenant that makes thousands of them would push all else
/// out of the journal.
constexpr std::size_t most_reported = 500;
constexpr auto tell_interval = 10s;

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
      total_(machine.meminfo().total()) {}

void Enforcer::follow(const std::vector<std::string> &appeared,
                      const std::vector<CgroupWatch::Gone> &gone) {
    // One of the same name may be there again: then it appeared.
    for (const CgroupWatch::Gone &each : gone)
        unnamed_.erase(each.path);
    if (!appeared.empty())
        machine_.refresh_owners();
    for (const std::string &path : appeared)
        try_to_apply(path, nullptr, true);
}

void Enforcer::apply_all() {
    try {
        apply_machine();
    } catch (const Error &error) {
        if (error.failure() == Failure::missing || error.failure() == Failure::permission)
            throw;
        // Limits work even if charging is not possible.
        tell_(fmt::format("[machine]: {}", error.what()), {{"failed", true}});
    }
    apply_to_all();
}

std::size_t Enforcer::replace(Policy policy, const std::function<void()> &taken) {
    const Policy last = std::exchange(policy_, std::move(policy));

    try {
        apply_machine();
    } catch (const Error &error) {
        // Nothing is set without a module, so that nothing is to be put back.
        if (error.failure() != Failure::missing)
            policy_ = last;
        throw;
    }
    if (taken)
        taken();
    return apply_to_all_or_later();
}

std::size_t Enforcer::apply_to_all_or_later() {
    try {
        const std::size_t refused = apply_to_all();

        is_partial_ = false;
        return refused;
    } catch (const Error &error) {
        if (error.failure() == Failure::missing || error.failure() == Failure::permission)
            throw;
        if (!std::exchange(is_partial_, true))
            tell_(fmt::format("the policy is not yet applied to all cgroups: {}", error.what()),
                  {{"failed", true}});
        due_ = Clock::now() + retry_after;
        return 1;
    }
}

std::size_t Enforcer::apply_to_all() {
    Known known;
    std::size_t refused = 0;

    machine_.refresh_owners();
    connection_.module().for_each_account([&known] { known.clear(); },
                                          [&known](const Account &account) {
                                              if (account.configured())
                                                  known[account.id] = settings_of(account);
                                          });
    again_.clear();
    machine_.cgroups().for_each(
        [&](const std::string &path) { refused += try_to_apply(path, &known, false) ? 0 : 1; });
    return refused;
}

std::optional<Enforcer::Clock::time_point> Enforcer::due() const {
    if (unreported_.below.empty())
        return due_;
    return std::min(due_.value_or(Clock::time_point::max()), telling_since_ + tell_interval);
}

void Enforcer::retry() {
    if (Clock::now() >= telling_since_ + tell_interval)
        tell_rest();
    if (!due_ || Clock::now() < *due_)
        return;
    if (is_partial_) {
        due_.reset();
        apply_to_all_or_later();
        return;
    }

    const auto waiting = std::exchange(unnamed_, {});
    const auto again = std::exchange(again_, {});

    due_.reset();
    machine_.refresh_owners();
    for (const std::string &path : again)
        try_to_apply(path, nullptr, false);
    for (const auto &[path, until] : waiting) {
        unnamed_.emplace(path, until);
        try_to_apply(path, nullptr, false);
    }
}

void Enforcer::apply_machine() {
    const MachineOrder order = policy_.machine_order(total_);
    const MachineCarried carried =
        carry_out(machine_, connection_.module(), order, false, OrderLock::Setter::daemon);

    for_each_machine_setting([&](const auto &setting) {
        const auto &set = carried.set.*setting.change;
        if (!set)
            return;

        const auto by = order.by.find(setting.attribute);
        MachineChange change;
        change.*setting.change = set;
        tell_(fmt::format(
                  "{} {} -> {} ({})", setting.title,
                  words_of(setting, *(carried.before.*setting.change)), words_of(setting, *set),
                  by == order.by.end() ? "no order asks for it any more" : "by " + by->second),
              merged({{"failed", false}}, to_json(change)));
    });
}

void Enforcer::apply(const std::string &path, const Known *known, bool fresh) {
    for (int attempt = 1;; ++attempt) {
        try {
            apply_by_owner(path, known, fresh);
            return;
        } catch (const OwnerChanged &) {
            if (attempt == attempts)
                throw;
        }
        machine_.refresh_owners();
    }
}

void Enforcer::apply_by_owner(const std::string &path, const Known *known, bool fresh) {
    // A hook keeps the name first, then sets what is for it.
    const bool is_named = has_kept_owner(machine_.cgroups(), path);
    const auto owner = machine_.owners().of(path);
    const bool inside = is_made_inside(path, machine_.owners());
    const Rule *rule =
        policy_.match({.path = path, .owner = owner ? &*owner : nullptr, .inside = inside});
    // Whoever made it inside of another chose its name, and no rule goes by that.
    const bool waits = policy_.needs_names() && !inside && waits_for_name(path, owner);
    // systemd may be about to set it on a new one.
    if (rule != nullptr && rule->total && !fresh)
        check_total(path, *rule);
    const Orders orders = read_orders(machine_, path, policy_.order(path, rule, total_));
    const Settled settled = settle(orders);

    try {
        const std::uint64_t id = machine_.cgroups().id(path);
        AccountChange now = settings_of(Account());
        if (known != nullptr && known->contains(id))
            now = known->at(id);
        // The module isn't asked about settings that are made already; a new cgroup has none.
        if ((known != nullptr || (fresh && settled.author.empty())) && settled.values == now)
            return;
        change({.path = path,
                .id = id,
                .rule = orders.rule,
                .is_named = is_named,
                .extent = waits ? Extent::ordered : Extent::all,
                .setter = OrderLock::Setter::daemon},
               rule);
    } catch (const Error &error) {
        if (error.failure() == Failure::missing || machine_.cgroups().exists(path))
            throw;
    }
}

void Enforcer::check_total(const std::string &path, const Rule &rule) {
    const std::uint64_t total = rule.total->of(total_);
    const auto max = machine_.cgroups().number(path, "memory.max");

    if (total != UMACCT_UNLIMITED && max.value_or(UMACCT_UNLIMITED) > total)
        tell_of(path,
                fmt::format("{}: total {} of {} does not hold: memory.max is {}; 'systemctl "
                            "daemon-reload' has systemd set it",
                            printable(path), format_size(total), rule.title(),
                            max ? format_limit(*max == UMACCT_UNLIMITED ? Limit() : Limit(*max))
                                : "not there"),
                {{"failed", true}, {"path", path}});
}

bool Enforcer::try_to_apply(const std::string &path, const Known *known, bool fresh) {
    try {
        apply(path, known, fresh);
        return true;
    } catch (const Error &error) {
        if (error.failure() == Failure::missing || error.failure() == Failure::permission)
            throw;
        if (is_shortage(error)) {
            again_.insert(path);
            due_ = std::min(due_.value_or(Clock::time_point::max()),
                            Clock::now() + retry_after_shortage);
        }
        tell_of(path, fmt::format("{}: {}", printable(path), error.what()),
                {{"failed", true}, {"path", path}});
        return false;
    }
}

void Enforcer::change(Errand errand, const Rule *rule) {
    const std::string path = errand.path;
    const Carried carried = carry_out(machine_, connection_.module(), std::move(errand));
    if (carried.set.empty())
        return;

    Json event = merged({{"failed", false}, {"path", path}}, to_json(carried.set));
    if (rule != nullptr) {
        event["rule"] = rule->name;
        event["place"] = rule->place.text();
    }
    tell_of(path, fmt::format("{}: {}", printable(path), words_of(carried)), std::move(event));
}

bool Enforcer::waits_for_name(const std::string &path, const std::optional<Owner> &owner) {
    const Clock::time_point now = Clock::now();
    // A user's own runtime writes names to the user's home, which umacctd does not read.
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
    return path.size() <= longest_unnamed && unnamed_.size() < most_unnamed &&
           !is_tenants(machine_.cgroups(), parent_path(path));
}

void Enforcer::tell_of(const std::string &path, const std::string &line, Json event) {
    const Clock::time_point now = Clock::now();

    if (now >= telling_since_ + tell_interval) {
        tell_rest();
        telling_since_ = now;
        reported_ = 0;
    }
    if (reported_ < most_reported) {
        ++reported_;
        tell_(line, event);
        return;
    }
    unreported_.below =
        unreported_.below.empty() ? parent_path(path) : common_path(unreported_.below, path);
    unreported_.last = line;
    ++(event.at("failed").get<bool>() ? unreported_.failed : unreported_.set);
}

void Enforcer::tell_rest() {
    const Unreported unreported = std::exchange(unreported_, {});

    if (unreported.below.empty())
        return;
    tell_(fmt::format("below {}: the policy was applied to {} more cgroups, and failed for {}; "
                      "the last was {}",
                      printable(unreported.below), unreported.set, unreported.failed,
                      unreported.last),
          {{"failed", unreported.failed > 0},
           {"path", unreported.below},
           {"set", unreported.set},
           {"refused", unreported.failed}});
}

} // namespace umacct
