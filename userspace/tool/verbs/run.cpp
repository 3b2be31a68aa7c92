// SPDX-License-Identifier: GPL-2.0-or-later
#include <cerrno>
#include <csignal>
#include <memory>
#include <system_error>
#include <vector>

#include <fmt/ostream.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "lib/error.h"
#include "lib/host/argv.h"
#include "lib/host/process.h"
#include "lib/host/scope.h"
#include "lib/json.h"
#include "lib/units.h"
#include "tool/account.h"
#include "tool/limit_options.h"
#include "tool/print/text.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

// What a shell answers for a command that it can't run.
constexpr int exit_not_found = 127;
constexpr int exit_not_executable = 126;

struct Options {
    LimitOptions limits;
    bool view = false;
    bool charge = false;
    std::string name;
    std::vector<std::string> command;
};

/// The command, held back until its cgroup and limits stand.
class Command {
public:
    Command(const std::vector<std::string> &words, const SignalGuard &signals)
        : words_(words), process_([this, &signals] { start(signals); }) {
        go_.close_read();
        failure_.close_write();
    }

    Process &process() { return process_; }

    /// Lets it run; the errno of a command that can't be.
    std::optional<int> release() {
        go_.put(0);
        return failure_.get();
    }

private:
    /// In the child.
    void start(const SignalGuard &signals) {
        go_.close_write();
        if (!go_.get())
            return;
        signals.restore();
        execvp(words_.front().c_str(), argv_of(words_).data());
        failure_.put(errno);
    }

    const std::vector<std::string> &words_;
    Pipe go_;
    Pipe failure_;
    Process process_;
};

/// Stays in the cgroup, so that its account can be read after the command's end.
void hold_cgroup() {
    die_with_parent();
    while (getppid() != 1)
        pause();
}

int wait_for(Process &process, const SignalGuard &signals) {
    while (true) {
        const siginfo_t info = signals.wait();

        if (info.si_signo == SIGCHLD) {
            if (const auto code = process.exit_code())
                return *code;
        } else if (info.si_code <= 0) {
            // From a process. The terminal's go to the command by themselves.
            kill(process.pid(), info.si_signo);
        }
    }
}

void report(Context &context, const Account &account, int exit_code) {
    if (context.json) {
        print_json(context.err(),
                   merged(json_document(), {{"account", to_json(context.owners(), account)},
                                            {"exit_code", exit_code}}));
        return;
    }
    fmt::print(context.err(), "umacct: peak {}, {} allocations, {} refused",
               format_size(account.peak), account.allocs, account.refusals);
    if (account.refusals > 0)
        fmt::print(context.err(), " (hard limit {}, reserve {})", format_limit(account.effective),
                   account.reserve_count);
    fmt::print(context.err(), "\n");
}

AccountChange parse_change(const Options &options) {
    AccountChange change = parse_limits(options.limits);

    if (options.view)
        change.view = true;
    if (options.charge)
        change.charge = UMACCT_CHARGE_ON;
    return change;
}

std::string name_for(const Options &options) {
    if (options.name.empty())
        return fmt::format("umacct-run-{}", getpid());
    if (options.name.find('/') != std::string::npos || options.name.starts_with('.'))
        throw Error(Failure::usage,
                    fmt::format("--name: '{}' is no name for a cgroup", options.name),
                    "a name has no '/' and doesn't begin with '.'");
    return options.name;
}

int run(Context &context, const Options &options) {
    const AccountChange change = parse_change(options);
    const std::string name = name_for(options);

    Module &module = context.module(); // before anything is made: it may be missing
    const SignalGuard signals;
    Command command(options.command, signals);
    const Process holder(hold_cgroup);
    const Scope cgroup(context.cgroups(), name, {command.process().pid(), holder.pid()});
    const Target target{
        .path = cgroup.path(), .id = context.cgroups().id(cgroup.path()), .pid = {}};

    context.warn_if_degraded(module.status());
    if (!change.empty())
        set_limits(context, target, change);
    if (const auto failure = command.release()) {
        fmt::print(context.err(), "umacct: {}: {}\n", options.command.front(),
                   std::generic_category().message(*failure));
        return *failure == ENOENT ? exit_not_found : exit_not_executable;
    }

    const int exit_code = wait_for(command.process(), signals);
    report(context, read_account(context, target), exit_code);
    return exit_code;
}

} // namespace

void add_run(CLI::App &app, Context &context) {
    auto options = std::make_shared<Options>();
    CLI::App *verb = app.add_subcommand("run", "run a command in a cgroup of its own");

    add_limit_options(*verb, options->limits);
    verb->add_flag("--view", options->view, "/proc/meminfo and sysinfo answer within --hard");
    verb->add_flag("--charge", options->charge, "the kernel's memory controller sees its memory");
    verb->add_option("--name", options->name, "name of the cgroup, or of the systemd scope");
    verb->add_option("CMD", options->command, "the command and its arguments, after '--'")
        ->required();
    verb->footer(
        "The cgroup is a systemd scope where systemd runs, else a directory in the cgroup file\n"
        "system. At the end its peak and what was refused is printed on standard error (as JSON\n"
        "with --json), what the command left running is killed, and the cgroup is removed. The\n"
        "exit code is the command's, 128 + N for signal N, 127 for a command that isn't there.\n"
        "SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on. Takes root.\n"
        "\n"
        "Examples:\n"
        "  umacct run --hard 40G -- python3 train.py\n"
        "  umacct run --hard 40G --view --name trial -- ./serve --port 8000");
    verb->callback([options, &context] { context.exit_code = run(context, *options); });
}

} // namespace umacct::tool
