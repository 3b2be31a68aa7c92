// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/observer/observer.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/membarrier.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/observer.h"
#include "hooks/driver_versions.h"
#include "lib/arithmetic.h"
#include "lib/error.h"
#include "lib/hints.h"
#include "lib/host/cgroup.h"
#include "lib/host/clock.h"
#include "lib/host/file_descriptor.h"
#include "lib/host/library.h"
#include "lib/host/meminfo.h"
#include "lib/host/task.h"
#include "lib/host/text_file.h"
#include "lib/module/stand_in.h"
#include "lib/observer/maps.h"
extern "C" {
#include "bpf/start.h"
}

namespace umacct {

namespace {

namespace fs = std::filesystem;

constexpr const char *pinned_folder = "/sys/fs/bpf/umacct";
constexpr const char *lock_path = "/run/umacct-observer.lock";
constexpr const char *not_loaded = "the umacct kernel module is not loaded";
constexpr const char *load_it =
    "load it with 'modprobe umacct'; 'umacct doctor' says what is in the way";

constexpr std::array known_series = std::to_array<series>(KNOWN_SERIES);

#ifdef UMACCT_STATIC
/// A function of the observer's, which is linked in.
#define STARTER(function) (&(function))
#else
/// A function of the observer's, which is loaded.
#define STARTER(function) find<decltype(function)>(#function)

/// Programs are in bin or sbin, the library in lib/umacct beside that.
std::string library_path() {
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);

    return program.parent_path().parent_path() / "lib/umacct/libumacct-observer.so";
}
#endif

/// libumacct-observer.so, which has libbpf.
class Starter {
public:
    void begin(const char *folder, std::uint32_t records) const {
        std::array<char, 512> why{};
        auto *function = STARTER(umacct_observer_begin);

        if (function(folder, records, why.data(), why.size()) != 0)
            fail(why.data());
    }

    /// Counts until release(), or this process's end. Fills in the maps.
    observer *hold(observer_maps &maps, std::uint32_t records) const {
        std::array<char, 512> why{};
        auto *function = STARTER(umacct_observer_hold);
        observer *const held = function(records, &maps, why.data(), why.size());

        if (held == nullptr)
            fail(why.data());
        return held;
    }

    void release(observer *held) const {
        auto *function = STARTER(umacct_observer_release);

        function(held);
    }

    void end(const char *folder) const {
        auto *function = STARTER(umacct_observer_end);

        if (const int code = -function(folder); code != 0 && code != ENOENT)
            throw Error(failure_of(code), fmt::format("cannot remove {}: {}", folder,
                                                      std::generic_category().message(code)));
    }

private:
    [[noreturn]] static void fail(const char *why) {
        throw Error(
            Failure::missing,
            fmt::format("{}, and the observer can't count in its place: {}", not_loaded, why),
            load_it);
    }

#ifndef UMACCT_STATIC
    /// The error is that the module is missing, not the library.
    template <class Function>
    Function *find(const char *name) const {
        try {
            return library_.find(name);
        } catch (const Error &error) {
            throw Error(Failure::missing, error.what(), load_it);
        }
    }

    std::string path_ = library_path();
    Library library_{path_.c_str(), not_loaded};
#endif
};

/// The maps, and what keeps them.
class Maps {
public:
    Maps() = default;
    Maps(const Maps &) = delete;
    Maps &operator=(const Maps &) = delete;
    Maps(Maps &&) = delete;
    Maps &operator=(Maps &&) = delete;

    ~Maps() {
        if (held_ != nullptr)
            Starter().release(held_);
    }

    /// Those of an observer that counts from now on, for as long as they are kept. Throws Error.
    static std::unique_ptr<Maps> held() {
        auto maps = std::make_unique<Maps>();

        maps->held_ = Starter().hold(maps->at_, usual_records);
        return maps;
    }

    /// Those that are pinned; empty where there are none, not all of them, as a start is under way
    /// or was cut short, or such of another version.
    static std::unique_ptr<Maps> pinned() {
        auto maps = std::make_unique<Maps>();
        const auto open = [&](int &to, const char *name) {
            to = open_pinned_object(fmt::format("{}/{}", pinned_folder, name));
            maps->owned_.push_back(std::make_unique<FileDescriptor>(to));
            return to >= 0;
        };

        if (!open(maps->at_.accounts, "accounts") || !open(maps->at_.clients, "clients") ||
            !open(maps->at_.records, "records") || !open(maps->at_.totals, "totals") ||
            !open(maps->at_.hooks, "hooks") || !open(maps->at_.runs, "runs") ||
            maps->totals().version != OBSERVER_VERSION)
            return nullptr;
        return maps;
    }

    observer_totals totals() const {
        return map_value<std::uint32_t, observer_totals>(at_.totals, 0).value_or(observer_totals{});
    }

    const observer_maps &at() const { return at_; }

private:
    observer_maps at_{-1, -1, -1, -1, -1, -1};
    std::vector<std::unique_ptr<FileDescriptor>> owned_;
    observer *held_ = nullptr;
};

using OpenMaps = std::function<std::shared_ptr<const Maps>()>;

/// Maps have pids and cgroups as the machine has them, so a container's reader can't use them.
bool in_initial_pid_namespace() {
    constexpr std::uint64_t initial_pid_namespace = 0xeffffffc;

    struct stat self {};

    return stat("/proc/self/ns/pid", &self) == 0 && self.st_ino == initial_pid_namespace;
}

void check_caller() {
    if (geteuid() != 0)
        throw Error(Failure::permission, "cannot start or stop the observer: permission denied",
                    run_as_root);
    if (!in_initial_pid_namespace())
        throw Error(Failure::permission, "cannot start or stop the observer: this is a container");
}

/// Excludes other processes that pin or unpin the observer. The file isn't in bpffs, which may be
/// mounted meanwhile. A service that can't create it uses the existing one.
class Lock {
public:
    Lock() : file_(open(lock_path, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)) {
        if (file_.get() < 0) {
            error_ = errno;
            return;
        }
        do
            error_ = flock(file_.get(), LOCK_EX) == 0 ? 0 : errno;
        while (error_ == EINTR);
    }

    /// Throws Error where it isn't held.
    void check() const {
        if (error_ != 0)
            throw Error(failure_of(error_), fmt::format("cannot lock {}: {}", lock_path,
                                                        std::generic_category().message(error_)));
    }

private:
    FileDescriptor file_;
    int error_ = 0;
};

[[noreturn]] void refuse() {
    throw Error(Failure::missing,
                fmt::format("{}, and this takes it: the observer only counts", not_loaded),
                load_it);
}

using AccountRows = std::map<std::uint64_t, observer_account>;
using ClientRows = std::vector<std::pair<observer_client_key, observer_client>>;

/// The maps that a reader sees.
class View {
public:
    View(const Maps &maps, const Cgroups &cgroups) : maps_(maps), cgroups_(cgroups) {
        auto accounts = map_rows<std::uint64_t, observer_account>(maps.at().accounts);
        auto clients = map_rows<observer_client_key, observer_client>(maps.at().clients);

        if (!accounts || !clients)
            throw Error(Failure::failed, fmt::format("cannot read the observer's maps: {}",
                                                     std::generic_category().message(errno)));
        rows_ = AccountRows(accounts->begin(), accounts->end());
        rows_[OBSERVER_ROOT_ID] = maps.totals().root;
        clients_ = std::move(*clients);
        drop_idle();
    }

    /// Parents first.
    std::vector<Account> accounts() const {
        std::vector<Account> all;
        std::map<std::uint64_t, std::size_t> places;
        std::vector<std::uint64_t> removed;

        for (const auto &[id, row] : rows_) {
            std::optional<std::string> path;

            if (row.offline == 0)
                path = path_of(id);
            if (!path) {
                removed.push_back(id);
                continue;
            }
            places[id] = all.size();
            all.push_back(account(id, row, *path));
        }
        for (const std::uint64_t id : removed) {
            if (const auto to = places.find(owner_of(id)); to != places.end())
                all[to->second].local += rows_.at(id).local;
        }
        for (const auto &[key, row] : clients_) {
            if (const auto to = places.find(owner_of(key.account)); to != places.end())
                ++all[to->second].clients;
        }
        std::stable_sort(all.begin(), all.end(),
                         [](const Account &a, const Account &b) { return a.level < b.level; });
        return all;
    }

    std::vector<Client> clients() const {
        std::vector<Client> all;
        std::map<std::uint64_t, std::string> paths;

        for (const auto &[key, row] : clients_) {
            Client client;

            client.pid = key.tgid;
            client.start_time_ns = key.start_ns;
            client.comm.assign(row.comm, strnlen(row.comm, sizeof(row.comm)));
            client.account_id = owner_of(key.account);
            auto [path, fresh] = paths.try_emplace(client.account_id);
            if (fresh)
                path->second = path_of(client.account_id).value_or("/");
            client.path = path->second;
            client.usage = row.usage;
            client.peak = row.peak;
            client.charged = row.charged;
            client.managed = row.managed;
            client.metadata = row.metadata;
            client.pinned = row.pinned;
            client.allocs = row.allocs;
            client.frees = row.frees;
            client.records = static_cast<std::uint32_t>(row.records);
            client.exited = has_exited(key.tgid);
            client.exiting = row.records != 0 && !client.exited && is_exiting("/proc", key.tgid);
            all.push_back(std::move(client));
        }
        return all;
    }

    /// Whether an account is another one or below it.
    bool is_below(std::uint64_t id, std::uint64_t top) const {
        for (int depth = 0; id != 0 && depth <= OBSERVER_LEVEL_MAX; ++depth) {
            if (id == top)
                return true;
            const auto row = rows_.find(id);
            id = row == rows_.end() ? 0 : row->second.parent;
        }
        return false;
    }

    std::size_t account_count() const { return rows_.size(); }

    std::size_t client_count() const { return clients_.size(); }

    const AccountRows &rows() const { return rows_; }

    /// The id of the account that what an account holds is shown on: its own while its cgroup is
    /// there, then its nearest ancestor's.
    std::uint64_t owner_of(std::uint64_t id) const {
        for (int depth = 0; depth <= OBSERVER_LEVEL_MAX; ++depth) {
            const auto row = rows_.find(id);

            if (row == rows_.end())
                break;
            if (row->second.parent == 0 || (row->second.offline == 0 && path_of(id)))
                return id;
            id = row->second.parent;
        }
        return OBSERVER_ROOT_ID;
    }

    /// Empty when the cgroup is gone.
    std::optional<std::string> path_of(std::uint64_t id) const {
        const auto known = paths_.find(id);

        if (known != paths_.end())
            return known->second;
        return paths_[id] = find_path(id);
    }

private:
    /// Reads again: an account may have been made since the rows were read.
    bool is_over(std::uint64_t id) const {
        return id != OBSERVER_ROOT_ID &&
               !map_value<std::uint64_t, observer_account>(maps_.at().accounts, id);
    }

    static bool has_exited(std::uint32_t pid) {
        return kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH;
    }

    /// Those that hold nothing and never will: their process is gone, or, where there are many,
    /// the account is, which no cgroup has again. Any other may hold something by the next moment.
    void drop_idle() {
        const bool many = clients_.size() > OBSERVER_CLIENTS / 2;

        std::erase_if(clients_, [&](const auto &row) {
            const auto &[key, client] = row;
            const bool over =
                client.records == 0 && (has_exited(key.tgid) || (many && is_over(key.account)));

            if (over)
                map_erase(maps_.at().clients, row.first);
            return over;
        });
    }

    std::optional<std::string> find_path(std::uint64_t id) const {
        constexpr int by_kernfs_id = 0xfe;
        alignas(file_handle) std::array<std::byte, sizeof(file_handle) + sizeof(id)> room{};
        auto *handle = reinterpret_cast<file_handle *>(room.data());
        std::error_code error;

        if (id == OBSERVER_ROOT_ID)
            return "/";
        if (mount_.get() < 0)
            mount_.reset(open(cgroups_.mount().point.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        handle->handle_bytes = sizeof(id);
        handle->handle_type = by_kernfs_id;
        std::memcpy(handle->f_handle, &id, sizeof(id));
        const FileDescriptor file(
            open_by_handle_at(mount_.get(), handle, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (file.get() < 0)
            return std::nullopt;
        return cgroups_.path_of(
            fs::read_symlink(fmt::format("/proc/self/fd/{}", file.get()), error));
    }

    static Account account(std::uint64_t id, const observer_account &row, const std::string &path) {
        Account account;

        account.id = id;
        if (row.parent != 0)
            account.parent_id = row.parent;
        account.level = row.level;
        account.path = path;
        account.usage = row.usage;
        account.local = row.local;
        account.peak = row.peak;
        account.charged = row.charged;
        account.managed = row.managed;
        account.metadata = row.metadata;
        account.pinned = row.pinned;
        account.allocs = row.allocs;
        account.frees = row.frees;
        account.failures = row.failures;
        account.failed = row.failed;
        account.alloc_time_ns = row.alloc_time_ns;
        account.alloc_time_max_ns = row.alloc_time_max_ns;
        return account;
    }

    const Maps &maps_;
    const Cgroups &cgroups_;
    AccountRows rows_;
    ClientRows clients_;
    mutable FileDescriptor mount_{-1};
    mutable std::map<std::uint64_t, std::optional<std::string>> paths_;
};

/// Hits and misses of the kprobe events, by name.
using Profile = std::map<std::string, std::pair<std::uint64_t, std::uint64_t>>;

Profile read_profile() {
    Profile profile;

    for (const char *folder : {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}) {
        std::ifstream file(fs::path(folder) / "kprobe_profile");
        std::string name;
        std::uint64_t hits = 0;
        std::uint64_t misses = 0;

        while (file >> name >> hits >> misses)
            profile[name] = {hits, misses};
        if (!profile.empty())
            break;
    }
    return profile;
}

const series *series_of(unsigned int number) {
    const auto *found = std::ranges::find_if(known_series, [number](const series &each) {
        return number >= each.first && number <= each.last;
    });

    return found == known_series.end() ? nullptr : found;
}

/// Calls that the kernel didn't deliver to the programs. Figures are off by as many calls.
class Missed {
public:
    explicit Missed(const Maps &maps) : maps_(maps), profile_(read_profile()) {
        std::ranges::copy(maps.totals().missed_returns, leaked_.begin());
    }

    std::uint64_t calls(const observer_hook &row) const {
        const auto found = profile_.find(row.event);

        return found == profile_.end() ? 0 : found->second.first;
    }

    /// Name of a hook, by its index.
    std::uint64_t of(const observer_hook &row, std::uint32_t index) const {
        std::uint64_t missed = at(row.event, index, row.skipped[0]);

        if (row.has_return != 0) {
            const std::uint64_t returns =
                at(std::string(row.event) + "_ret", OBSERVER_HOOKS + index, row.skipped[1]);

            // The kernel's missed returns and our calls without an end are the same ones.
            missed += index < OBSERVER_CALLS ? std::max(returns, leaked_[index]) : returns;
        }
        return missed;
    }

private:
    using Leaked = std::array<std::uint64_t, OBSERVER_CALLS>;

    /// Returns the misses at an entry or a return: the kernel's count, and the hits at which the
    /// program did not run.
    std::uint64_t at(const std::string &event, std::uint32_t place, std::uint64_t skipped) const {
        const auto found = profile_.find(event);

        if (found == profile_.end())
            return 0;
        const auto [hits, missed] = found->second;
        const auto left_out = [&, hits = hits] {
            const std::uint64_t seen = skipped + sum_of_processors(maps_.at().runs, place);

            return without(hits, seen);
        };
        if (left_out() == 0)
            return missed;
        // A call may have been between the kernel's count and ours: it isn't after this.
        syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
        return missed + left_out();
    }

    const Maps &maps_;
    Profile profile_;
    Leaked leaked_{}; ///< calls without an observed end
};

/// The requests that fail from now on, as events. An account keeps how many of its requests failed,
/// and the newest of them: so one that fails over and over takes nothing from what another one has
/// to tell, and each reader has them all.
class Failures {
public:
    Failures(const Maps &maps, const View &view)
        : since_(maps.totals().since_ns), at_root_(maps.totals().root.failed), begin_(at_root_) {
        for (const auto &[id, row] : view.rows())
            told_[id] = row.failed_local;
    }

    /// Returns the start time of the observer that the events belong to.
    std::uint64_t since() const { return since_; }

    /// The number of the newest event.
    std::uint64_t sent() const { return sent_; }

    /// Returns the events that are due.
    std::vector<Event> look(const Maps &maps, const Cgroups &cgroups) {
        const std::uint64_t at_root = maps.totals().root.failed;
        std::vector<Event> events;

        if (std::exchange(at_root_, at_root) == at_root && waiting_.empty())
            return events;
        // Read after the root's total: no account's count can be smaller then.
        const View view(maps, cgroups);
        const auto now = Clock::now();
        std::map<std::uint64_t, Clock::time_point> waiting;
        std::map<std::uint64_t, std::uint64_t> told;
        std::uint64_t untold = 0;

        for (const auto &[id, row] : view.rows()) {
            // Some of the reported failures may have been taken back since.
            std::uint64_t &before = told[id] =
                std::min<std::uint64_t>(told_.contains(id) ? told_[id] : 0, row.failed_local);
            const std::uint64_t count = row.failed_local - before;

            if (count == 0)
                continue;
            const auto first = waiting_.contains(id) ? waiting_[id] : now;
            if (now - first < settles) {
                waiting[id] = first;
                untold += count;
                continue;
            }
            before = row.failed_local;
            total_ += count;
            events.push_back(event(view, id, row.newest, count));
        }
        waiting_ = std::move(waiting);
        told_ = std::move(told);
        number(events, without(without(at_root, begin_), total_ + untold));
        return events;
    }

private:
    using Clock = std::chrono::steady_clock;

    /// Whether a try was a request's last one shows when the next doesn't follow.
    static constexpr std::chrono::seconds settles{1};

    static Event event(const View &view, std::uint64_t id, const observer_failure &newest,
                       std::uint64_t count) {
        Event event;

        event.type = UMACCT_EVENT_FAILED;
        event.time_ns = since_epoch(newest.time_ns);
        event.account_id = view.owner_of(id);
        event.path = view.path_of(event.account_id).value_or("/");
        event.pid = newest.tgid;
        event.comm.assign(newest.comm, strnlen(newest.comm, sizeof(newest.comm)));
        event.size = newest.bytes;
        event.usage = newest.available;
        event.count = count;
        return event;
    }

    static std::uint64_t since_epoch(std::uint64_t since_start) {
        return now_ns(CLOCK_REALTIME) - without(now_ns(CLOCK_BOOTTIME), since_start);
    }

    /// Events of accounts that are gone leave a gap in the numbers.
    void number(std::vector<Event> &events, std::uint64_t lost) {
        sent_ += without(lost, lost_);
        lost_ = std::max(lost_, lost);
        for (Event &event : events)
            event.sequence = ++sent_;
    }

    std::uint64_t since_;
    std::uint64_t at_root_; ///< failed requests of all, as it was read before
    std::uint64_t begin_;   ///< the same, when this began
    std::uint64_t total_ = 0;
    std::uint64_t sent_ = 0;
    std::uint64_t lost_ = 0;
    std::map<std::uint64_t, std::uint64_t> told_;        ///< reported failures of each account
    std::map<std::uint64_t, Clock::time_point> waiting_; ///< time of an account's first unreported
                                                         ///< failure
};

class Observer : public Transport {
    using Clock = std::chrono::steady_clock;

public:
    explicit Observer(OpenMaps open) : open_(std::move(open)) {}

    Payload request(umacct_cmd command, const Payload &attributes) override {
        if (command == UMACCT_CMD_STATUS_GET)
            return encode(status(*open_()));
        if (command != UMACCT_CMD_ACCOUNT_GET)
            refuse();

        const auto id = decode<AccountRequest>(attributes).id;
        const auto maps = open_();
        const View view(*maps, cgroups_);
        for (const Account &account : view.accounts()) {
            if (account.id == id)
                return encode(account);
        }
        throw RequestError(ENOENT, "no such account", UMACCT_A_ACCOUNT_ID);
    }

    bool dump(umacct_cmd command, const Payload &attributes, const Take &take) override {
        const auto maps = open_();
        const View view(*maps, cgroups_);

        if (command == UMACCT_CMD_ACCOUNT_GET) {
            const auto top = decode<AccountRequest>(attributes).id;

            for (const Account &account : view.accounts()) {
                if (!top || view.is_below(account.id, *top))
                    take(encode(account));
            }
        } else {
            const auto asked = decode<ClientRequest>(attributes);

            for (const Client &client : view.clients()) {
                if ((!asked.account_id || view.is_below(client.account_id, *asked.account_id)) &&
                    (!asked.exiting || client.exiting))
                    take(encode(client));
            }
        }
        return false;
    }

    void subscribe() override {
        const auto maps = open_();

        failures_.emplace(*maps, View(*maps, cgroups_));
    }

    Received<Payload> receive(std::chrono::milliseconds timeout) override {
        constexpr std::chrono::seconds slice{1};
        Received<Payload> received;

        if (timeout >= std::chrono::milliseconds::zero())
            return receive_within(timeout);
        do
            received = receive_within(slice);
        while (received.none);
        return received;
    }

private:
    /// Failures are polled: no event announces them.
    Received<Payload> receive_within(std::chrono::milliseconds timeout) {
        constexpr Clock::duration look_interval = std::chrono::milliseconds(500);
        const auto end = Clock::now() + timeout;
        const auto maps = open_();
        Received<Payload> received;

        received.gone = !failures_ || failures_->since() != maps->totals().since_ns;
        while (!received.gone) {
            for (const Event &event : failures_->look(*maps, cgroups_))
                received.events.push_back(encode(event));
            const auto left = end - Clock::now();
            received.none = received.events.empty();
            if (!received.none || left <= Clock::duration::zero())
                break;
            std::this_thread::sleep_for(std::min<Clock::duration>(look_interval, left));
        }
        return received;
    }

    Status status(const Maps &maps) const {
        const observer_totals totals = maps.totals();
        const View view(maps, cgroups_);
        Status status;

        status.flags = UMACCT_STATUS_OBSERVER | UMACCT_STATUS_CGROUP_V2;
        if (line_of(cgroups_.mount().point / "cgroup.controllers").find("memory") !=
            std::string::npos)
            status.flags |= UMACCT_STATUS_MEMCG_V2;
        if (line_of("/proc/cmdline").find("nokmem") == std::string::npos)
            status.flags |= UMACCT_STATUS_KMEM;
        status.since_ns = totals.since_ns;
        status.usage = totals.root.usage;
        status.charged = totals.root.charged;
        status.managed = totals.root.managed;
        status.metadata = totals.root.metadata;
        status.driver_usage = totals.driver_usage;
        status.driver_peak = totals.driver_peak;
        status.untracked = totals.untracked;
        status.untracked_count = totals.untracked_count;
        status.stale_count = totals.stale_count;
        status.records = static_cast<std::uint32_t>(totals.records);
        status.accounts = static_cast<std::uint32_t>(view.account_count());
        status.clients = static_cast<std::uint32_t>(view.client_count());
        status.available = available();
        status.events_sent = failures_ ? failures_->sent() : 0;
        add_hooks(status, maps);
        add_drivers(status, totals);
        return status;
    }

    static std::uint64_t available() {
        std::ifstream file("/proc/meminfo");
        const Meminfo memory(file);

        return memory.available() - std::min(memory.available(), memory.bytes("CmaFree"));
    }

    static void add_hooks(Status &status, const Maps &maps) {
        const Missed missed(maps);

        for (std::uint32_t i = 0; i < OBSERVER_HOOKS; ++i) {
            const auto row = map_value<std::uint32_t, observer_hook>(maps.at().hooks, i);
            Hook hook;

            if (!row || row->name[0] == '\0')
                continue;
            const std::string module =
                std::string(row->symbol).substr(0, std::string(row->symbol).find(':'));
            hook.name = row->name;
            hook.symbol = row->symbol;
            hook.required = row->required != 0;
            if (row->error != 0) {
                hook.state = hook.required ? UMACCT_HOOK_FAILED : UMACCT_HOOK_OFF;
                hook.reason = std::generic_category().message(static_cast<int>(row->error));
            } else {
                hook.state =
                    module == "kernel" || is_loaded(module) ? UMACCT_HOOK_ARMED : UMACCT_HOOK_IDLE;
            }
            hook.calls = missed.calls(*row);
            hook.missed = missed.of(*row, i);
            status.hooks.push_back(std::move(hook));
        }
    }

    static bool is_loaded(const std::string &module) {
        std::error_code error;

        return fs::exists(fs::path("/sys/module") / module / "version", error);
    }

    static umacct_driver_state state_of(const Status &status, const std::string &module,
                                        unsigned int number) {
        if (!is_loaded(module))
            return UMACCT_DRIVER_ABSENT;
        if (series_of(number) == nullptr)
            return UMACCT_DRIVER_UNKNOWN;
        const bool failed = std::ranges::any_of(status.hooks, [&](const Hook &hook) {
            return hook.required && hook.state == UMACCT_HOOK_FAILED &&
                   hook.symbol.starts_with(module + ":");
        });
        return failed ? UMACCT_DRIVER_BROKEN : UMACCT_DRIVER_HOOKED;
    }

    static void add_drivers(Status &status, const observer_totals &totals) {
        status.driver_version = line_of("/sys/module/nvidia/version");
        status.driver_state = state_of(status, "nvidia", totals.nvidia_series);
        status.uvm_state = state_of(status, "nvidia_uvm", totals.uvm_series);
        if (status.driver_state == UMACCT_DRIVER_UNKNOWN)
            status.reason = fmt::format("nvidia {} is not a version that the observer knows",
                                        status.driver_version);
        else if (status.driver_state == UMACCT_DRIVER_BROKEN)
            status.reason = "a function of it could not be hooked";
        const series *known = series_of(totals.nvidia_series);
        if (known != nullptr && known->page_pools)
            status.flags |= UMACCT_STATUS_PAGE_POOLS;
        else if (known != nullptr)
            status.pools = 0;
    }

    OpenMaps open_;
    Cgroups cgroups_;
    std::optional<Failures> failures_; ///< empty until the first subscription
};

/// Opens the programs that are pinned now: they may be others than before, or gone.
std::shared_ptr<const Maps> open_pinned() {
    auto maps = Maps::pinned();

    if (!maps)
        throw Error(Failure::missing, not_loaded, load_it);
    return maps;
}

} // namespace

std::unique_ptr<Transport> pinned_observer() {
    if (!in_initial_pid_namespace() || !Maps::pinned())
        return nullptr;
    return until_loaded(std::make_unique<Observer>(open_pinned), connect_netlink);
}

std::unique_ptr<Transport> observer_meanwhile() {
    if (auto pinned = pinned_observer())
        return pinned;
    if (geteuid() != 0 || !in_initial_pid_namespace())
        return nullptr;
    return until_loaded(std::make_unique<Observer>(
                            [maps = std::shared_ptr<const Maps>(Maps::held())] { return maps; }),
                        connect_netlink);
}

void begin_observing(std::uint32_t records) {
    check_caller();
    const Lock lock;
    lock.check();
    if (Maps::pinned())
        return;

    const Starter starter;
    std::error_code error;
    // The maps of an older version can't be read, and an interrupted start lacks hooks.
    if (fs::exists(pinned_folder, error))
        starter.end(pinned_folder);
    starter.begin(pinned_folder, records);
}

void end_observing() {
    std::error_code error;

    if (!fs::exists(pinned_folder, error))
        return;
    // No lock file: no other process is starting the observer.
    const Lock lock;
    Starter().end(pinned_folder);
}

} // namespace umacct
