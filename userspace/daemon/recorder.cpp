// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/recorder.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <exception>
#include <functional>
#include <span>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

#include "lib/error.h"
#include "lib/history/sampler.h"
#include "lib/host/sqlite.h"
#include "lib/machine.h"

namespace umacct {

namespace {

using namespace std::chrono_literals;
using history::Figure;
using history::Happening;
using history::milliseconds_of;
using history::Sample;
using history::Sampler;

/// For so many seconds the disk may hang before samples are dropped.
constexpr std::size_t slots = 64;
constexpr std::size_t most_happenings = 512;

/// What SQLite caches pages in, so that it asks nobody for memory while it writes.
constexpr int cached_pages = 384;
constexpr int cached_page_bytes = 4096 + 512;

constexpr auto save_again_after = 2s;

/// The account that holds most, and the next one: the first may be the one that asks.
constexpr std::size_t most_largest = 2;
constexpr auto largest_lasts = 1s;

/// SQLite's page cache, once and for all: it is not to grow where memory is out.
void give_pages(const Sqlite &lib) {
    static std::vector<char> pages(std::size_t{cached_pages} * cached_page_bytes);

    // Where something used it already, it takes what it needs by itself.
    lib.config(SQLITE_CONFIG_PAGECACHE, pages.data(), cached_page_bytes, cached_pages);
}

/// holder: of a request that failed; it lies where a limit does.
Happening happening_of(const Event &event, const FirstHolder &holder) {
    const bool failed = event.type == UMACCT_EVENT_FAILED;

    return {.time_ms = static_cast<std::int64_t>(event.time_ns / 1'000'000),
            .type = std::string(name_of(event.type)),
            .path = event.path,
            .limit_path = failed ? holder.path : event.limit_path,
            .comm = event.comm,
            .pid = event.pid,
            .size = event.size,
            .usage = event.usage,
            .limit = failed ? holder.bytes : event.limit,
            .count = event.count};
}

void block_signals() {
    sigset_t all{};

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

} // namespace

Recorder::Recorder(Connection::Connect connect, std::filesystem::path proc,
                   std::filesystem::path root, Tell tell, FailureLog::Tell tell_failure,
                   Connection::Connect observe)
    : connect_(std::move(connect)),
      observe_(std::move(observe)),
      listener_(connect_),
      proc_(std::move(proc)),
      root_(std::move(root)),
      tell_(std::move(tell)),
      failures_(std::move(tell_failure)) {}

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
        tell_("history: cannot lock umacctd's memory: " + std::generic_category().message(errno),
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

/// Who holds most, asked once for all that failed in a second: a tenant's requests may fail as
/// often as it likes, and each answer is as long as the list of accounts.
const std::vector<Account> &Recorder::largest(Module &module) {
    const auto now = std::chrono::steady_clock::now();

    if (largest_until_ > now)
        return largest_;
    module.for_each_account([this] { largest_.clear(); },
                            [this](Account account) {
                                const auto at = std::ranges::upper_bound(
                                    largest_, account.local, std::greater<>(), &Account::local);

                                largest_.insert(at, std::move(account));
                                if (largest_.size() > most_largest)
                                    largest_.pop_back();
                            });
    largest_until_ = now + largest_lasts;
    return largest_;
}

void Recorder::take_events(Module &module, const std::vector<Event> &events) {
    for (const Event &event : events) {
        FirstHolder holder;

        if (event.type == UMACCT_EVENT_FAILED) {
            holder = first_holder(largest(module), event.account_id).value_or(FirstHolder());
            failures_.take(event, holder, FailureLog::Clock::now());
        }
        add(happening_of(event, holder));
    }
}

/// Takes the module's events of the last second; of a storm of them, as many as are kept. What is
/// lost of it is lost to the history alone.
void Recorder::listen() {
    try {
        Module &module = listener_.module();

        failures_.look(FailureLog::Clock::now());
        if (!std::exchange(listens_, true))
            module.subscribe();
        for (std::size_t taken = 0; taken < most_happenings;) {
            const Received<Event> batch = module.receive(0ms);

            take_events(module, batch.events);
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
    Connection connection(connect_, observe_);
    Sampler sampler(connection, proc_, root_);
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
        next = std::max(next + history::sample_interval, std::chrono::steady_clock::now());
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
                changed_.wait_for(lock, save_again_after, [this] { return ends_; });
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
