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
#include <nlohmann/json.hpp>
#include <pthread.h>
#include <sys/mman.h>

#include "lib/error.h"
#include "lib/history/sampler.h"
#include "lib/host/replace_file.h"
#include "lib/host/sqlite.h"
#include "lib/json.h"
#include "lib/machine.h"
#include "lib/text.h"
#include "service/thread.h"

namespace umacct {

namespace {

using namespace std::chrono_literals;
using history::Figure;
using history::Happening;
using history::milliseconds_of;
using history::Sample;
using history::Sampler;

/// Seconds that the disk may hang before samples are dropped.
constexpr std::size_t slots = 64;

/// SQLite's page cache, so that it allocates nothing while it writes.
constexpr int cached_pages = 384;
constexpr int cached_page_bytes = 4096 + 512;

constexpr auto save_again_after = 2s;

/// The account that holds most.
constexpr std::size_t most_largest = 1;
constexpr auto largest_lasts = 1s;

/// Largest age of a record: the log is read each second, and its clock differs a little.
constexpr std::int64_t most_ago_ms = 5000;
/// Records taken at most in a second.
constexpr int most_kills = 16;

/// SQLite's page cache, once and for all: it is not to grow where memory is out.
void give_pages(const Sqlite &lib) {
    static std::vector<char> pages(std::size_t{cached_pages} * cached_page_bytes);

    // Ignored if SQLite is in use already: it then allocates by itself.
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

/// Tells requests that "umacct verify" makes. No tenant makes a cgroup there.
bool is_of_verify(std::string_view path) {
    return path.starts_with("/umacct-verify-") || path.starts_with("/system.slice/umacct-verify-");
}

/// holder: the largest one of driver memory, stored where a limit is if the machine had no memory.
Happening happening_of(const LogRecord &record, const KernelKill &kill, const FirstHolder &holder) {
    const bool by_limit = !kill.limit_path.empty();
    const std::int64_t ago_ms =
        milliseconds_of(CLOCK_MONOTONIC) - static_cast<std::int64_t>(record.time_us / 1000);

    return {.time_ms =
                milliseconds_of(CLOCK_REALTIME) - std::clamp<std::int64_t>(ago_ms, 0, most_ago_ms),
            .type = by_limit ? "killed_at_limit" : "killed",
            .path = kill.path,
            .limit_path = by_limit ? kill.limit_path : holder.path,
            .comm = kill.name,
            .pid = kill.pid,
            .limit = by_limit ? 0 : holder.bytes};
}

void block_signals() {
    sigset_t all{};

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

} // namespace

Recorder::Recorder(Connection::Connect connect, std::filesystem::path proc,
                   std::filesystem::path root, Tell tell, FailureLog::Tell tell_failure,
                   Connection::Connect observe, FailureLog::Tell tell_step)
    : connect_(std::move(connect)),
      observe_(std::move(observe)),
      listener_(connect_),
      proc_(std::move(proc)),
      root_(std::move(root)),
      tell_(std::move(tell)),
      tell_step_(std::move(tell_step)),
      failures_(std::move(tell_failure)),
      steps_(history::KnownSteps::read(root_)) {}

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
    // Freed memory stays with the process, so that its loop needs none from the kernel when there
    // is none.
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
    mallopt(M_MMAP_THRESHOLD, 64 << 20);
    if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0)
        tell_("history: cannot lock umacctd's memory: " + std::generic_category().message(errno),
              true);
    {
        const std::lock_guard lock(mutex_);

        is_started_ = true;
    }
    writer_ = std::thread([this] { keep_doing("history", [this] { write(); }); });
    looker_ = std::thread([this] { keep_doing("history", [this] { look(); }); });
}

void Recorder::stop() {
    const std::lock_guard lock(mutex_);

    asked_to_end_ = true;
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

void Recorder::add(Happening happening, std::size_t most) {
    const std::lock_guard lock(mutex_);

    // Not needed unless a writer runs; storms are cut off.
    if (is_started_ && happenings_.size() < most)
        happenings_.push_back(std::move(happening));
}

/// Returns the accounts by size, read once for all failures of a second: a tenant can cause any
/// number of failures, and each answer is as long as the list of accounts.
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

        if (is_of_verify(event.path))
            continue;
        if (event.type == UMACCT_EVENT_FAILED) {
            holder = first_holder(largest(module)).value_or(FirstHolder());
            failures_.take(event, holder, FailureLog::Clock::now());
        }
        // The other half is for what no tenant causes at will.
        add(happening_of(event, holder), most_happenings / 2);
    }
}

/// Takes from the kernel's log of the last second which processes it killed, and how often the
/// driver complained.
void Recorder::take_kernel_log() {
    for (int taken = 0; taken < most_kills;) {
        const auto record = kernel_log_->next();
        if (!record)
            return;
        if (record->text.find(driver_complaint) != std::string::npos)
            ++complaints_;
        const auto kill = KernelKill::parse(record->text);
        if (!kill)
            continue;
        FirstHolder holder;
        try {
            holder = first_holder(largest(listener_.module())).value_or(FirstHolder());
        } catch (const Error &) { // NOLINT(bugprone-empty-catch): the holder stays empty
        }
        add(happening_of(*record, *kill, holder));
        ++taken;
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
        // Like ask_module().
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

void Recorder::set_floor(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);

    steps_.set_floor(bytes);
}

/// Says when an account's largest step has come to be more than what is left.
void Recorder::follow_steps(const Sample &sample) {
    std::optional<history::NextStep> next;
    {
        const std::lock_guard lock(mutex_);

        steps_.take(sample);
        next = steps_.ahead(sample);
    }
    if (!next)
        return;
    const std::string text = next->text();

    add({.time_ms = sample.time_ms,
         .type = "step_ahead",
         .path = next->steps.path,
         .size = next->longest(),
         .usage = next->left,
         .limit = next->reserve + next->floor,
         .text = text});
    if (tell_step_)
        tell_step_({{"type", "step_ahead"},
                    {"path", next->steps.path},
                    {"size_bytes", next->longest()},
                    {"seconds", history::step_seconds.back()},
                    {"left_bytes", next->left},
                    {"reserve_bytes", next->reserve},
                    {"floor_bytes", next->floor},
                    {"text", text}},
                   fmt::format("{} {}", printable(next->steps.path), text));
}

/// Writes them if they have changed. One that can't be written is with the next change.
void Recorder::keep_steps() {
    std::optional<history::KnownSteps> known;
    {
        const std::lock_guard lock(mutex_);

        known = steps_.changes();
    }
    if (known)
        static_cast<void>(replace_file(root_ / history::steps_file, known->text()));
}

void Recorder::look() {
    Connection connection(connect_, observe_);
    Sampler sampler(connection, proc_, root_);
    // A sample that there is no slot for shows that all goes on, too.
    Sample spare = Sampler::with_room();
    auto next = std::chrono::steady_clock::now();

    block_signals();
    kernel_log_.emplace(root_ / "dev/kmsg", KernelLog::From::end);
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
        take_kernel_log();
        sample.machine[Figure::complaints] = complaints_;
        try {
            sampler.take(sample);
            follow_steps(sample);
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
    if (std::exchange(reported_, line) != line)
        tell_(line, true);
}

void Recorder::write() {
    block_signals();
    try {
        const Sqlite lib(history::without_sqlite);
        std::optional<history::Writer> writer;
        Owners owners(root_, Cgroups(proc_));

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
                keep_steps();
                if (writer && !last && write_some(*writer))
                    writer->name_accounts([&](const std::string &path) {
                        owners.refresh();
                        const auto owner = owners.of(path);

                        return owner && owner->kind != OwnerKind::unit ? owner->label() : "";
                    });
                if (writer && last && asked_to_end_)
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
        if (happenings.size() > most_happenings)
            happenings.erase(happenings.begin() + most_happenings, happenings.end());
        std::swap(happenings, happenings_);
        throw;
    }
    lock.lock();
    full_ -= samples.size();
    return well;
}

} // namespace umacct
