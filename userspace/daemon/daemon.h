// SPDX-License-Identifier: GPL-2.0-or-later
/// umacctd's loop: cgroups that appear, signals, the guard's looking, the module's coming and
/// going.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "daemon/enforcer.h"
#include "daemon/headroom.h"
#include "daemon/recorder.h"
#include "guard/guard_thread.h"
#include "lib/host/cgroup_watch.h"
#include "lib/host/umacctd.h"
#include "lib/machine.h"
#include "lib/module/announcements.h"
#include "lib/module/module.h"
#include "lib/policy/last_good.h"

namespace umacct {

/// The observer, which counts while the module isn't loaded.
struct Observing {
    Connection::Connect connect; ///< gives nothing where it doesn't run
    std::function<void()> end;   ///< it, and what it has counted. Throws Error.
};

class Daemon {
public:
    /// root: where /etc is, for the policy. Throws Error.
    Daemon(Connection::Connect connect, std::unique_ptr<Announcements> announcements,
           const std::filesystem::path &proc, const std::filesystem::path &root,
           Observing observing = {});

    /// Returns on SIGTERM or SIGINT. Throws Error.
    void run();

private:
    void take_changes();
    void take_signal(int signals);
    void reload();
    /// Runs every second: retries, and the watchdog's ping.
    void tick();
    /// The module comes and goes.
    void take_announcements();
    void connect();
    void disconnect();
    /// The observer comes and goes.
    void look_for_observer();
    /// The module counts from now on: the observer ends.
    void take_over();
    std::optional<Status> ask_observer() const;
    /// Returns the parts of a policy that this machine would refuse, or that can never match.
    std::vector<Diagnostic> problems_of(const Policy &policy) const;
    void set_guard();
    /// The policy of /etc; where that is wrong, the last that was good. Throws PolicyError.
    Policy first_policy();
    /// Keeps the texts of the policy that is in force from now on.
    void keep(const std::vector<PolicyText> &texts);
    /// "3 rules in force", and what is the matter with that.
    std::string state() const;
    template <class Work>
    void unless_it_goes(Work work);
    /// Applies the policy's headroom.
    void set_headroom();
    std::chrono::milliseconds patience() const;

    Observing observing_;
    Instance instance_;
    EventFile events_;
    std::unique_ptr<Announcements> announcements_;
    Recorder recorder_;
    Connection connection_;
    Machine machine_;
    LastGood last_good_;
    bool is_last_good_ = false; ///< the policy is an older one, as that of /etc is wrong
    Enforcer enforcer_;
    GuardThread guard_;
    CgroupWatch watch_;
    Headroom headroom_;
    bool connected_ = false;
    bool missing_ = false;  ///< there is no module, until it is announced
    bool observes_ = false; ///< there is no module, and the observer counts
    bool told_missing_ = false;
    bool told_overrun_ = false;
    bool stopping_ = false;
    Enforcer::Clock::time_point next_tick_{};
};

} // namespace umacct
