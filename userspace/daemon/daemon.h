// SPDX-License-Identifier: GPL-2.0-or-later
/// umacctd's loop: cgroups that appear, signals, the guard's looking, the module's coming and
/// going.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "daemon/enforcer.h"
#include "daemon/guard_host.h"
#include "daemon/headroom.h"
#include "lib/host/cgroup_watch.h"
#include "lib/host/umacctd.h"
#include "lib/machine.h"
#include "lib/module/module.h"

namespace umacct {

class Daemon {
public:
    /// root: where /etc is, for the policy. Throws Error.
    Daemon(Connection::Connect connect, const std::filesystem::path &proc,
           const std::filesystem::path &root);

    /// Until SIGTERM or SIGINT. Throws Error.
    void run();

private:
    void take_changes();
    void take_signal(int signals);
    void reload();
    /// What is to be looked at every second: the module, and that we live.
    void tick();
    void take_events();
    void connect();
    void disconnect();
    /// What of it this machine would refuse, or could never match.
    std::vector<Diagnostic> problems_of(const Policy &policy) const;
    void set_guard();
    void run_guard();
    template <class Work>
    void unless_it_goes(Work work);
    /// As the policy says.
    void set_headroom();
    std::chrono::milliseconds patience() const;

    Instance instance_;
    EventFile events_;
    Connection connection_;
    Machine machine_;
    Enforcer enforcer_;
    GuardHost guard_;
    CgroupWatch watch_;
    Headroom headroom_;
    bool connected_ = false;
    bool told_missing_ = false;
    bool stopping_ = false;
    Enforcer::Clock::time_point next_tick_{};
};

} // namespace umacct
