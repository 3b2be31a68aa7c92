// SPDX-License-Identifier: GPL-2.0-or-later
/// The guard in a thread of its own, with a connection of its own: however many cgroups come and
/// go, and however long it takes to set their limits, it looks when it is due.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>

#include "guard/guard_host.h"
#include "service/thread.h"

namespace umacct {

class GuardThread {
public:
    /// tell is called from the thread. observe: who counts where the module isn't loaded; may be
    /// empty.
    GuardThread(Connection::Connect connect, std::filesystem::path proc, std::filesystem::path root,
                GuardHost::Tell tell, Connection::Connect observe = {});
    GuardThread(const GuardThread &) = delete;
    GuardThread &operator=(const GuardThread &) = delete;
    GuardThread(GuardThread &&) = delete;
    GuardThread &operator=(GuardThread &&) = delete;
    /// Undoes all that was done.
    ~GuardThread();

    /// Applies that policy from then on; without one, the guard does nothing. reserve: as for
    /// GuardHost. Signals are delivered to the first caller.
    void set(const std::optional<GuardPolicy> &policy, std::uint64_t reserve);

    /// Sets whether the module or the observer answers. If neither does, the guard is blind and
    /// thaws all cgroups.
    void module_is(bool there);

    /// Undoes all that was done, and waits until it is; it looks again after set().
    void pause();

    /// Returns whether one look has lasted so long that the thread is stuck.
    bool is_stuck() const { return heartbeat_.is_stuck(longest_turn); }

private:
    /// Requested state of the thread.
    struct Wanted {
        std::optional<GuardPolicy> policy;
        std::uint64_t reserve = 0; ///< the one that other orders ask for
        bool there = false;
        bool paused = false;
        bool ends = false;

        bool acts() const { return there && !paused && !ends; }
    };

    void run();
    /// Asks for something else than before.
    template <class Change>
    void want(Change change);
    /// Whether it went well.
    bool turn(GuardHost &host, Connection &connection, const Wanted &wanted, bool is_new);

    Connection::Connect connect_;
    Connection::Connect observe_;
    std::filesystem::path proc_;
    std::filesystem::path root_;
    GuardHost::Tell tell_;
    static constexpr std::chrono::seconds longest_turn{20};

    Heartbeat heartbeat_;
    int failures_ = 0; ///< one after the other; the thread's own
    std::mutex mutex_;
    std::condition_variable changed_;
    Wanted wanted_;              ///< guarded by mutex_, like the two below
    std::uint64_t asked_ = 0;    ///< how often something else was wanted
    std::uint64_t answered_ = 0; ///< up to where that is so
    std::thread thread_;
};

} // namespace umacct
