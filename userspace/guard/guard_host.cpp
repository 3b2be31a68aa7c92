// SPDX-License-Identifier: GPL-2.0-or-later
#include "guard/guard_host.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/syscall.h>
#include <unistd.h>

#include "guard/strain.h"
#include "lib/arithmetic.h"
#include "lib/error.h"
#include "lib/host/cgroup_tree.h"
#include "lib/host/file_descriptor.h"
#include "lib/host/replace_file.h"
#include "lib/host/umacctd.h"
#include "lib/owners/owner.h"
#include "lib/text.h"
#include "lib/units.h"

namespace umacct {

namespace {

using namespace std::chrono_literals;

/// The kernel takes back so much at a time, and nobody else is looked after meanwhile.
constexpr std::uint64_t reclaim_chunk = 32ULL << 20;
constexpr auto reclaim_most = 100ms;
constexpr auto signal_most = 500ms;

/// A tenant makes any number of cgroups and of processes: so many are met below one.
constexpr std::size_t most_below = 4096;
constexpr std::size_t most_processes = 65536;
/// umacctd may have 1,024 files open.
constexpr std::size_t handles_at_once = 256;

/// Of less it isn't asked what it is.
constexpr std::uint64_t small = 16ULL << 20;

/// A tenant makes any number of cgroups, as deep as it likes, in one that it was given. It takes
/// about 10 us to look at one.
constexpr std::size_t most_of_tenant = 1024;
constexpr std::size_t deepest_of_tenant = 16;
/// Of those that the module names, so many are looked at whatever is beside them: the largest.
constexpr std::size_t most_large = 512;

/// What a step is for as a whole: a service, a session, a container. A user's manager isn't:
/// what it runs are services of their own.
bool is_whole(std::string_view path) {
    const auto owner = owner_of(path);

    if (!owner || owner->kind == OwnerKind::pod)
        return false;
    if (owner->kind == OwnerKind::container)
        return true;
    return !base_name(path).starts_with("user@") &&
           (path.ends_with(".service") || path.ends_with(".scope"));
}

/// A group of one tenant: a user's, a pod, or what was delegated.
bool is_tenant(std::string_view path, const CgroupFolder &folder) {
    const std::string_view name = base_name(path);
    const auto owner = owner_of(path);

    return folder.owner != 0 || name.starts_with("user@") ||
           (name.starts_with("user-") && name.ends_with(".slice")) ||
           (owner && owner->kind == OwnerKind::pod);
}

/// Whether a cgroup that isn't root's has to be acted against as a whole, whatever it is called and
/// whatever is below it: its tenant runs processes in the cgroup itself. The kernel keeps the
/// memory controller from what is below a cgroup for as long as processes are in that cgroup.
bool is_tenants_unit(const Cgroups &cgroups, const std::string &path, const CgroupFolder &folder,
                     bool has_memory) {
    const auto directory = cgroups.directory(path);

    if (folder.owner == 0 || !directory)
        return false;
    if (folder.is_leaf)
        return true;
    if (!has_memory)
        return cgroups.read(path, "cgroup.procs").has_value();

    std::ifstream given(*directory / "cgroup.subtree_control");
    if (!given)
        return false;
    for (std::string name; given >> name;) {
        if (name == "memory")
            return false;
    }
    return true;
}

/// As systemd writes it down, for its own systemd-oomd. A tenant's own cgroups can't say it.
Preference preference_of(const Cgroups &cgroups, const std::string &path,
                         const CgroupFolder &folder) {
    const auto is_set = [&](const char *name) {
        const auto value = attribute_of(cgroups, path, name);

        return value && (*value == "1" || *value == "yes" || *value == "true");
    };

    if (folder.owner != 0)
        return Preference::none;
    if (is_set("user.oomd_omit") || is_set("trusted.oomd_omit"))
        return Preference::omit;
    return is_set("user.oomd_avoid") || is_set("trusted.oomd_avoid") ? Preference::avoid
                                                                     : Preference::none;
}

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

/// Whether a process is in it; true where the kernel doesn't say.
bool is_populated(const Cgroups &cgroups, const std::string &path) {
    const auto events = cgroups.keyed(path, "cgroup.events");
    const auto populated = events.find("populated");

    return populated == events.end() || populated->second != 0;
}

/// Calls visit with the directory of a cgroup and of those below it, until it returns false, or
/// most, which it takes them from, is 0.
void visit_below(const Cgroups &cgroups, const std::string &path, std::size_t &most,
                 const std::function<bool(const std::filesystem::path &directory)> &visit) {
    std::vector<std::string> left{path};

    while (!left.empty()) {
        const std::string each = std::move(left.back());
        std::error_code ignored;

        left.pop_back();
        const auto directory = cgroups.directory(each);
        if (!directory)
            continue;
        if (!visit(*directory))
            return;
        for (const std::string &name : folders_in(*directory, ignored, most)) {
            left.push_back(join_path(each, name));
            --most;
        }
    }
}

std::vector<pid_t> processes_in(const std::filesystem::path &directory) {
    std::ifstream file(directory / "cgroup.procs");
    std::vector<pid_t> pids;

    for (pid_t pid = 0; pids.size() < most_processes && file >> pid;)
        pids.push_back(pid);
    return pids;
}

/// Sends SIGTERM to what is in a cgroup, until that time; the first error, if any. A pid may be
/// another's by the time it is used, so each is used by a handle, and a handle is of one of them if
/// its pid is still listed. Nothing is read in /proc: umacctd's unit shows it no other's processes.
int terminate(const std::filesystem::path &directory, std::chrono::steady_clock::time_point until) {
    const std::vector<pid_t> pids = processes_in(directory);
    int first_error = 0;

    for (std::size_t at = 0; at < pids.size(); at += handles_at_once) {
        std::map<pid_t, FileDescriptor> handles;

        if (std::chrono::steady_clock::now() >= until)
            break;
        for (std::size_t i = at; i < std::min(at + handles_at_once, pids.size()); ++i)
            handles.try_emplace(pids[i], static_cast<int>(syscall(SYS_pidfd_open, pids[i], 0)));
        const std::vector<pid_t> still = processes_in(directory);
        const std::unordered_set<pid_t> listed(still.begin(), still.end());
        for (const auto &[pid, handle] : handles) {
            if (handle.get() >= 0 && listed.contains(pid) &&
                syscall(SYS_pidfd_send_signal, handle.get(), SIGTERM, nullptr, 0) != 0 &&
                errno != ESRCH && first_error == 0)
                first_error = errno;
        }
    }
    return first_error;
}

/// One look at who holds what.
class Look {
public:
    /// guard: what it knows of those that hold little; may be none.
    Look(const Cgroups &cgroups, const Guard *guard, const KilledProcesses &killed)
        : cgroups_(cgroups), guard_(guard), killed_(killed) {}

    std::vector<Holder> run(Module &module) {
        count(module);
        walk(cgroups_.mount().root, nullptr);
        look_at_large();
        add_rests(module);
        return std::move(holders_);
    }

private:
    /// What the module says of a cgroup. Not its path: of all of them these may be 60 MiB.
    struct Counted {
        std::uint64_t usage = 0;
        std::uint64_t charged = 0;
        std::optional<std::uint64_t> memory_current;
        Limit soft;
    };

    struct Listed {
        std::uint64_t driver = 0;
        std::uint64_t other = 0;
    };

    struct Large {
        std::uint64_t bytes = 0;
        std::uint64_t id = 0;
        std::string path;
    };

    static constexpr std::size_t no_group = SIZE_MAX;

    /// A cgroup below which not all is looked at.
    struct Cut {
        std::size_t depth = 0;        ///< in a delegated subtree
        std::size_t group = no_group; ///< of tenants' that it is or is in, of holders_
    };

    /// A subtree that root doesn't own.
    struct Delegated {
        std::size_t left = most_of_tenant; ///< to be looked at
        std::size_t depth = 0;             ///< at which the walk is
    };

    void count(Module &module) {
        module.for_each_account(
            [this] {
                counted_.clear();
                large_.clear();
            },
            [this](Account account) {
                counted_[account.id] = {.usage = account.usage,
                                        .charged = account.charged,
                                        .memory_current = account.memory_current,
                                        .soft = account.soft};
                const std::uint64_t bytes =
                    std::max(account.usage, account.memory_current.value_or(0));
                if (bytes >= small)
                    keep_large({bytes, account.id, std::move(account.path)});
            });
    }

    /// Keeps a heap of the largest, the smallest of them first.
    void keep_large(Large large) {
        const auto is_larger = [](const Large &a, const Large &b) { return a.bytes > b.bytes; };

        if (large_.size() == most_large) {
            if (large.bytes <= large_.front().bytes)
                return;
            std::ranges::pop_heap(large_, is_larger);
            large_.pop_back();
        }
        large_.push_back(std::move(large));
        std::ranges::push_heap(large_, is_larger);
    }

    /// A cgroup and what is below it. in: the delegated subtree that it is in, if any.
    void walk(const std::string &path, Delegated *in) {
        const std::size_t groups = groups_.size();
        Delegated begins;
        bool goes_on = true;

        if (path != "/") {
            const auto folder = folder_of(cgroups_, path);

            if (folder && folder->owner != 0 && in == nullptr)
                in = &begins;
            goes_on = folder && look_at(path, *folder);
        }
        if (goes_on)
            walk_below(path, in);
        groups_.resize(groups);
    }

    void walk_below(const std::string &path, Delegated *in) {
        const auto directory = cgroups_.directory(path);
        const std::size_t most = in == nullptr                    ? SIZE_MAX - 1
                                 : in->depth == deepest_of_tenant ? 0
                                                                  : in->left;
        std::error_code ignored;

        if (!directory)
            return;
        std::vector<std::string> names = folders_in(*directory, ignored, most + 1);
        if (names.size() > most) {
            names.pop_back();
            cut(path, in->depth);
        }
        if (in != nullptr) {
            in->left -= names.size();
            ++in->depth;
        }
        for (const std::string &name : names)
            walk(join_path(path, name), in);
        if (in != nullptr)
            --in->depth;
    }

    /// Notes that not all below it is looked at. What is protected may be there.
    void cut(const std::string &path, std::size_t depth) {
        cut_.emplace(path, Cut{depth, groups_.empty() ? no_group : groups_.back()});
        for (const std::size_t group : groups_)
            shelter_if_unknown(holders_[group], path);
    }

    void shelter_if_unknown(Holder &group, const std::string &path) const {
        group.shelters =
            group.shelters || (guard_ != nullptr && guard_->policy().may_protect_below(path));
    }

    /// Those that the module names as large, where the walk left some out.
    void look_at_large() {
        if (cut_.empty())
            return;
        // Parents come first.
        std::ranges::sort(large_, {}, &Large::path);
        for (const Large &large : large_) {
            const auto above = cut_.find(parent_path(large.path));

            if (above == cut_.end() || above->second.depth == deepest_of_tenant ||
                seen_.contains(large.id))
                continue;
            const std::size_t depth = above->second.depth + 1;
            groups_.clear();
            if (above->second.group != no_group)
                groups_.push_back(above->second.group);
            const auto folder = folder_of(cgroups_, large.path);
            if (!folder || folder->id != large.id || !look_at(large.path, *folder))
                continue;
            cut_.emplace(large.path, Cut{depth, groups_.empty() ? no_group : groups_.back()});
            if (!holders_.empty() && holders_.back().id == large.id)
                shelter_if_unknown(holders_.back(), large.path);
        }
    }

    /// Whether somebody below it is to be looked at, too.
    bool look_at(const std::string &path, const CgroupFolder &folder) {
        const auto found = counted_.find(folder.id);
        const Counted own = found == counted_.end() ? Counted{} : found->second;
        const auto current =
            own.memory_current ? own.memory_current : cgroups_.number(path, "memory.current");
        // Below one that holds little nobody holds more. Without the memory controller's own
        // figure there may be somebody.
        const bool is_small = current && *current < small && own.usage < small;
        if (is_small && !is_worth_knowing(path, folder.id))
            return false;
        const bool unit = is_whole(path) || (folder.is_leaf && !path.ends_with(".slice")) ||
                          is_tenants_unit(cgroups_, path, folder, current.has_value());
        const bool tenant = !unit && is_tenant(path, folder);
        Holder holder;
        holder.path = path;
        holder.id = folder.id;
        holder.driver = own.usage;
        holder.soft = own.soft;
        holder.kind = unit ? HolderKind::unit : tenant ? HolderKind::tenant : HolderKind::shared;
        if (is_small) {
            if (!guard_->has_touched(holder.id))
                holder.path.clear();
            if (holder.kind != HolderKind::shared)
                holders_.push_back(std::move(holder));
            return false;
        }
        seen_.insert(holder.id);
        if (holder.kind != HolderKind::shared) {
            holder.empty = !is_populated(cgroups_, path) ||
                           (!groups_.empty() && was_refilled(path, folder.id));
            holder.other = other_memory(cgroups_, path, own.charged, current.value_or(0));
            holder.preference = preference_of(cgroups_, path, folder);
            if (!holder.empty && !groups_.empty()) {
                listed_[groups_.back()].driver += holder.driver;
                listed_[groups_.back()].other += holder.other;
            }
            if (tenant) {
                groups_.push_back(holders_.size());
                listed_[holders_.size()];
            }
            holders_.push_back(std::move(holder));
        }
        // Nobody looks inside a unit: it is acted against as a whole.
        return !unit;
    }

    /// Whether a process came to a cgroup since it was killed. A tenant puts one there to have what
    /// another of its processes took there look as if it were about to be freed. Where it made too
    /// many cgroups to tell, that is taken for granted.
    bool was_refilled(const std::string &path, std::uint64_t id) {
        const auto killed = killed_.find(id);
        bool found = false;

        if (killed == killed_.end())
            return false;
        visit_below(cgroups_, path, left_of_killed_, [&](const std::filesystem::path &directory) {
            found = std::ranges::any_of(processes_in(directory),
                                        [&](pid_t pid) { return !killed->second.contains(pid); });
            return !found;
        });
        return found || left_of_killed_ == 0;
    }

    /// What tenants' groups hold besides those in them: a tenant moves its processes from one to
    /// another, and what they took stays where they took it.
    void add_rests(Module &module) {
        for (const auto &[index, listed] : listed_) {
            const Holder group = holders_[index];

            if (group.empty ||
                without(group.driver, listed.driver) + without(group.other, listed.other) < small)
                continue;
            // One in it may have given back what it held since the group's own figures were read.
            const auto account = module.account(group.id);
            const auto current = cgroups_.number(group.path, "memory.current");
            const std::uint64_t driver = account ? account->usage : 0;
            const std::uint64_t other = other_memory(
                cgroups_, group.path, account ? account->charged : 0, current.value_or(0));
            Holder rest = group;
            rest.id = Holder::rest_id(group.id);
            rest.rest = true;
            rest.driver = without(std::min(group.driver, driver), listed.driver);
            rest.other = without(std::min(group.other, other), listed.other);
            if (rest.soft)
                rest.soft = without(*rest.soft, listed.driver);
            if (rest.held() >= small)
                holders_.push_back(std::move(rest));
        }
    }

    /// Of those that hold little there may be any number, with any paths: only what they once held
    /// is worth knowing, and which groups they keep from harm.
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
    const Guard *guard_;
    const KilledProcesses &killed_;
    std::size_t left_of_killed_ = most_below;            ///< cgroups to look for new processes in
    std::unordered_map<std::uint64_t, Counted> counted_; ///< by the cgroup's id
    std::vector<Large> large_;
    std::vector<Holder> holders_;
    std::vector<std::size_t> groups_;        ///< tenants' that the walk is in, of holders_
    std::unordered_set<std::uint64_t> seen_; ///< ids of those that hold more than little
    std::unordered_map<std::string, Cut> cut_;
    /// The same tenants' groups, and what those directly in them hold that have processes.
    std::map<std::size_t, Listed> listed_;
};

/// So many are published: more is nothing that a person reads.
constexpr std::size_t most_published = 64;

Json to_json(const Suspect &suspect) {
    static constexpr const char *kinds[] = {"shared", "unit", "tenant"};
    static constexpr const char *preferences[] = {"none", "avoid", "omit"};
    const Holder &holder = suspect.holder;

    return {{"path", holder.path},
            {"kind", holder.rest ? "rest" : kinds[static_cast<std::size_t>(holder.kind)]},
            {"driver_bytes", holder.driver},
            {"other_bytes", holder.other},
            {"grown_bytes", suspect.grown},
            {"within_s", suspect.within.count()},
            {"over_soft_bytes", suspect.over_soft},
            {"preference", preferences[static_cast<std::size_t>(holder.preference)]},
            {"candidate", suspect.passed_by.empty()},
            {"reason", suspect.passed_by}};
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

    if (action.suspect) {
        const Suspect &suspect = *action.suspect;

        event.update({{"path", suspect.holder.path},
                      {"driver_bytes", suspect.holder.driver},
                      {"other_bytes", suspect.holder.other},
                      {"grown_bytes", suspect.grown},
                      {"within_s", suspect.within.count()},
                      {"over_soft_bytes", suspect.over_soft}});
    }
    return event;
}

GuardHost::GuardHost(Connection &connection, Machine &machine, Tell tell)
    : connection_(connection),
      machine_(machine),
      tell_(std::move(tell)),
      state_(machine.root() / "run/umacctd/guard") {}

void GuardHost::set(const std::optional<GuardPolicy> &policy) {
    // Who holds what usually is worth knowing on.
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
    const auto pressure = machine_.pressure();

    reserve_ = status.reserve;
    if (!guard_->read(
            {.time = std::chrono::steady_clock::now(),
             .available = status.available,
             .reserve = status.reserve,
             .waited_us = pressure ? std::optional(pressure->some.total_us) : std::nullopt,
             .can_reserve = !status.has(UMACCT_STATUS_OBSERVER)}))
        return;

    const std::vector<Holder> holders = this->holders();
    act(guard_->decide(holders));
    std::erase_if(killed_, [this](const auto &each) { return !guard_->has_touched(each.first); });
    publish(holders);
}

std::vector<Holder> GuardHost::holders() {
    return Look(machine_.cgroups(), guard_ ? &*guard_ : nullptr, killed_).run(connection_.module());
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
    // Who can't be told what the guard sees is told that it is old.
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

std::string GuardHost::frozen_by_another(const Guard::Action &action) {
    if (action.step != GuardStep::freeze || !was_frozen(action.path()))
        return "";
    if (!action.undo)
        return "; it was frozen already, and not by the guard";
    std::erase(found_frozen_, action.path());
    return "; it stays frozen, as it was before";
}

void GuardHost::act(const std::vector<Guard::Action> &actions) {
    const bool dry = guard_->policy().dry_run;

    for (const Guard::Action &action : actions) {
        std::string line = (dry && !action.nobody ? "guard would: " : "guard: ") + action.text();
        bool failed = false;

        try {
            if (!dry && !action.nobody) {
                note(action);
                perform(action);
            }
        } catch (const Error &error) {
            if (action.step == GuardStep::freeze && !action.undo)
                std::erase(frozen_, action.path());
            line = fmt::format("guard: cannot {}: {}", action.text(), error.what());
            failed = true;
        }
        line += frozen_by_another(action);
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
    forget_reserve();
}

/// Where another reserve was set since, nobody puts the one before back.
void GuardHost::forget_reserve() {
    if (!raised_ || guard_->has_raised())
        return;
    raised_.reset();
    try {
        write_state();
    } catch (const Error &error) {
        const std::string line = fmt::format("guard: {}", error.what());

        tell_({{"type", "guard"}, {"failed", true}, {"text", line}}, line, true);
    }
}

void GuardHost::perform(const Guard::Action &action) {
    const Cgroups &cgroups = machine_.cgroups();
    const std::string path = action.path();

    switch (action.step) {
    case GuardStep::reclaim:
        reclaim(action);
        break;
    case GuardStep::reserve:
        connection_.module().set_reserve(action.bytes);
        break;
    case GuardStep::freeze:
        // What was removed meanwhile needs no thawing.
        if (!was_frozen(path) && (!action.undo || cgroups.exists(path)))
            cgroups.write(path, "cgroup.freeze", action.undo ? "0" : "1");
        break;
    case GuardStep::signal:
        signal(path);
        break;
    case GuardStep::kill:
        kill(action);
        break;
    }
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
void GuardHost::signal(const std::string &path) const {
    const Cgroups &cgroups = machine_.cgroups();
    const auto until = std::chrono::steady_clock::now() + signal_most;
    std::size_t most = most_below;
    int first_error = 0;

    visit_below(cgroups, path, most, [&](const std::filesystem::path &directory) {
        const int error = terminate(directory, until);

        first_error = first_error != 0 ? first_error : error;
        return std::chrono::steady_clock::now() < until;
    });
    // A frozen process receives it only when thawed, and nobody thaws it later. What another froze
    // stays frozen until then.
    if (!was_frozen(path))
        cgroups.write(path, "cgroup.freeze", "0");
    if (first_error != 0)
        throw Error(failure_of(first_error), std::generic_category().message(first_error));
}

void GuardHost::kill(const Guard::Action &action) {
    const Cgroups &cgroups = machine_.cgroups();
    const Holder &holder = action.suspect->holder;

    if (holder.kind == HolderKind::unit) {
        std::unordered_set<pid_t> &pids = killed_[holder.id];
        std::size_t most = most_below;

        pids.clear();
        visit_below(cgroups, holder.path, most, [&](const std::filesystem::path &directory) {
            const std::vector<pid_t> more = processes_in(directory);

            pids.insert(more.begin(), more.end());
            return pids.size() < most_processes;
        });
    }
    cgroups.write(holder.path, "cgroup.kill", "1");
}

bool GuardHost::was_frozen(const std::string &path) const {
    return std::ranges::find(found_frozen_, path) != found_frozen_.end();
}

/// Notes whether a cgroup that the guard is about to freeze was frozen by another before.
void GuardHost::look_who_froze(const std::string &path) {
    if (std::ranges::find(frozen_, path) != frozen_.end())
        return;
    std::erase(found_frozen_, path);
    if (machine_.cgroups().read(path, "cgroup.freeze") == "1")
        found_frozen_.push_back(path);
}

// --- what a successor has to know --------------------------------------------------------

void GuardHost::note(const Guard::Action &action) {
    const std::string path = action.path();

    if (action.step == GuardStep::reserve) {
        raised_ = action.undo ? std::nullopt : std::optional(std::pair(reserve_, action.bytes));
    } else if (action.step == GuardStep::freeze || action.step == GuardStep::signal) {
        if (!action.undo)
            look_who_froze(path);
        std::erase(frozen_, path);
        if (action.step == GuardStep::freeze && !action.undo && !was_frozen(path))
            frozen_.push_back(path);
    } else {
        return;
    }
    write_state();
}

void GuardHost::write_state() const {
    std::error_code error;

    if (frozen_.empty() && !raised_) {
        std::filesystem::remove(state_, error);
        return;
    }

    std::string text;
    if (raised_)
        text += fmt::format("reserve {} {}\n", raised_->first, raised_->second);
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
    std::optional<std::pair<std::uint64_t, std::uint64_t>> reserve;
    for (std::string word; file >> word;) {
        std::uint64_t from = 0;
        std::uint64_t to = 0;
        Suspect suspect;

        if (word == "reserve") {
            if (file >> from >> to)
                reserve.emplace(from, to);
        } else if (std::getline(file >> std::ws, suspect.holder.path) &&
                   machine_.cgroups().exists(suspect.holder.path)) {
            undo({.step = GuardStep::freeze, .undo = true, .suspect = suspect},
                 printable(suspect.holder.path) + " is thawed");
        }
    }
    // Last: without the module there is no reserve, and nobody stays frozen for want of it.
    // Somebody else may have set it since.
    if (reserve && connection_.module().status().reserve == reserve->second)
        undo({.step = GuardStep::reserve, .undo = true, .suspect = {}, .bytes = reserve->first},
             "the reserve is " + format_size(reserve->first) + " again");
    std::filesystem::remove(state_, ignored);
}

} // namespace umacct
