// SPDX-License-Identifier: GPL-2.0-or-later
/// Keeps memory free before it is requested, in a thread of its own: to give back and to
/// compact takes time, in which limits are kept nevertheless.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "lib/host/cgroup.h"
#include "lib/memory/keeper.h"

namespace umacct {

/// The policy's settings of headroom.
struct HeadroomSettings {
    std::uint64_t bytes = 0; ///< 0: off
    std::uint64_t block = default_block;
    bool anonymous = false; ///< programs' memory may be swapped for it

    bool operator==(const HeadroomSettings &) const = default;
};

class Headroom {
public:
    /// Takes a line about what it does; from its thread.
    using Tell = std::function<void(const std::string &line)>;

    Headroom(std::filesystem::path proc, std::filesystem::path root, Tell tell);
    Headroom(const Headroom &) = delete;
    Headroom &operator=(const Headroom &) = delete;
    Headroom(Headroom &&) = delete;
    Headroom &operator=(Headroom &&) = delete;
    /// Waits for a step that is being made.
    ~Headroom();

    /// Applies from then on. Signals are delivered to the first caller.
    void set(const HeadroomSettings &settings);

private:
    /// State of one setting's work between its turns.
    class Work;

    void run();

    std::filesystem::path proc_;
    std::filesystem::path root_;
    Tell tell_;
    std::mutex mutex_;
    std::condition_variable changed_;
    HeadroomSettings settings_;    ///< guarded by mutex_, like the two below
    std::uint64_t generation_ = 0; ///< how often it was set
    bool ends_ = false;
    std::thread thread_;
};

} // namespace umacct
