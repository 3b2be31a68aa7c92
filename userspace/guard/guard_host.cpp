// SPDX-License-Identifier: GPL-2.0-or-later
#include "guard/guard_host.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "lib/arithmetic.h"
#include "lib/error.h"
#include "lib/host/cgroup_processes.h"
#include "lib/host/cgroup_tree.h"
#include "lib/host/replace_file.h"
#include "lib/host/umacctd.h"
#include "lib/memory/strain.h"
#include "lib/owners/tenant.h"
#include "lib/text.h"
#include "lib/units.h"

namespace umacct {

namespace {

using namespace std::chrono_literals;

/// Amount that the kernel reclaims at a time; no other cgroup is looked at meanwhile.
constexpr std::uint64_t reclaim_chunk = 32ULL << 20;
constexpr auto reclaim_most = 100ms;
constexpr auto signal_most = 500ms;

/// Number of cgroups that are visited below a cgroup: a tenant can make any number.
constexpr std::size_t most_below = 4096;

/// Smaller cgroups are not identified.
constexpr std::uint64_t small = 16ULL << 20;

/// A tenant makes any number of cgroups, as deep as it likes, in one that it was given. It takes
/// about 10 us to look at one.
constexpr std::size_t most_of_tenant = 1024;
constexpr std::size_t deepest_of_tenant = 16;

/// Memory of a cgroup that would be free if its processes ended, but for what the driver took:
/// page cache is available anyway, and tmpfs stays.
std::uint64_t other_memory(const Cgroups &cgroups, const std::string &path, std::uint64_t charged,
                           std::uint64_t current) {
    if (current < charged + small)
        return 0;

    const auto stat = cgroups.keyed(path, "memory.stat");
    std::uint64_t stays = charged;
    for (const char *key : {"active_file", "inactive_file", "slab_reclaimable", "shmem"}) {
        const auto found = stat.find(key);

        stays += found == stat.end() ? 0 : found->second;
    }
    return without(current, stays);
}

/// Memory of a cgroup that is on swap alone: the kernel counts what is in memory again, and still
/// on swap, as both.
std::uint64_t swapped_out(const Cgroups &cgroups, const std::string &path) {
    const std::uint64_t swap = cgroups.number(path, "memory.swap.current").value_or(0);

    if (swap < small)
        return swap;
    const auto stat = cgroups.keyed(path, "memory.stat");
    const auto both = stat.find("swapcached");
    return without(swap, both == stat.end() ? 0 : both->second);
}

/// Whether a process is in it; true where the kernel doesn't say.
bool is_populated(const Cgroups &cgroups, const std::string &path) {
    const auto events = cgroups.keyed(path, "cgroup.events");
    const auto populated = events.find("populated");

    return populated == events.end() || populated->second != 0;
}

/// One look at who holds what.
class Look {
public:
    /// guard: what it knows of those that hold little; may be none. swaps: memory is on swap.
    Look(const Machine &machine, const Guard *guard, const KilledProcesses &killed, bool swaps)
        : cgroups_(machine.cgroups()),
          orders_(machine.cgroups(), machine.root()),
          guard_(guard),
          killed_(killed),
          swaps_(swaps) {}

    std::vector<Holder> run(Module &module) {
        count(module);
        walk(cgroups_.mount().root, nullptr, 0);
        look_again_at_groups(module);
        return std::move(holders_);
    }

private:
    /// The module's figures of a cgroup. Without its path: those of all accounts may be 60 MiB.
    struct Counted {
        std::uint64_t usage = 0;
        std::uint64_t charged = 0;
        std::optional<std::uint64_t> memory_current;
        Limit soft;
    };

    void count(Module &module) {
        module.for_each_account([this] { counted_.clear(); },
                                [this](const Account &account) {
                                    counted_[account.id] = {.usage = account.usage,
                                                            .charged = account.charged,
                                                            .memory_current =
                                                                account.memory_current,
                                                            .soft = account.soft};
                                });
    }

    /// A cgroup and what is below it. left: how many more are looked at of the subtree that it is
    /// in, which root doesn't own; null outside of one.
    void walk(const std::string &path, std::size_t *left, std::size_t depth) {
        const std::size_t groups = groups_.size();
        std::size_t begins = most_of_tenant;
        bool goes_on = true;

        if (path != "/") {
            const auto folder = folder_of(cgroups_, path);

            if (folder && folder->owner != 0 && left == nullptr)
                left = &begins;
            goes_on = folder && look_at(path, *folder);
        }
        if (const auto directory = cgroups_.directory(path); goes_on && directory) {
            const std::size_t most = left == nullptr              ? SIZE_MAX - 1
                                     : depth == deepest_of_tenant ? 0
                                                                  : *left;
            std::error_code ignored;
            std::vector<std::string> names = folders_in(*directory, ignored, most + 1);

            if (names.size() > most) {
                names.pop_back();
                shelter_what_may_be_below(path);
            }
            if (left != nullptr)
                *left -= names.size();
            for (const std::string &name : names)
                walk(join_path(path, name), left, left == nullptr ? 0 : depth + 1);
        }
        groups_.resize(groups);
    }

    /// Marks the groups that a cgroup is in: a protected one may be left out below it.
    void shelter_what_may_be_below(const std::string &path) {
        if (guard_ == nullptr || !guard_->policy().may_protect_below(path))
            return;
        for (const std::size_t group : groups_)
            holders_[group].shelters = true;
    }

    /// Returns whether to look at the cgroups below, too.
    bool look_at(const std::string &path, const CgroupFolder &folder) {
        const auto found = counted_.find(folder.id);
        const Counted own = found == counted_.end() ? Counted{} : found->second;
        const auto current =
            own.memory_current ? own.memory_current : cgroups_.number(path, "memory.current");
        const std::uint64_t swap = swaps_ ? swapped_out(cgroups_, path) : 0;
        // Small cgroups have only small descendants, if the memory controller says how small.
        const bool is_small = current && *current + swap < small && own.usage < small;
        if (is_small && !is_worth_knowing(path, folder.id))
            return false;
        const bool unit = is_whole(cgroups_, path) ||
                          (folder.is_leaf && !path.ends_with(".slice")) ||
                          is_tenants_unit(cgroups_, path, folder, current.has_value());
        const bool tenant = !unit && is_tenants_group(path, folder);
        Holder holder;
        holder.path = path;
        holder.id = folder.id;
        holder.driver = own.usage;
        holder.swap = swap;
        if (own.soft && !is_containers(path))
            holder.soft = own.soft;
        holder.kind = unit ? HolderKind::unit : tenant ? HolderKind::tenant : HolderKind::shared;
        if (is_small) {
            if (!guard_->has_touched(holder.id))
                holder.path.clear();
            if (holder.kind != HolderKind::shared)
                holders_.push_back(std::move(holder));
            return false;
        }
        if (holder.kind != HolderKind::shared) {
            holder.empty = !is_populated(cgroups_, path) ||
                           (!groups_.empty() && was_refilled(path, folder.id));
            holder.other = other_memory(cgroups_, path, own.charged, current.value_or(0));
            holder.preference = preference_of(cgroups_, path);
            if (tenant)
                groups_.push_back(holders_.size());
            holders_.push_back(std::move(holder));
        }
        // A unit is a target as a whole: its cgroups are skipped.
        return !unit;
    }

    /// Whether a container asked for its soft limit itself: that saves it from nothing.
    bool is_containers(const std::string &path) const {
        return orders_.container(path).asked.soft && !orders_.person(path).asked.soft;
    }

    /// Whether a process came to a cgroup since it was killed. A tenant puts one there to have what
    /// another of its processes took there look as if it were about to be freed. Where it made too
    /// many cgroups to tell, that is taken for granted.
    bool was_refilled(const std::string &path, std::uint64_t id) {
        const auto killed = killed_.find(id);

        if (killed == killed_.end())
            return false;
        return std::ranges::any_of(processes_below(cgroups_, path, left_of_killed_),
                                   [&](pid_t pid) { return !killed->second.contains(pid); }) ||
               left_of_killed_ == 0;
    }

    /// One in a group may have given back what it held since the group's own figures were read.
    void look_again_at_groups(Module &module) {
        for (Holder &group : holders_) {
            if (group.kind != HolderKind::tenant || group.path.empty())
                continue;
            const auto account = module.account(group.id);
            const auto current = cgroups_.number(group.path, "memory.current");
            const std::uint64_t charged = account ? account->charged : 0;

            group.driver = std::min(group.driver, account ? account->usage : 0);
            group.other = std::min(
                group.other, other_memory(cgroups_, group.path, charged, current.value_or(0)));
        }
    }

    /// Returns whether a small cgroup matters: because of its past, or because it protects its
    /// group. A tenant can make any number of others, with any paths.
    bool is_worth_knowing(const std::string &path, std::uint64_t id) {
        if (guard_ == nullptr)
            return false;
        const auto shelters = [this](std::size_t group) { return holders_[group].shelters; };
        if (!std::ranges::all_of(groups_, shelters) && guard_->is_protected(path)) {
            for (const std::size_t group : groups_)
                holders_[group].shelters = true;
        }
        return guard_->has_touched(id) || guard_->knows(id);
    }

    const Cgroups &cgroups_;
    const OrderBook orders_;
    const Guard *guard_;
    const KilledProcesses &killed_;
    bool swaps_;
    std::size_t left_of_killed_ = most_below;            ///< cgroups to look for new processes in
    std::unordered_map<std::uint64_t, Counted> counted_; ///< the key is the cgroup's id
    std::vector<Holder> holders_;
    std::vector<std::size_t> groups_; ///< tenants' that the walk is in, of holders_
};

/// Number of published suspects: a longer list is of no use to a person.
constexpr std::size_t most_published = 64;

Json figures_of(const Suspect &suspect) {
    return {{"path", suspect.holder.path},         {"driver_bytes", suspect.holder.driver},
            {"other_bytes", suspect.holder.other}, {"swap_bytes", suspect.holder.swap},
            {"grown_bytes", suspect.grown},        {"within_s", suspect.within.count()},
            {"over_soft_bytes", suspect.over_soft}};
}

Json to_json(const Suspect &suspect) {
    static constexpr const char *kinds[] = {"shared", "unit", "tenant"};
    static constexpr const char *preferences[] = {"none", "avoid", "omit"};

    return merged(figures_of(suspect),
                  {{"kind", kinds[static_cast<std::size_t>(suspect.holder.kind)]},
                   {"preference", preferences[static_cast<std::size_t>(suspect.holder.preference)]},
                   {"candidate", suspect.passed_by.empty()},
                   {"reason", suspect.passed_by}});
}

} // namespace

bool may_write_cgroups(const Cgroups &cgroups) {
    const auto own = cgroups.directory(cgroups.of_self());

    return own && faccessat(AT_FDCWD, (*own / "cgroup.procs").c_str(), W_OK, AT_EACCESS) == 0;
}

Json event_of(const Guard::Action &action, const std::string &line, bool failed, bool dry_run) {
    Json event{{"type", "guard"},
               {"step", action.nobody ? "none" : name_of(action.step)},
               {"undo", action.undo},
               {"dry_run", dry_run},
               {"failed", failed},
               {"obtainable_bytes", action.obtainable},
               {"floor_bytes", action.floor},
               {"pressure_percent", action.pressure},
               {"for_ms", action.for_.count()},
               {"size_bytes", action.bytes},
               {"text", line}};

    if (action.suspect)
        event.update(figures_of(*action.suspect));
    return event;
}

GuardHost::GuardHost(Connection &connection, Machine &machine, Tell tell)
    : connection_(connection),
      machine_(machine),
      tell_(std::move(tell)),
      state_(machine.root() / guard_file) {}

void GuardHost::set(const std::optional<GuardPolicy> &policy, std::uint64_t reserve) {
    reserve_ = reserve;
    // The holders' usual sizes are kept while the policy stays the same.
    if (guard_ && policy && guard_->policy() == *policy)
        return;
    stop();
    guard_.reset();
    std::error_code ignored;
    std::filesystem::remove(machine_.root() / ranking_file, ignored);
    if (!policy)
        return;
    guard_.emplace(*policy, machine_.meminfo().total(), machine_.cgroups().of_self());
}

void GuardHost::stop() {
    if (guard_)
        act(guard_->release());
}

std::optional<Guard::Time> GuardHost::due() const {
    return guard_ ? std::optional(guard_->due()) : std::nullopt;
}

void GuardHost::run() {
    const Status status = connection_.module().status();
    const auto all = connection_.module().account(machine_.cgroups().id("/"));
    const auto pressure = machine_.pressure();

    if (!guard_->read(
            {.time = std::chrono::steady_clock::now(),
             .available = status.available,
             .reserve = status.reserve,
             .waited_us = pressure ? std::optional(pressure->some.total_us) : std::nullopt,
             .can_reserve = !status.has(UMACCT_STATUS_OBSERVER),
             .failed = all ? all->failed : 0}))
        return;

    const std::vector<Holder> holders = this->holders();
    act(guard_->decide(holders));
    std::erase_if(killed_, [this](const auto &each) { return !guard_->has_touched(each.first); });
    publish(holders);
}

std::vector<Holder> GuardHost::holders() {
    const Meminfo memory = machine_.meminfo();

    return Look(machine_, guard_ ? &*guard_ : nullptr, killed_,
                memory.bytes("SwapFree") < memory.bytes("SwapTotal"))
        .run(connection_.module());
}

void GuardHost::publish(const std::vector<Holder> &holders) const {
    Json candidates = Json::array();

    for (const Suspect &suspect : guard_->ranking(holders)) {
        if (candidates.size() == most_published)
            break;
        candidates.push_back(to_json(suspect));
    }
    Json steps = Json::array();
    for (const GuardStep step : guard_->policy().steps)
        steps.push_back(name_of(step));
    const auto now = std::chrono::duration_cast<std::chrono::microseconds>(
        std::chrono::steady_clock::now().time_since_epoch());
    // Failures to write are ignored: the file's time shows that it is old.
    static_cast<void>(replace_file(machine_.root() / ranking_file,
                                   json_text({{"as_of_us", now.count()},
                                              {"obtainable_bytes", guard_->obtainable()},
                                              {"floor_bytes", guard_->floor()},
                                              {"pressure_percent", guard_->pressure()},
                                              {"short", guard_->is_short()},
                                              {"dry_run", guard_->policy().dry_run},
                                              {"steps", steps},
                                              {"candidates", candidates},
                                              {"last", last_}})));
}

void GuardHost::act(const std::vector<Guard::Action> &actions) {
    const bool dry = guard_->policy().dry_run;

    for (const Guard::Action &action : actions) {
        std::string line = (dry && !action.nobody ? "guard would: " : "guard: ") + action.text();
        bool failed = false;

        try {
            if (!dry && !action.nobody)
                line += perform(action);
        } catch (const Error &error) {
            line = fmt::format("guard: cannot {}: {}", action.text(), error.what());
            failed = true;
        }
        if (action.again)
            continue;
        Json event;
        if (action.nobody && action.strained) {
            const Strain strain = Strain::look(connection_.module(), machine_);

            line += strain.text();
            event = merged(event_of(action, line, failed, dry), strain.json());
        } else {
            event = event_of(action, line, failed, dry);
        }
        last_ = {{"time", json_document("").at("time")},
                 {"step", event.at("step")},
                 {"undo", action.undo},
                 {"dry_run", dry},
                 {"failed", failed},
                 {"path", action.path()},
                 {"text", line}};
        tell_(event, line, failed);
    }
}

std::string GuardHost::perform(const Guard::Action &action) {
    const Cgroups &cgroups = machine_.cgroups();
    const std::string path = action.path();
    const bool is_ours = std::ranges::find(frozen_, path) != frozen_.end();

    switch (action.step) {
    case GuardStep::reclaim:
        reclaim(action);
        break;
    case GuardStep::reserve:
        // The order goes first: a thread that carries out the policy meanwhile comes to the same.
        raised_ = action.undo ? std::nullopt : std::optional(action.bytes);
        write_state();
        carry_out(machine_, connection_.module(),
                  {.asked = {.reserve = reserve_, .charge_default = {}}, .by = {}}, true,
                  OrderLock::Setter::daemon);
        break;
    case GuardStep::freeze:
        if (action.undo && !is_ours)
            return "; it stays frozen, as it was before";
        if (action.undo) {
            thaw(path);
            break;
        }
        if (cgroups.read(path, "cgroup.freeze") == "1")
            return is_ours ? "" : "; it was frozen already, and not by the guard";
        // One that was made anew under the name of one that is gone isn't frozen yet.
        if (!is_ours) {
            frozen_.push_back(path);
            write_state();
        }
        if (const int code = cgroups.try_write(path, "cgroup.freeze", "1")) {
            std::erase(frozen_, path);
            throw Error(failure_of(code), std::generic_category().message(code));
        }
        break;
    case GuardStep::signal:
        signal(path);
        break;
    case GuardStep::kill:
        kill(action.suspect->holder);
        break;
    }
    return "";
}

void GuardHost::thaw(const std::string &path) {
    // A removed cgroup needs none.
    if (machine_.cgroups().exists(path))
        machine_.cgroups().write(path, "cgroup.freeze", "0");
    std::erase(frozen_, path);
    write_state();
}

void GuardHost::reclaim(const Guard::Action &action) const {
    const auto until = std::chrono::steady_clock::now() + reclaim_most;

    for (std::uint64_t done = 0; done < action.bytes; done += reclaim_chunk) {
        const int code = machine_.cgroups().try_write(
            action.path(), "memory.reclaim",
            std::to_string(std::min(reclaim_chunk, action.bytes - done)));

        if (code == EAGAIN) // there is no more of it
            return;
        if (code != 0)
            throw Error(failure_of(code), std::generic_category().message(code));
        if (std::chrono::steady_clock::now() >= until)
            return;
    }
}

/// A tenant makes any number of cgroups and processes; those that are not reached in time are the
/// next step's.
void GuardHost::signal(const std::string &path) {
    const int error = terminate_processes(machine_.cgroups(), path, most_below,
                                          std::chrono::steady_clock::now() + signal_most);

    // A frozen process receives it only when thawed, and no later step thaws it. What another froze
    // stays frozen until then.
    if (std::ranges::find(frozen_, path) != frozen_.end())
        thaw(path);
    if (error != 0)
        throw Error(failure_of(error), std::generic_category().message(error));
}

void GuardHost::kill(const Holder &holder) {
    std::size_t most = most_below;

    if (holder.kind == HolderKind::unit)
        killed_[holder.id] = processes_below(machine_.cgroups(), holder.path, most);
    machine_.cgroups().write(holder.path, "cgroup.kill", "1");
}

// --- what a successor has to know --------------------------------------------------------

void GuardHost::write_state() const {
    std::error_code error;

    if (frozen_.empty() && !raised_) {
        std::filesystem::remove(state_, error);
        return;
    }

    std::string text;
    if (raised_)
        text += fmt::format("reserve {}\n", *raised_);
    // A cgroup's name has no line's end in it: the kernel takes none.
    for (const std::string &path : frozen_)
        text += fmt::format("frozen {}\n", path);
    if (const int code = replace_file(state_, text))
        throw Error(failure_of(code),
                    fmt::format("cannot write {}: {}", state_.string(),
                                std::generic_category().message(code)),
                    "the guard takes no step that it cannot record for undoing");
}

void GuardHost::recover() {
    std::ifstream file(state_);
    std::error_code ignored;

    if (!file || raised_ || !frozen_.empty())
        return;
    for (std::string word; file >> word;) {
        std::string rest;

        if (std::getline(file >> std::ws, rest) && word == "frozen")
            frozen_.push_back(rest);
    }
    raised_ = guards_reserve(machine_);
    const auto undo = [this](const Guard::Action &action, const std::string &done) {
        std::string line = "guard: " + done + ", left from its previous run";
        bool failed = false;

        try {
            perform(action);
        } catch (const Error &error) {
            line = fmt::format("guard: cannot undo it: {}: {}", done, error.what());
            failed = true;
        }
        tell_(event_of(action, line, failed, false), line, failed);
    };
    for (const std::string &path : std::vector(frozen_)) {
        Suspect suspect;

        suspect.holder.path = path;
        if (machine_.cgroups().exists(path))
            undo({.step = GuardStep::freeze, .undo = true, .suspect = suspect},
                 printable(path) + " is thawed");
    }
    frozen_.clear();
    // Last: without the module there is no reserve, and nothing must stay frozen because of that.
    if (std::exchange(raised_, {}) && connection_.module().status().reserve != reserve_)
        undo({.step = GuardStep::reserve, .undo = true, .suspect = {}, .bytes = reserve_},
             "the reserve is " + format_size(reserve_) + " again");
    std::filesystem::remove(state_, ignored);
}

} // namespace umacct
