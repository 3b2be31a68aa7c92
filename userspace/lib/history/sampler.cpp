// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/history/sampler.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "lib/arithmetic.h"
#include "lib/error.h"
#include "lib/host/clock.h"
#include "lib/owners/owner.h"

namespace umacct::history {

namespace {

/// Longer paths take memory when they come.
constexpr std::size_t path_room = 192;
/// Longer ones are asked for once more, of those few that are recorded: of many thousands that a
/// tenant makes they would be 60 MiB.
constexpr std::size_t path_kept = 512;

/// Number of cgroups above which only those of services, containers and sessions are sampled.
constexpr std::size_t all_cgroups = 256;
/// Looking for cgroups takes at most a five-hundredth of the time.
constexpr int walk_share = 500;

/// Accounts with less are left out, unless they have a limit.
constexpr std::uint64_t small = 1ULL << 20;
/// Number of the largest accounts whose page cache is read.
constexpr std::size_t caches_read = 16;
constexpr std::uint64_t cache_worth = 16ULL << 20;
/// The same of swap, where some is in use.
constexpr std::size_t swaps_read = 192;

/// Places in a sample that are kept for the fastest growing accounts.
constexpr std::size_t growers = 64;

bool is_whole(std::string_view path) {
    const auto owner = owner_of(path);

    return owner && !(owner->kind == OwnerKind::unit && owner->id.ends_with(".slice"));
}

} // namespace

std::int64_t milliseconds_of(clockid_t clock) {
    return static_cast<std::int64_t>(now_ns(clock) / 1'000'000);
}

Sampler::Sampler(Connection &connection, const std::filesystem::path &proc,
                 const std::filesystem::path &root)
    : connection_(connection), machine_(proc, root) {
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

        connection_.module().for_each_account([this] { count_ = 0; },
                                              [this](const Account &account) { count(account); });
        return status;
    } catch (const Error &) {
        // Tried again the next time; the reason is in umacctd's log.
        connection_.reset();
        count_ = 0;
        return std::nullopt;
    }
}

void Sampler::take(Sample &sample) {
    const std::optional<Status> asked = ask_module();
    const Status &status = asked ? *asked : Status();
    const Meminfo memory = machine_.meminfo(status);
    Figures &machine = sample.machine;

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
    read_swap(machine);
    choose(sample);
}

/// Their paths keep their memory.
void Sampler::count(const Account &account) {
    if (count_ == accounts_.size())
        accounts_.emplace_back();
    Counted &counted = accounts_[count_++];
    Holdings &holdings = counted.holdings;

    counted.path.assign(account.path.size() > path_kept ? "" : account.path);
    counted.id = account.id;
    holdings = {};
    holdings[Holding::driver] = account.usage;
    holdings[Holding::charged] = account.charged;
    holdings[Holding::current] = memory_controller(machine_.cgroups(), account).current.value_or(0);
    holdings[Holding::hard] = account.hard.value_or(UMACCT_UNLIMITED);
    holdings[Holding::soft] = account.soft.value_or(UMACCT_UNLIMITED);
    holdings[Holding::refusals] = account.refusals;
    holdings[Holding::failures] = account.failures;
}

void Sampler::add_accounts() {
    for (std::size_t i = 0; i < count_; ++i) {
        const Counted &counted = accounts_[i];

        candidates_.push_back({.id = counted.id,
                               .path = counted.path.empty() ? nullptr : &counted.path,
                               .holdings = counted.holdings,
                               .limited = counted.holdings[Holding::hard] != UMACCT_UNLIMITED ||
                                          counted.holdings[Holding::soft] != UMACCT_UNLIMITED});
    }
}

std::string Sampler::path_of(const Candidate &candidate) {
    if (candidate.path != nullptr)
        return *candidate.path;
    try {
        const auto account = connection_.module().account(candidate.id);

        return account ? account->path : "";
    } catch (const Error &) {
        connection_.reset();
        return "";
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
        if (path.size() <= path_kept && (++all <= all_cgroups || is_whole(path)))
            add(path);
    });
    cgroups_.resize(count);
    const auto end = std::chrono::steady_clock::now();
    next_walk_ = end + std::max<std::chrono::steady_clock::duration>(sample_interval / 2,
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
        Candidate &candidate = candidates_[i];

        if (candidate.holdings[Holding::current] < cache_worth)
            continue;
        if (const std::string path = path_of(candidate); !path.empty())
            candidate.holdings[Holding::cache] =
                cache_of(machine_.cgroups().keyed(path, "memory.stat"));
    }
}

/// Those are the first that hold most, as read_caches() left them.
void Sampler::read_swap(const Figures &machine) {
    if (machine[Figure::swap_free] == machine[Figure::swap_total])
        return;
    for (std::size_t i = 0; i < std::min(candidates_.size(), swaps_read); ++i) {
        Candidate &candidate = candidates_[i];

        if (const std::string path = path_of(candidate); !path.empty())
            candidate.holdings[Holding::swap] =
                machine_.cgroups().number(path, "memory.swap.current").value_or(0);
    }
}

void Sampler::choose(Sample &sample) {
    std::erase_if(candidates_, [](const Candidate &each) {
        return !each.limited && held(each.holdings) + each.holdings[Holding::swap] < small;
    });
    const auto by_size = [](const Candidate &a, const Candidate &b) {
        const auto size = [](const Candidate &each) {
            return held(each.holdings) + each.holdings[Holding::swap];
        };

        return std::pair(a.limited, size(a)) > std::pair(b.limited, size(b));
    };
    std::sort(candidates_.begin(), candidates_.end(), by_size);
    if (candidates_.size() > most_accounts) {
        for (Candidate &each : candidates_) {
            const auto last = last_held_.find(each.id);
            const std::uint64_t now = held(each.holdings);

            each.grown = without(now, last == last_held_.end() ? 0 : last->second);
        }
        last_held_.clear();
        for (const Candidate &each : candidates_)
            last_held_[each.id] = held(each.holdings);
        std::sort(candidates_.begin() + (most_accounts - growers), candidates_.end(),
                  [](const Candidate &a, const Candidate &b) { return a.grown > b.grown; });
    }
    sample.count = 0;
    for (std::size_t i = 0; i < std::min(candidates_.size(), most_accounts); ++i) {
        Sample::Account &account = sample.accounts[sample.count];
        const Candidate &candidate = candidates_[i];

        if (candidate.path != nullptr)
            account.path.assign(*candidate.path);
        else
            account.path = path_of(candidate);
        account.id = candidate.id;
        account.holdings = candidate.holdings;
        sample.count += account.path.empty() ? 0 : 1;
    }
}

} // namespace umacct::history
