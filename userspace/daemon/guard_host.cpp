// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/guard_host.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <map>
#include <system_error>
#include <unordered_map>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/host/file_descriptor.h"
#include "lib/host/replace_file.h"
#include "lib/owners/owner.h"
#include "lib/text.h"
#include "lib/units.h"

namespace umacct {

namespace {

using namespace std::chrono_literals;

/// The kernel takes back so much at a time, and nobody else is looked after meanwhile.
constexpr std::uint64_t reclaim_chunk = 32ULL << 20;
constexpr auto reclaim_most = 100ms;

/// Of less it isn't asked what it is.
constexpr std::uint64_t small = 16ULL << 20;

bool is_below(std::string_view path, std::string_view above) {
    return path.size() > above.size() && path.starts_with(above) && path[above.size()] == '/';
}

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

/// Memory of a cgroup that would be free without it, but for what the driver took: page cache
/// can be had anyway.
std::uint64_t other_memory(const Cgroups &cgroups, const std::string &path,
                           const Account *account) {
    const auto current = account != nullptr && account->memory_current
                             ? account->memory_current
                             : cgroups.number(path, "memory.current");
    const std::uint64_t charged = account != nullptr ? account->charged : 0;

    if (!current || *current < charged + small)
        return 0;

    const auto stat = cgroups.keyed(path, "memory.stat");
    std::uint64_t cache = 0;
    for (const char *key : {"active_file", "inactive_file", "slab_reclaimable"}) {
        const auto found = stat.find(key);

        cache += found == stat.end() ? 0 : found->second;
    }
    return *current - std::min(*current, charged + cache);
}

std::vector<pid_t> processes_below(const Cgroups &cgroups, const std::string &path) {
    const auto top = cgroups.directory(path);
    std::vector<pid_t> pids;
    std::error_code error;
    const auto add = [&](const std::filesystem::path &directory) {
        std::ifstream procs(directory / "cgroup.procs");

        for (pid_t pid = 0; procs >> pid;)
            pids.push_back(pid);
    };

    if (!top)
        return pids;
    add(*top);
    for (std::filesystem::recursive_directory_iterator at(*top, error), end; !error && at != end;
         at.increment(error)) {
        if (at->is_directory(error))
            add(at->path());
    }
    return pids;
}

} // namespace

GuardHost::GuardHost(Connection &connection, Machine &machine, Tell tell)
    : connection_(connection),
      machine_(machine),
      tell_(std::move(tell)),
      state_(machine.root() / "run/umacctd/guard") {}

void GuardHost::set(const std::optional<GuardPolicy> &policy) {
    stop();
    // Who holds what usually is worth knowing on.
    if (guard_ && policy && guard_->policy() == *policy)
        return;
    guard_.reset();
    if (!policy)
        return;
    guard_.emplace(*policy, machine_.meminfo().total(), machine_.cgroups().of_self());
}

void GuardHost::stop() {
    if (guard_)
        act(guard_->release());
}

bool GuardHost::may_act() const {
    const auto own = machine_.cgroups().directory(machine_.cgroups().of_self());

    return own && faccessat(AT_FDCWD, (*own / "cgroup.procs").c_str(), W_OK, AT_EACCESS) == 0;
}

std::optional<Guard::Time> GuardHost::due() const {
    return guard_ ? std::optional(guard_->due()) : std::nullopt;
}

void GuardHost::run() {
    const Status status = connection_.module().status();
    const auto pressure = guard_->policy().pressure ? machine_.pressure() : std::nullopt;

    reserve_ = status.reserve;
    if (guard_->read(
            {.time = std::chrono::steady_clock::now(),
             .available = status.available,
             .reserve = status.reserve,
             .waited_us = pressure ? std::optional(pressure->some.total_us) : std::nullopt}))
        act(guard_->decide(holders()));
}

std::vector<Holder> GuardHost::holders() {
    const Cgroups &cgroups = machine_.cgroups();
    const std::vector<Account> accounts = connection_.module().accounts();
    std::unordered_map<std::string_view, const Account *> by_path;
    std::vector<Holder> holders;
    std::string whole; // the last one: nobody looks inside

    for (const Account &account : accounts)
        by_path.emplace(account.path, &account);
    cgroups.for_each([&](const std::string &path) {
        if (path == "/" || (!whole.empty() && is_below(path, whole)))
            return;
        // Whoever has nothing below it holds what it has itself.
        if (!holders.empty() && !is_below(path, holders.back().path))
            holders.back().whole = true;

        const auto found = by_path.find(path);
        const Account *account = found == by_path.end() ? nullptr : found->second;
        Holder &holder = holders.emplace_back();
        holder.path = path;
        holder.whole = is_whole(path);
        whole = holder.whole ? path : "";
        if (account != nullptr) {
            holder.id = account->id;
            holder.driver = account->usage;
            holder.soft = account->soft;
        }
        holder.other = other_memory(cgroups, path, account);
    });
    if (!holders.empty())
        holders.back().whole = true;
    return holders;
}

void GuardHost::act(const std::vector<Guard::Action> &actions) {
    for (const Guard::Action &action : actions) {
        const bool dry = guard_->policy().dry_run;

        try {
            if (!dry) {
                note(action);
                perform(action);
            }
            if (!action.again)
                tell_(action, (dry ? "guard would: " : "guard: ") + action.text(), false);
        } catch (const Error &error) {
            if (action.step == GuardStep::freeze && !action.undo)
                std::erase(frozen_, action.path());
            if (!action.again)
                tell_(action, fmt::format("guard can't {}: {}", action.text(), error.what()), true);
        }
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
        if (!action.undo || cgroups.exists(path))
            cgroups.write(path, "cgroup.freeze", action.undo ? "0" : "1");
        break;
    case GuardStep::signal:
        signal(path);
        break;
    case GuardStep::kill:
        cgroups.write(path, "cgroup.kill", "1");
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

/// Each process below it, by a handle: a pid may be another's by the time it is used.
void GuardHost::signal(const std::string &path) const {
    const Cgroups &cgroups = machine_.cgroups();
    std::map<pid_t, FileDescriptor> handles;

    for (const pid_t pid : processes_below(cgroups, path))
        handles.try_emplace(pid, static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    // A handle is of one of them if its pid still is.
    for (const pid_t pid : processes_below(cgroups, path)) {
        const auto handle = handles.find(pid);

        if (handle != handles.end() && handle->second.get() >= 0 &&
            syscall(SYS_pidfd_send_signal, handle->second.get(), SIGTERM, nullptr, 0) != 0 &&
            errno != ESRCH)
            throw Error(failure_of(errno), std::generic_category().message(errno));
    }
    // Who is frozen doesn't hear it.
    cgroups.write(path, "cgroup.freeze", "0");
}

// --- what a successor has to know --------------------------------------------------------

void GuardHost::note(const Guard::Action &action) {
    const std::string path = action.path();

    if (action.step == GuardStep::reserve) {
        raised_ = action.undo ? std::nullopt : std::optional(std::pair(reserve_, action.bytes));
    } else if (action.step == GuardStep::freeze || action.step == GuardStep::signal) {
        std::erase(frozen_, path);
        if (action.step == GuardStep::freeze && !action.undo)
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
        throw Error(failure_of(code), fmt::format("{} can't be written", state_.string()),
                    "what is done must be undone one day, so it is not done");
}

void GuardHost::recover() {
    std::ifstream file(state_);
    std::error_code ignored;

    if (!file || raised_ || !frozen_.empty())
        return;
    const auto undo = [this](const Guard::Action &action, const std::string &done) {
        try {
            perform(action);
            tell_(action, "guard: " + done + ", left by the one before", false);
        } catch (const Error &error) {
            tell_(action, fmt::format("guard can't undo it: {}: {}", done, error.what()), true);
        }
    };
    for (std::string word; file >> word;) {
        std::uint64_t from = 0;
        std::uint64_t to = 0;
        Suspect suspect;

        if (word == "reserve") {
            // Somebody else may have set it since.
            if (file >> from >> to && connection_.module().status().reserve == to)
                undo({.step = GuardStep::reserve, .undo = true, .suspect = {}, .bytes = from},
                     "the reserve is " + format_size(from) + " again");
        } else if (std::getline(file >> std::ws, suspect.holder.path) &&
                   machine_.cgroups().exists(suspect.holder.path)) {
            undo({.step = GuardStep::freeze, .undo = true, .suspect = suspect},
                 printable(suspect.holder.path) + " is thawed");
        }
    }
    std::filesystem::remove(state_, ignored);
}

} // namespace umacct
