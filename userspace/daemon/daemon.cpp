// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/daemon.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/json.h"
#include "lib/policy/validate.h"
#include "lib/units.h"
#include "service/log.h"
#include "service/signals.h"

namespace umacct {

namespace {

using namespace std::chrono_literals;

constexpr auto tick_interval = 1s;

constexpr const char *unloaded = "the module was unloaded, and all limits with it";

/// Ids of the guard's steps, the driver's failures, steps that may come and the policy's changes in
/// the journal:
/// "journalctl MESSAGE_ID=...".
constexpr const char *guard_message = "7ad2c1c8b0f14f0d9a7e5f2b61c3d940";
constexpr const char *failure_message = "1f5e7d0c9ab54c6f8e2d4a3b70c61e58";
constexpr const char *step_message = "5d0e94a7c2b34f4c9b6a1f83e7d2c059";
constexpr const char *policy_message = "c3f0a45ed2b84d0f8f52be0b7d1f9a16";

bool is_due(const std::optional<Enforcer::Clock::time_point> &time) {
    return time && *time <= Enforcer::Clock::now();
}

/// Sends one line for "systemctl status".
void tell_state(const std::string &state) {
    sd_notifyf(0, "STATUS=%s", state.substr(0, state.find('\n')).c_str());
}

std::string rules_of(const Policy &policy) {
    return fmt::format("{} rule{}", policy.rules.size(), policy.rules.size() == 1 ? "" : "s");
}

/// Names the parts of a policy that only the module can apply: "3 rules and the reserve wait";
/// empty if there are none.
std::string needs_module(const Policy &policy) {
    std::vector<std::string> parts;
    std::string text;

    if (!policy.rules.empty())
        parts.push_back(rules_of(policy));
    if (policy.reserve)
        parts.emplace_back("the reserve");
    if (policy.charge)
        parts.emplace_back("charging");
    if (policy.view)
        parts.emplace_back("the view");
    if (policy.guard && std::ranges::count(policy.guard->steps, GuardStep::reserve) > 0)
        parts.emplace_back("the guard's step 'reserve'");
    for (std::size_t i = 0; i < parts.size(); ++i)
        text += fmt::format("{}{}", i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ", parts[i]);
    if (text.empty())
        return text;
    return fmt::format("{} {}", text,
                       parts.size() == 1 && policy.rules.size() < 2 ? "waits" : "wait");
}

} // namespace

Daemon::Daemon(Connection::Connect connect, std::unique_ptr<Announcements> announcements,
               const std::filesystem::path &proc, const std::filesystem::path &root,
               Observing observing)
    : observing_(std::move(observing)),
      instance_(root),
      events_(root),
      announcements_(std::move(announcements)),
      recorder_(
          connect, proc, root,
          [](const std::string &line, bool failed) {
              log_line(failed ? Level::warning : Level::notice, line);
          },
          [](const Json &event, const std::string &line) {
              log_event(Level::warning, line, failure_message, event);
          },
          observing_.connect,
          [this](const Json &event, const std::string &line) {
              log_event(Level::warning, line, step_message, event);
              events_.append(json_text(merged(json_document(""), event)));
          }),
      connection_(connect),
      machine_(proc, root, connect),
      last_good_(root),
      enforcer_(connection_, machine_, first_policy(),
                [](const std::string &line, const Json &event) {
                    const bool failed = event.at("failed").get<bool>();

                    log_event(failed ? Level::warning : Level::notice, line, policy_message, event);
                }),
      guard_(
          std::move(connect), proc, root,
          [this](const Json &event, const std::string &line, bool failed) {
              log_event(failed ? Level::error : Level::warning, line, guard_message, event);
              events_.append(json_text(merged(json_document(""), event)));
              recorder_.add_step(event.value("path", ""), line, failed);
          },
          observing_.connect),
      watch_(machine_.cgroups()),
      headroom_(proc, root, [](const std::string &line) { log_line(Level::notice, line); }) {}

Policy Daemon::first_policy() {
    const auto texts = read_texts(policy_files(machine_.root()));

    try {
        Policy policy = read_policy(texts);
        auto problems = problems_of(policy);

        if (auto missing = last_good_.missing(texts); !missing.empty())
            throw PolicyError(std::move(missing));
        if (problems.empty())
            keep(texts);
        else if (last_good_.policy())
            throw PolicyError(std::move(problems));
        return policy;
    } catch (const PolicyError &error) {
        auto last = last_good_.policy();

        if (!last)
            throw;
        log_error(error);
        log_line(Level::error, "using the previous policy, which was valid; fix this one, then run "
                               "'systemctl reload umacctd'");
        is_last_good_ = true;
        return std::move(*last);
    }
}

void Daemon::keep(const std::vector<PolicyText> &texts) {
    // A setter that has seen the mark of the policy before is done with the lock, too.
    const OrderLock lock(machine_.root(), OrderLock::Setter::daemon);

    is_last_good_ = false;
    if (const int code = last_good_.keep(texts))
        log_line(Level::warning, "cannot keep the policy for a start that finds a bad one: " +
                                     std::generic_category().message(code));
    if (!lock.is_held())
        log_line(Level::warning, "a container that starts now may keep what the policy before says "
                                 "until 'systemctl reload umacctd': another program has the lock");
}

std::string Daemon::state() const {
    return fmt::format("{} in force{}", rules_of(enforcer_.policy()),
                       is_last_good_
                           ? " of the previous policy; the current policy is invalid, see "
                             "'umacct config check'"
                           : "");
}

/// Work for which the module has to be there. Whether it still is may show here or be announced,
/// whichever comes first.
template <class Work>
void Daemon::unless_it_goes(Work work) {
    try {
        work();
    } catch (const Error &error) {
        if (error.failure() != Failure::missing)
            throw;
        if (connected_)
            log_line(Level::warning, unloaded);
        disconnect();
        missing_ = true;
    }
}

std::vector<Diagnostic> Daemon::problems_of(const Policy &policy) const {
    return validate(policy, MachineFacts::of(machine_, machine_.meminfo().total()));
}

void Daemon::run() {
    const FileDescriptor signals = take_signals();

    machine_.share_owners();
    for (const Diagnostic &problem : problems_of(enforcer_.policy()))
        log_line(Level::warning, problem.line());
    take_changes();
    set_guard();
    connect();
    set_headroom();
    recorder_.start();
    sd_notify(0, "READY=1");
    while (!stopping_) {
        std::array<pollfd, 3> files{pollfd{watch_.fd(), POLLIN, 0},
                                    pollfd{signals.get(), POLLIN, 0},
                                    pollfd{announcements_->fd(), POLLIN, 0}};

        if (poll(files.data(), files.size(), static_cast<int>(patience().count())) < 0 &&
            errno != EINTR)
            throw Error(Failure::failed,
                        "cannot wait for events: " + std::generic_category().message(errno));
        if (files[0].revents != 0 || is_due(watch_.due()))
            take_changes();
        if (files[1].revents != 0)
            take_signal(signals.get());
        if (files[2].revents != 0)
            take_announcements();
        if (connected_ && is_due(enforcer_.due()))
            unless_it_goes([this] { enforcer_.retry(); });
        if (next_tick_ <= Enforcer::Clock::now())
            tick();
    }
    sd_notify(0, "STOPPING=1");
    guard_.pause();
    recorder_.stop();
    log_line(Level::info, "exiting; limits stay in force, the guard's steps were undone");
}

std::chrono::milliseconds Daemon::patience() const {
    auto until = next_tick_;

    if (watch_.due())
        until = std::min(until, *watch_.due());
    if (connected_ && enforcer_.due())
        until = std::min(until, *enforcer_.due());
    return std::max(std::chrono::ceil<std::chrono::milliseconds>(until - Enforcer::Clock::now()),
                    0ms);
}

void Daemon::set_guard() {
    const auto &policy = enforcer_.policy().guard;
    const auto &reserve = enforcer_.policy().reserve;

    guard_.set(policy, reserve ? reserve->of(machine_.meminfo().total()) : 0);
    recorder_.set_floor(policy && policy->floor ? policy->floor->of(machine_.meminfo().total())
                                                : 0);
    if (!policy)
        return;
    // Locks our own pages: the guard must run when no memory is free.
    if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0)
        log_line(Level::warning,
                 "guard: cannot lock its own memory: " + std::generic_category().message(errno));
    if (!policy->dry_run && !may_write_cgroups(machine_.cgroups()))
        log_line(Level::error, "guard: cannot write to cgroups, so that it can do nothing to "
                               "them; the unit has to allow it: see umacct.toml(5)");
    log_line(Level::info,
             policy->dry_run ? "guard: on, and only says what it would do" : "guard: on");
}

void Daemon::take_changes() {
    const CgroupWatch::Changes changes = watch_.take();

    if (changes.trouble)
        log_error(*changes.trouble, "cannot follow all cgroups: new ones may get their limits some "
                                    "seconds late: ");
    if (changes.recovered)
        log_line(Level::notice, "all cgroups are followed again");
    unless_it_goes([&] { enforcer_.follow(changes.appeared, changes.gone); });
}

void Daemon::take_signal(int signals) {
    signalfd_siginfo signal{};

    while (read(signals, &signal, sizeof(signal)) == sizeof(signal)) {
        if (signal.ssi_signo == SIGHUP)
            reload();
        else
            stopping_ = true;
    }
}

/// Logs the result of a reload: systemctl only reports that the signal was sent.
void Daemon::reload() {
    const auto texts = read_texts(policy_files(machine_.root()));

    sd_notify(0, "RELOADING=1");
    try {
        Policy policy = read_policy(texts);
        const std::string rules = rules_of(policy);
        auto problems = problems_of(policy);

        if (!problems.empty())
            throw PolicyError(std::move(problems));
        if (auto missing = last_good_.missing(texts); !missing.empty())
            throw PolicyError(std::move(missing));

        const std::size_t refused = enforcer_.replace(std::move(policy), [&] { keep(texts); });
        log_line(
            refused > 0 ? Level::warning : Level::info,
            "the policy was read again: " + rules +
                (refused > 0 ? fmt::format("; of {} cgroups something was refused", refused) : ""));
        if (connected_)
            tell_state(state());
    } catch (const Error &error) {
        if (error.failure() == Failure::missing) {
            // Other parts of the new policy may wait for the module, too.
            observes_ = false;
            disconnect();
            missing_ = true;
            keep(texts);
            log_line(Level::info,
                     "the policy was read again; it is pending until the module is loaded");
        } else {
            log_error(error, "the policy stays as it was: ");
            tell_state(fmt::format("{}, as before; another policy was refused: {}",
                                   rules_of(enforcer_.policy()), error.what()));
        }
    }
    set_guard();
    set_headroom();
    sd_notify(0, "READY=1");
}

void Daemon::set_headroom() {
    const Policy &policy = enforcer_.policy();
    const std::uint64_t total = machine_.meminfo().total();
    HeadroomSettings settings;

    settings.bytes = policy.headroom ? policy.headroom->of(total) : 0;
    // A policy that is refused on a reload holds where umacctd starts with it.
    settings.block =
        MachineFacts::of(machine_, total).block_of(policy.headroom_blocks.value_or(settings.block));
    settings.anonymous = policy.headroom_anonymous.value_or(settings.anonymous);
    headroom_.set(settings);
}

void Daemon::tick() {
    next_tick_ = Enforcer::Clock::now() + tick_interval;
    if (!connected_ && !missing_)
        connect();
    if (!connected_)
        look_for_observer();
    machine_.share_owners();
    // systemd starts umacctd anew where its guard hangs, not only where this thread does.
    if (!guard_.is_stuck())
        sd_notify(0, "WATCHDOG=1");
}

void Daemon::take_announcements() {
    const Announcements::News news = announcements_->take();

    if (news.overrun && !std::exchange(told_overrun_, true))
        log_line(Level::info, "kernel announcements were lost; checked the state of the module "
                              "instead");
    if (news.unloaded && connected_) {
        log_line(Level::warning, unloaded);
        disconnect();
    }
    missing_ = !news.loaded && (news.unloaded || missing_);
    if (news.loaded)
        connect();
}

/// Thaws all cgroups once the guard has no figures.
void Daemon::disconnect() {
    connected_ = false;
    guard_.module_is(observes_);
}

std::optional<Status> Daemon::ask_observer() const {
    try {
        auto transport = observing_.connect ? observing_.connect() : nullptr;

        return transport ? std::optional(Module(std::move(transport)).status()) : std::nullopt;
    } catch (const Error &) {
        // It was ended just then.
        return std::nullopt;
    }
}

void Daemon::look_for_observer() {
    const bool is_there = observing_.connect && observing_.connect();

    if (is_there == observes_)
        return;
    const auto status = is_there ? ask_observer() : std::nullopt;
    if (is_there && !status)
        return;
    observes_ = is_there;
    guard_.module_is(observes_);
    if (!status) {
        log_line(Level::warning, "the observer was ended: nothing is counted");
        tell_state("waits: the module is not loaded, and the observer was ended");
        return;
    }
    const std::string since = fmt::format("BPF programs count in the module's place, since {}",
                                          format_clock(status->since_ns.value_or(0)));
    const std::string waits = needs_module(enforcer_.policy());
    log_line(Level::notice,
             waits.empty() ? since
                           : fmt::format("{}; of the policy, {} for the module: 'modprobe umacct' "
                                         "loads it, 'umacct doctor' says what is in the way",
                                         since, waits));
    tell_state(waits.empty() ? since : fmt::format("{}; {} for the module", since, waits));
}

void Daemon::take_over() {
    const auto status = ask_observer();

    observes_ = false;
    if (!status)
        return;
    log_line(
        Level::notice,
        fmt::format("the module counts from now on, and the observer ends: what it had counted "
                    "since {} is lost, so that {} in {} cgroups, and {} of the driver's own, "
                    "are unattributed until they are freed",
                    format_clock(status->since_ns.value_or(0)), format_size(status->usage),
                    status->accounts, format_size(status->driver_usage)));
    try {
        observing_.end();
    } catch (const Error &error) {
        log_error(
            error,
            "the observer counts on beside the module; 'umacct setup observer off' ends it: ");
    }
}

void Daemon::connect() {
    connection_.reset();
    try {
        enforcer_.apply_all();
        connected_ = true;
        told_missing_ = false;
        take_over();
        guard_.module_is(true);
        log_line(Level::info, state());
        tell_state(state());
    } catch (const Error &error) {
        if (error.failure() == Failure::permission)
            throw;
        missing_ = error.failure() == Failure::missing;
        // An administrator who unloads the module knows about it.
        if (!std::exchange(told_missing_, true)) {
            log_error(error, "",
                      error.failure() == Failure::missing ? Level::warning : Level::error);
            tell_state(fmt::format("waits: {}", error.what()));
        }
    }
}

} // namespace umacct
