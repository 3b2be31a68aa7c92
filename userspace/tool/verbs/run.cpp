// SPDX-License-Identifier: GPL-2.0-or-later
#include <cerrno>
#include <csignal>
#include <fstream>
#include <memory>
#include <system_error>
#include <vector>

#include <fmt/ostream.h>
#include <grp.h>
#include <nlohmann/json.hpp>
#include <pwd.h>
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

// What a shell, env and timeout answer for a command that can't be run.
constexpr int exit_not_found = 127;
constexpr int exit_not_executable = 126;

struct Options {
    LimitOptions limits;
    bool view = false;
    bool charge = false;
    bool quiet = false;
    std::string name;
    std::string user;
    std::string report;
};

/// Whom the command runs as.
struct User {
    std::string name;
    std::string home;
    std::string shell;
    uid_t uid;
    gid_t gid;
};

std::optional<User> find_user(const std::string &name) {
    if (name.empty())
        return std::nullopt;

    const bool number = name.find_first_not_of("0123456789") == std::string::npos;
    const passwd *entry = getpwnam(name.c_str());
    if (entry == nullptr && number)
        entry = getpwuid(static_cast<uid_t>(std::stoul(name)));
    if (entry == nullptr)
        throw Error(Failure::usage, fmt::format("--user: there is no user '{}'", name),
                    "it takes a name, or a number that has one");
    return User{entry->pw_name, entry->pw_dir, entry->pw_shell, entry->pw_uid, entry->pw_gid};
}

/// In the child: becomes the user, as far as programs ask; 0, or an errno.
int become(const User &user) {
    if (initgroups(user.name.c_str(), user.gid) != 0 ||
        setresgid(user.gid, user.gid, user.gid) != 0 ||
        setresuid(user.uid, user.uid, user.uid) != 0)
        return errno;
    setenv("HOME", user.home.c_str(), 1);
    setenv("SHELL", user.shell.c_str(), 1);
    setenv("USER", user.name.c_str(), 1);
    setenv("LOGNAME", user.name.c_str(), 1);
    return 0;
}

/// The command, held back until its cgroup and limits stand.
class Command {
public:
    Command(const std::vector<std::string> &words, const std::optional<User> &user,
            const SignalGuard &signals)
        : words_(words), user_(user), process_([this, &signals] { start(signals); }) {
        go_.close_read();
        failure_.close_write();
    }

    Process &process() { return process_; }

    /// Lets it run; the errno of a command that can't be, below zero where it is the
    /// user that it can't become.
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
        if (const int error = user_ ? become(*user_) : 0; error != 0) {
            failure_.put(-error);
            return;
        }
        signals.restore();
        execvp(words_.front().c_str(), argv_of(words_).data());
        failure_.put(errno);
    }

    const std::vector<std::string> &words_;
    const std::optional<User> &user_;
    Pipe go_;
    Pipe failure_;
    Process process_;
};

/// Stays in the cgroup, so that its account can be read after the command's end.
void hold_cgroup(pid_t parent) {
    die_with_parent();
    while (getppid() == parent)
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

void print_report(std::ostream &out, const Context &context, const Account &account,
                  int exit_code) {
    if (context.json) {
        print_json(out, merged(json_document(), {{"account", to_json(context.owners(), account)},
                                                 {"exit_code", exit_code}}));
        return;
    }
    fmt::print(out, "umacct: peak {}, {} allocations, {} refused", format_size(account.peak),
               account.allocs, account.refusals);
    if (account.refusals > 0)
        fmt::print(out, " (hard limit {}, reserve {})", format_limit(account.effective),
                   account.reserve_count);
    fmt::print(out, "\n");
}

/// What the command took. It ended as it ended, whatever becomes of this.
void report(Context &context, const Options &options, std::ofstream &file, const Target &target,
            int exit_code) {
    if (options.quiet && options.report.empty())
        return;
    try {
        const Account account = read_account(context, target);

        print_report(options.report.empty() ? context.err() : file, context, account, exit_code);
        if (!options.report.empty() && !file.flush())
            throw Error(Failure::failed,
                        fmt::format("--report: '{}' can't be written", options.report));
    } catch (const std::exception &error) {
        fmt::print(context.err(), "umacct: no report: {}\n", error.what());
    }
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
    if (context.command.empty())
        throw Error(Failure::usage, "CMD is required: which command?",
                    "for example: umacct run --hard 40G python3 train.py");

    const AccountChange change = parse_change(options);
    const std::string name = name_for(options);
    const std::optional<User> user = find_user(options.user);
    std::ofstream file;

    if (!options.report.empty()) {
        file.open(options.report);
        if (!file)
            throw Error(Failure::failed,
                        fmt::format("--report: '{}' can't be written", options.report),
                        "name a file in a directory that you may write to");
    }

    Module &module = context.module(); // before anything is made: it may be missing
    const SignalGuard signals;
    Command command(context.command, user, signals);
    const Process holder([parent = getpid()] { hold_cgroup(parent); });
    const Scope cgroup(context.cgroups(), name, {command.process().pid(), holder.pid()});
    const Target target{
        .path = cgroup.path(), .id = context.cgroups().id(cgroup.path()), .pid = {}};

    if (!options.quiet)
        context.warn_if_degraded(module.status());
    if (!change.empty())
        set_limits(context, target, change);
    if (const auto failure = command.release()) {
        if (*failure < 0)
            throw Error(Failure::permission,
                        fmt::format("--user: becoming {}: {}", options.user,
                                    std::generic_category().message(-*failure)));
        fmt::print(context.err(), "umacct: {}: {}\n", printable(context.command.front()),
                   std::generic_category().message(*failure));
        return *failure == ENOENT ? exit_not_found : exit_not_executable;
    }

    const int exit_code = wait_for(command.process(), signals);
    report(context, options, file, target, exit_code);
    return exit_code;
}

} // namespace

void add_run(CLI::App &app, Context &context) {
    auto options = std::make_shared<Options>();
    CLI::App *verb = app.add_subcommand("run", "run a command in a cgroup of its own");

    add_limit_options(*verb, options->limits);
    verb->add_option("--throttle", options->limits.throttle,
                     "longest delay of one call above the soft limit, such as 50ms; off for none")
        ->type_name("TIME");
    verb->add_flag("--view", options->view, "/proc/meminfo and sysinfo answer within --hard");
    verb->add_flag("--charge", options->charge, "the kernel's memory controller sees its memory");
    verb->add_option("--name", options->name, "name of the cgroup, or of the systemd scope")
        ->type_name("NAME");
    verb->add_option("--user", options->user, "whom the command runs as; else who runs this")
        ->type_name("USER");
    verb->add_option("--report", options->report, "where to say what it took, not standard error")
        ->type_name("FILE");
    verb->add_flag("-q,--quiet", options->quiet, "say nothing on standard error but errors");
    // They never get this far: see the words of a command line.
    verb->add_option("CMD", context.command, "the command and its arguments, as they are");
    verb->footer(
        "The cgroup is a systemd scope where systemd runs, else a directory in the cgroup file\n"
        "system. The first word that is no option begins the command. At the end its peak and\n"
        "what was refused is printed (as JSON with --json), what the command left running is\n"
        "killed, and the cgroup is removed. The exit code is the command's, 128 + N for signal N,\n"
        "127 for a command that isn't there, 126 for one that can't be run, and 125 where umacct\n"
        "itself fails. Signals are passed on. Takes root, which the command need not have.\n"
        "\n"
        "Examples:\n"
        "  umacct run --hard 40G python3 train.py\n"
        "  umacct run --hard 40G --view --name trial ./serve --port 8000\n"
        "  sudo umacct run --user $USER --hard 8G --report took.txt pytest tests/gpu");
    verb->callback([options, &context] { context.exit_code = run(context, *options); });
}

} // namespace umacct::tool
