// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/recorder.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <exception>
#include <span>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

#include "lib/error.h"
#include "lib/host/sqlite.h"
#include "lib/owners/owner.h"

namespace umacct {

namespace {

using namespace std::chrono_literals;
using history::Figure;
using history::Happening;
using history::Holding;
using history::Holdings;
using history::Sample;

constexpr auto interval = 1s;

/// For so many seconds the disk may hang before samples are dropped.
constexpr std::size_t slots = 64;
constexpr std::size_t most_happenings = 512;
/// Longer paths take memory when they come.
constexpr std::size_t path_room = 192;

/// Where more cgroups are, those of services, containers and sessions have to do.
constexpr std::size_t all_cgroups = 256;
/// Looking for cgroups takes a five-hundredth of the time at the most.
constexpr int walk_share = 500;

/// Accounts with less are left out, unless they have a limit.
constexpr std::uint64_t small = 1ULL << 20;
/// So many of the largest are asked how much of theirs is page cache.
constexpr std::size_t caches_read = 16;
constexpr std::uint64_t cache_worth = 16ULL << 20;

/// Of all that there is room for, so many are there because they grow.
constexpr std::size_t growers = 64;

/// What SQLite caches pages in, so that it asks nobody for memory while it writes.
constexpr int cached_pages = 384;
constexpr int cached_page_bytes = 4096 + 512;

constexpr auto retry_after = 2s;

std::int64_t milliseconds_of(clockid_t clock) {
    timespec time{};

    clock_gettime(clock, &time);
    return std::int64_t{time.tv_sec} * 1000 + time.tv_nsec / 1'000'000;
}

bool is_whole(std::string_view path) {
    const auto owner = owner_of(path);

    return owner && !(owner->kind == OwnerKind::unit && owner->id.ends_with(".slice"));
}

/// Page cache and slab that the kernel can take back.
std::uint64_t cache_of(const Cgroups &cgroups, const std::string &path) {
    const auto stat = cgroups.keyed(path, "memory.stat");
    std::uint64_t cache = 0;

    for (const char *key : {"active_file", "inactive_file", "slab_reclaimable"}) {
        const auto found = stat.find(key);

        cache += found == stat.end() ? 0 : found->second;
    }
    return cache;
}

/// SQLite's page cache, once and for all: it is not to grow where memory is out.
void give_pages(const Sqlite &lib) {
    static std::vector<char> pages(std::size_t{cached_pages} * cached_page_bytes);

    // Where something used it already, it takes what it needs by itself.
    lib.config(SQLITE_CONFIG_PAGECACHE, pages.data(), cached_page_bytes, cached_pages);
}

Happening happening_of(const Event &event) {
    return {.time_ms = static_cast<std::int64_t>(event.time_ns / 1'000'000),
            .type = std::string(name_of(event.type)),
            .path = event.path,
            .limit_path = event.limit_path,
            .comm = event.comm,
            .pid = event.pid,
            .size = event.size,
            .usage = event.usage,
            .limit = event.limit,
            .count = event.count};
}

void block_signals() {
    sigset_t all{};

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

} // namespace

// --- looks -----------------------------------------------------------------------

Sampler::Sampler(Connection::Connect connect, const std::filesystem::path &proc,
                 const std::filesystem::path &root)
    : connection_(std::move(connect)), machine_(proc, root) {
    candidates_.reserve(2 * all_cgroups);
    cgroups_.reserve(all_cgroups);
}

Sample Sampler::with_room() {
    Sample sample;

    sample.accounts.resize(most_accounts);
    for (Sample::Account &account : sample.accounts)
        account.path.reserve(path_room);
    return sample;
}

std::optional<Status> Sampler::ask_module() {
    try {
        Status status = connection_.module().status();

        accounts_ = connection_.module().accounts();
        return status;
    } catch (const Error &) {
        // It is asked anew the next time; umacctd's log has why it isn't there.
        connection_.reset();
        accounts_.clear();
        return std::nullopt;
    }
}

void Sampler::take(Sample &sample) {
    const std::optional<Status> asked = ask_module();
    const Status &status = asked ? *asked : Status();
    const Meminfo memory = machine_.meminfo(status);
    history::Figures &machine = sample.machine;

    sample.time_ms = milliseconds_of(CLOCK_REALTIME);
    sample.uptime_ms = milliseconds_of(CLOCK_BOOTTIME);
    machine[Figure::total] = memory.total();
    machine[Figure::free] = memory.free();
    machine[Figure::available] = memory.available();
    machine[Figure::obtainable] = status.available;
    machine[Figure::buffers] = memory.bytes("Buffers");
    machine[Figure::cached] = memory.bytes("Cached");
    machine[Figure::reclaimable] = memory.bytes("KReclaimable");
    machine[Figure::shared] = memory.bytes("Shmem");
    machine[Figure::swap_total] = memory.bytes("SwapTotal");
    machine[Figure::swap_free] = memory.bytes("SwapFree");
    machine[Figure::usage] = status.usage;
    machine[Figure::charged] = status.charged;
    machine[Figure::driver] = status.driver_usage;
    machine[Figure::managed] = status.managed;
    machine[Figure::metadata] = status.metadata;
    machine[Figure::untracked] = status.untracked;
    machine[Figure::pools] = status.pools.value_or(0);
    machine[Figure::reserve] = status.reserve;
    if (const auto pressure = machine_.pressure()) {
        machine[Figure::some_us] = pressure->some.total_us;
        machine[Figure::full_us] = pressure->full.total_us;
    }

    candidates_.clear();
    add_accounts();
    add_cgroups();
    read_caches();
    choose(sample);
}

void Sampler::add_accounts() {
    for (const Account &account : accounts_) {
        Candidate candidate{.id = account.id, .path = &account.path};
        Holdings &holdings = candidate.holdings;

        holdings[Holding::driver] = account.usage;
        holdings[Holding::charged] = account.charged;
        holdings[Holding::current] =
            memory_controller(machine_.cgroups(), account).current.value_or(0);
        holdings[Holding::hard] = account.hard.value_or(UMACCT_UNLIMITED);
        holdings[Holding::soft] = account.soft.value_or(UMACCT_UNLIMITED);
        holdings[Holding::refusals] = account.refusals;
        holdings[Holding::failures] = account.failures;
        candidate.limited = account.hard || account.soft;
        candidates_.push_back(candidate);
    }
}

void Sampler::walk() {
    const auto begin = std::chrono::steady_clock::now();
    std::size_t count = 0;

    if (begin < next_walk_)
        return;
    // Their paths keep their memory.
    const auto add = [&](const std::string &path) {
        std::uint64_t id = 0;

        try {
            id = machine_.cgroups().id(path);
        } catch (const Error &) {
            return;
        }
        if (count == cgroups_.size())
            cgroups_.emplace_back();
        cgroups_[count].path = path;
        cgroups_[count].id = id;
        ++count;
    };
    std::size_t all = 0;
    machine_.cgroups().for_each([&](const std::string &path) {
        if (++all <= all_cgroups || is_whole(path))
            add(path);
    });
    cgroups_.resize(count);
    const auto end = std::chrono::steady_clock::now();
    next_walk_ = end + std::max<std::chrono::steady_clock::duration>(interval / 2,
                                                                     walk_share * (end - begin));
}

void Sampler::add_cgroups() {
    const std::size_t accounts = candidates_.size();

    walk();
    std::sort(candidates_.begin(), candidates_.end(),
              [](const Candidate &a, const Candidate &b) { return a.id < b.id; });
    for (const Seen &cgroup : cgroups_) {
        const auto end = candidates_.begin() + static_cast<std::ptrdiff_t>(accounts);
        const auto known =
            std::lower_bound(candidates_.begin(), end, cgroup.id,
                             [](const Candidate &each, std::uint64_t id) { return each.id < id; });

        if (known != end && known->id == cgroup.id)
            continue;
        const auto current = machine_.cgroups().number(cgroup.path, "memory.current");
        if (!current)
            continue;
        Candidate candidate{.id = cgroup.id, .path = &cgroup.path};
        candidate.holdings[Holding::current] = *current;
        candidate.holdings[Holding::hard] = UMACCT_UNLIMITED;
        candidate.holdings[Holding::soft] = UMACCT_UNLIMITED;
        candidates_.push_back(candidate);
    }
}

void Sampler::read_caches() {
    std::sort(candidates_.begin(), candidates_.end(), [](const Candidate &a, const Candidate &b) {
        return a.holdings[Holding::current] > b.holdings[Holding::current];
    });
    for (std::size_t i = 0; i < std::min(candidates_.size(), caches_read); ++i) {
        if (candidates_[i].holdings[Holding::current] >= cache_worth)
            candidates_[i].holdings[Holding::cache] =
                cache_of(machine_.cgroups(), *candidates_[i].path);
    }
}

void Sampler::choose(Sample &sample) {
    std::erase_if(candidates_, [](const Candidate &each) {
        return !each.limited && history::held(each.holdings) < small;
    });
    const auto by_size = [](const Candidate &a, const Candidate &b) {
        return std::pair(a.limited, history::held(a.holdings)) >
               std::pair(b.limited, history::held(b.holdings));
    };
    std::sort(candidates_.begin(), candidates_.end(), by_size);
    if (candidates_.size() > most_accounts) {
        for (Candidate &each : candidates_) {
            const auto last = last_held_.find(each.id);
            const std::uint64_t now = history::held(each.holdings);

            each.grown = now - std::min(now, last == last_held_.end() ? 0 : last->second);
        }
        last_held_.clear();
        for (const Candidate &each : candidates_)
            last_held_[each.id] = history::held(each.holdings);
        std::sort(candidates_.begin() + (most_accounts - growers), candidates_.end(),
                  [](const Candidate &a, const Candidate &b) { return a.grown > b.grown; });
    }
    sample.count = std::min(candidates_.size(), most_accounts);
    for (std::size_t i = 0; i < sample.count; ++i) {
        Sample::Account &account = sample.accounts[i];

        account.id = candidates_[i].id;
        account.path.assign(*candidates_[i].path);
        account.holdings = candidates_[i].holdings;
    }
}

// --- keeps -----------------------------------------------------------------------

Recorder::Recorder(Connection::Connect connect, std::filesystem::path proc,
                   std::filesystem::path root, Tell tell)
    : connect_(std::move(connect)),
      listener_(connect_),
      proc_(std::move(proc)),
      root_(std::move(root)),
      tell_(std::move(tell)) {}

void Recorder::start() {
    std::error_code error;

    if (!std::filesystem::is_directory(root_ / history::folder, error)) {
        tell_(fmt::format("history: not recorded: there is no folder {}",
                          (root_ / history::folder).string()),
              false);
        return;
    }
    ring_.reserve(slots);
    for (std::size_t i = 0; i < slots; ++i)
        ring_.push_back(Sampler::with_room());
    happenings_.reserve(most_happenings);
    // What the loop once took from the heap stays with it, so that it asks the kernel for none
    // when there is none.
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
    mallopt(M_MMAP_THRESHOLD, 64 << 20);
    if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0)
        tell_("history: umacctd's memory can't be locked: " +
                  std::generic_category().message(errno),
              true);
    writer_ = std::thread([this] { write(); });
    looker_ = std::thread([this] { look(); });
}

void Recorder::stop() {
    const std::lock_guard lock(mutex_);

    told_to_end_ = true;
}

Recorder::~Recorder() {
    {
        const std::lock_guard lock(mutex_);

        ends_ = true;
    }
    changed_.notify_all();
    if (looker_.joinable())
        looker_.join();
    if (writer_.joinable())
        writer_.join();
}

void Recorder::add(Happening happening) {
    const std::lock_guard lock(mutex_);

    // Where nobody writes, nobody needs them; a storm of them is cut off.
    if (writer_.joinable() && happenings_.size() < most_happenings)
        happenings_.push_back(std::move(happening));
}

/// Takes the module's events of the last second; of a storm of them, as many as are kept. What is
/// lost of it is lost to the history alone.
void Recorder::listen() {
    try {
        Module &module = listener_.module();

        if (!std::exchange(listens_, true))
            module.subscribe();
        for (std::size_t taken = 0; taken < most_happenings;) {
            const Received<Event> batch = module.receive(0ms);

            for (const Event &event : batch.events)
                add(happening_of(event));
            taken += batch.events.size() + 1;
            if (batch.gone)
                throw Error(Failure::missing, "the module is gone");
            if (batch.none)
                return;
        }
    } catch (const Error &) {
        // As ask_module().
        listener_.reset();
        listens_ = false;
    }
}

void Recorder::add_step(std::string_view path, const std::string &line, bool failed) {
    add(Happening{.time_ms = milliseconds_of(CLOCK_REALTIME),
                  .type = failed ? "guard_failed" : "guard",
                  .path = std::string(path),
                  .text = line});
}

void Recorder::look() {
    Sampler sampler(connect_, proc_, root_);
    // A sample that there is no slot for shows that all goes on, too.
    Sample spare = Sampler::with_room();
    auto next = std::chrono::steady_clock::now();

    block_signals();
    std::unique_lock lock(mutex_);
    while (!ends_) {
        const bool has_slot = full_ < slots;
        Sample &sample = has_slot ? ring_[next_] : spare;
        bool taken = true;

        if (!has_slot)
            ++dropped_;
        sample.machine[Figure::dropped] = dropped_;
        lock.unlock();
        listen();
        try {
            sampler.take(sample);
        } catch (const Error &) {
            taken = false; // /proc/meminfo can't be read: the history has a gap
        }
        lock.lock();
        if (has_slot && taken) {
            next_ = (next_ + 1) % slots;
            ++full_;
            changed_.notify_all();
        }
        next = std::max(next + interval, std::chrono::steady_clock::now());
        changed_.wait_until(lock, next, [this] { return ends_; });
    }
}

void Recorder::tell_once(const std::string &line) {
    if (std::exchange(told_, line) != line)
        tell_(line, true);
}

void Recorder::write() {
    block_signals();
    try {
        const Sqlite lib(history::without_sqlite);
        std::optional<history::Writer> writer;
        Owners owners(root_);

        give_pages(lib);
        std::unique_lock lock(mutex_);
        while (true) {
            changed_.wait(lock, [this] { return ends_ || full_ > 0; });
            const bool last = ends_ && full_ == 0;
            lock.unlock();
            try {
                if (!writer && !last)
                    writer.emplace(
                        lib, root_ / history::folder / history::file_name, boot_id(proc_),
                        milliseconds_of(CLOCK_REALTIME) - milliseconds_of(CLOCK_BOOTTIME),
                        [this](const std::string &line) { tell_(line, true); });
                if (writer && !last && write_some(*writer))
                    writer->name_accounts([&](const std::string &path) {
                        owners.refresh();
                        const auto owner = owners.of(path);

                        return owner && owner->kind != OwnerKind::unit ? owner->label() : "";
                    });
                if (writer && last && told_to_end_)
                    writer->end();
            } catch (const std::exception &error) {
                tell_once(fmt::format("history: {}", error.what()));
                writer.reset();
                lock.lock();
                changed_.wait_for(lock, retry_after, [this] { return ends_; });
                if (ends_)
                    return;
                continue;
            }
            lock.lock();
            if (last)
                return;
        }
    } catch (const Error &error) {
        tell_once(fmt::format("history: not recorded: {}", error.what()));
    }
}

/// Whether there is memory for more than that.
bool Recorder::write_some(history::Writer &writer) {
    std::vector<const Sample *> samples;
    std::vector<Happening> happenings;
    std::unique_lock lock(mutex_);

    for (std::size_t i = full_; i > 0; --i)
        samples.push_back(&ring_[(next_ + slots - i) % slots]);
    happenings.reserve(most_happenings);
    std::swap(happenings, happenings_);
    lock.unlock();
    // The slots are the writer's until they are given back.
    const auto &machine = samples.back()->machine;
    const bool well = machine[Figure::available] > machine[Figure::total] / 16;
    try {
        writer.write(samples, happenings);
    } catch (...) {
        // They are written with what comes next.
        lock.lock();
        happenings.insert(happenings.end(), happenings_.begin(), happenings_.end());
        std::swap(happenings, happenings_);
        throw;
    }
    lock.lock();
    full_ -= samples.size();
    return well;
}

} // namespace umacct
