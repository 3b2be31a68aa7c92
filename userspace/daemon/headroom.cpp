// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/headroom.h"

#include <fstream>
#include <utility>

#include <fmt/format.h>

#include "lib/arithmetic.h"
#include "lib/error.h"
#include "lib/host/meminfo.h"
#include "lib/memory/reclaim.h"
#include "lib/units.h"
#include "service/thread.h"

namespace umacct {

namespace {

using namespace std::chrono_literals;

/// Interval for figures that change seldom: watermarks, and memory for devices.
constexpr auto whole_reading = 10s;

/// Interval when nothing can be done at all.
constexpr auto after_failure = 30s;

/// How long some task waited for memory; 0 on a kernel that doesn't tell.
std::chrono::microseconds stalled_time(const std::filesystem::path &proc) {
    std::ifstream file(proc / "pressure/memory");
    const auto pressure = Pressure::read(file);

    return std::chrono::microseconds(pressure ? pressure->some.total_us : 0);
}

std::uint64_t refaults(const std::filesystem::path &proc) {
    std::ifstream file(proc / "vmstat");
    std::uint64_t value = 0;

    for (std::string key; file >> key >> value;) {
        if (key == "workingset_refault_file")
            return value;
    }
    return 0;
}

} // namespace

class Headroom::Work {
public:
    Work(const Headroom &headroom, const HeadroomSettings &settings)
        : proc_(headroom.proc_),
          tell_(headroom.tell_),
          settings_(settings),
          cgroups_(headroom.proc_),
          reclaimer_(cgroups_, headroom.proc_, headroom.root_, settings.anonymous),
          keeper_(settings.bytes, settings.block) {}

    /// How long to wait for the next.
    std::chrono::milliseconds turn() {
        look();

        const bool works = keeper_.fills() || state_ != Keeper::State::kept ||
                           !shortfall(keeper_.kept(), *zones_).none();
        const Keeper::Turn turn =
            keeper_.next({.time = Clock::now(),
                          .zones = *zones_,
                          .stalled = works ? stalled_time(proc_) : std::chrono::microseconds{},
                          .refaults = works ? refaults(proc_) : 0});
        if (turn.step.action == Refill::Action::reclaim)
            reclaim(turn.step.bytes);
        else if (turn.step.action == Refill::Action::compact)
            compact();
        tell(turn.state);
        return turn.wait;
    }

private:
    using Clock = Keeper::Clock;

    void look() {
        if (!zones_ || Clock::now() >= whole_at_) {
            zones_ = Zones::read(proc_);
            whole_at_ = Clock::now() + whole_reading;
        } else {
            zones_->refresh(proc_);
        }
    }

    void reclaim(std::uint64_t bytes) {
        const auto start = Clock::now();
        const std::uint64_t before = zones_->usable();
        const bool all = reclaimer_.reclaim(bytes);

        zones_->refresh(proc_);
        const std::uint64_t after = zones_->usable();
        reclaimed_ += without(after, before) * page_size();
        keeper_.reclaimed(
            all, bytes / page_size(),
            std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start));
    }

    void compact() {
        reclaimer_.compact();
        ++compactions_;
    }

    void tell(Keeper::State state) {
        if (std::exchange(state_, state) == state || state == Keeper::State::fills)
            return;
        // Logs the work between the last full state and now.
        if (state == told_ && reclaimed_ < settings_.bytes / 8 && compactions_ == 0)
            return;
        const std::uint64_t free =
            (zones_->usable_blocks(keeper_.kept().order) << keeper_.kept().order) * page_size();
        tell_(fmt::format("headroom: {}; {} are free in blocks of {}, {} of page cache given back, "
                          "{} compactions",
                          state == Keeper::State::kept ? "kept"
                          : state == Keeper::State::yields
                              ? "backs off, as other tasks are stalled on memory"
                              : "cannot reach the target",
                          format_size(free), format_size(settings_.block), format_size(reclaimed_),
                          compactions_));
        told_ = state;
        reclaimed_ = 0;
        compactions_ = 0;
    }

    const std::filesystem::path &proc_;
    const Tell &tell_;
    HeadroomSettings settings_;
    Cgroups cgroups_;
    Reclaimer reclaimer_;
    Keeper keeper_;
    std::optional<Zones> zones_;
    Clock::time_point whole_at_{};
    Keeper::State state_ = Keeper::State::fills;
    std::optional<Keeper::State> told_;
    std::uint64_t reclaimed_ = 0; ///< time since the last line
    std::uint64_t compactions_ = 0;
};

Headroom::Headroom(std::filesystem::path proc, std::filesystem::path root, Tell tell)
    : proc_(std::move(proc)), root_(std::move(root)), tell_(std::move(tell)) {}

Headroom::~Headroom() {
    {
        const std::lock_guard lock(mutex_);

        ends_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable())
        thread_.join();
}

void Headroom::set(const HeadroomSettings &settings) {
    {
        const std::lock_guard lock(mutex_);

        if (settings == settings_)
            return;
        tell_(fmt::format("headroom {} -> {}",
                          settings_.bytes == 0 ? "off" : format_size(settings_.bytes),
                          settings.bytes == 0 ? "off" : format_size(settings.bytes)));
        settings_ = settings;
        ++generation_;
    }
    changed_.notify_all();
    if (!thread_.joinable())
        thread_ = std::thread([this] { keep_doing("headroom", [this] { run(); }); });
}

void Headroom::run() {
    std::unique_lock lock(mutex_);

    while (!ends_) {
        const std::uint64_t generation = generation_;
        const HeadroomSettings settings = settings_;
        const auto other = [&] { return ends_ || generation_ != generation; };

        if (settings.bytes == 0) {
            changed_.wait(lock, other);
            continue;
        }
        Work work(*this, settings);
        std::string told;
        while (!other()) {
            std::chrono::milliseconds wait = after_failure;

            lock.unlock();
            try {
                wait = work.turn();
            } catch (const Error &error) {
                std::string line = fmt::format("headroom: {}{}{}", error.what(),
                                               error.hint().empty() ? "" : "; ", error.hint());

                if (line != told)
                    tell_(line);
                told = std::move(line);
            }
            lock.lock();
            if (wait > 0ms)
                changed_.wait_for(lock, wait, other);
        }
    }
}

} // namespace umacct
