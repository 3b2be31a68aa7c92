// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <memory>
#include <sstream>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <fmt/ostream.h>
#include <grp.h>
#include <nlohmann/json.hpp>
#include <pwd.h>
#include <unistd.h>

#include "lib/arithmetic.h"
#include "lib/error.h"
#include "lib/host/process.h"
#include "lib/host/scope.h"
#include "lib/json.h"
#include "lib/text.h"
#include "lib/units.h"
#include "tool/arguments.h"
#include "tool/exit_code.h"
#include "tool/session.h"
#include "tool/settings.h"
#include "tool/total.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

struct RunOptions {
    SettingOptions settings;
    std::string total;
    bool charge = false;
    bool quiet = false;
    bool nvml = false;
    std::string name;
    std::optional<std::string> user;
    std::string report;

    /// Whether nothing but NVML's answers is asked for: that takes no cgroup.
    bool is_nvml_alone() const {
        return nvml && !charge && !quiet && name.empty() && !user && report.empty() &&
               total.empty() && settings.values.empty() && settings.flags.empty();
    }
};

/// User of the command.
struct User {
    std::string name;
    std::string home;
    std::string shell;
    uid_t uid;
    gid_t gid;
};

/// Empty where it is no number of a user. One that were cut to size would be another's:
/// 2^32 is root's.
std::optional<uid_t> uid_of(std::string_view text) {
    uid_t uid = 0;
    const char *end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, uid);

    return read.ec == std::errc() && read.ptr == end ? std::optional(uid) : std::nullopt;
}

User find_user(const std::string &name) {
    const passwd *entry = getpwnam(name.c_str());

    if (const auto uid = uid_of(name); entry == nullptr && uid)
        entry = getpwuid(*uid);
    if (entry == nullptr)
        throw Error(Failure::usage, fmt::format("--user: there is no user '{}'", name),
                    "give a user name, or a uid that exists");
    return User{entry->pw_name, entry->pw_dir, entry->pw_shell, entry->pw_uid, entry->pw_gid};
}

bool has_terminal() {
    return FileDescriptor(open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)).get() >= 0;
}

/// Runs in the child: becomes the user in all that programs check; returns 0 or an errno.
int become(const User &user) {
    // The terminal stays the caller's.
    if (has_terminal() && user.uid != getuid() && !forbid_typing())
        return errno;
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
    /// Runs in the child.
    void start(const SignalGuard &signals) {
        go_.close_write();
        if (!go_.get())
            return;
        if (const int error = user_ ? become(*user_) : 0; error != 0) {
            failure_.put(-error);
            return;
        }
        std::vector<char *> argv;
        for (const std::string &word : words_)
            argv.push_back(const_cast<char *>(word.c_str()));
        argv.push_back(nullptr);
        signals.restore();
        execvp(argv.front(), argv.data());
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

constexpr std::chrono::milliseconds first_look{5};
constexpr std::chrono::milliseconds looks_apart{100};

/// The command's highest TOTAL at one moment, found by looking again and again. Memory that comes
/// and goes between two looks is missed, but not the driver's: the module keeps its peak.
class Need {
public:
    Need(Module &module, const Machine &machine, const Target &target)
        : module_(module), machine_(machine), target_(target) {}

    void look() {
        try {
            take(read_account(module_, machine_.cgroups(), target_), false);
        } catch (const Error &) { // NOLINT(bugprone-empty-catch): the report says it
        }
    }

    /// ended: the command is gone, with its own memory.
    void take(const Account &account, bool ended) {
        const MemoryController memory =
            memory_controller(machine_.cgroups(), account, {.total = true});
        const std::uint64_t programs = without(memory.total.value_or(0), account.usage);

        if (account.usage + programs > driver_ + programs_)
            note(account.usage, programs, memory);
        // The driver's peak was reached since the last look.
        if (account.peak > last_peak_) {
            const std::uint64_t beside =
                ended ? last_programs_ : std::min(programs, last_programs_);

            if (account.peak + beside > driver_ + programs_)
                note(account.peak, beside, memory);
        }
        last_peak_ = account.peak;
        last_programs_ = programs;
    }

    std::string text() const {
        return fmt::format("needed {} at most (driver {}, programs {}; page cache {} beside{}), "
                           "run it with --total {}M",
                           format_size(driver_ + programs_), format_size(driver_),
                           format_size(programs_), format_size(cache_),
                           swap_ == 0 ? "" : fmt::format(", {} on swap", format_size(swap_)),
                           enough_mib());
    }

    Json json() const {
        return {{"total_bytes", driver_ + programs_},
                {"driver_bytes", driver_},
                {"programs_bytes", programs_},
                {"cache_bytes", cache_},
                {"swap_bytes", swap_}};
    }

private:
    /// Adds a hundredth, for what comes and goes between two looks, and a block of the driver's.
    std::uint64_t enough_mib() const {
        constexpr std::uint64_t mib = 1ULL << 20;
        const std::uint64_t needed = driver_ + programs_;

        return (needed + needed / 100 + 3 * mib - 1) / mib;
    }

    void note(std::uint64_t driver, std::uint64_t programs, const MemoryController &memory) {
        driver_ = driver;
        programs_ = programs;
        cache_ = memory.cache.value_or(0);
        swap_ = memory.swap.value_or(0);
    }

    Module &module_;
    const Machine &machine_;
    const Target &target_;
    // The figures of that moment.
    std::uint64_t driver_ = 0;
    std::uint64_t programs_ = 0;
    std::uint64_t cache_ = 0;
    std::uint64_t swap_ = 0;
    // The figures of the last look.
    std::uint64_t last_peak_ = 0;
    std::uint64_t last_programs_ = 0;
};

int wait_for(Process &process, const SignalGuard &signals, Need &need) {
    auto apart = first_look;

    while (true) {
        const std::optional<siginfo_t> info = signals.wait(apart);

        if (!info) {
            need.look();
            apart = std::min(2 * apart, looks_apart);
        } else if (info->si_signo == SIGCHLD) {
            if (const auto code = process.exit_code())
                return *code;
        } else if (info->si_code <= 0) {
            // Sent by a process; the command gets the terminal's signals directly.
            kill(process.pid(), info->si_signo);
        }
    }
}

/// Reports the command's memory. Its exit code stays the same if this fails.
void report(Module &module, const Machine &machine, const Output &output, const RunOptions &options,
            const FileDescriptor &file, const Target &target, Need &need, int exit_code) {
    std::ostringstream text;
    std::ostream &out = options.report.empty() ? output.err : text;

    if (options.quiet && options.report.empty())
        return;
    try {
        const Account account = read_account(module, machine.cgroups(), target);

        need.take(account, true);
        if (output.json)
            output.document(out, {{"account", to_json(machine.owners(), account)},
                                  {"needed", need.json()},
                                  {"exit_code", exit_code}});
        else
            fmt::print(out, "umacct: peak {}, {} allocations, {} refused{}\numacct: {}\n",
                       format_size(account.peak), account.allocs, account.refusals,
                       account.refusals == 0
                           ? ""
                           : fmt::format(", by the reserve {}; the hard limit is {}",
                                         account.reserve_count, format_limit(account.effective)),
                       need.text());
        if (const std::string line = text.str();
            !options.report.empty() &&
            write(file.get(), line.data(), line.size()) < static_cast<ssize_t>(line.size()))
            throw Error(Failure::failed,
                        fmt::format("--report: cannot write '{}': {}", options.report,
                                    std::generic_category().message(errno)));
    } catch (const std::exception &error) {
        fmt::print(output.err, "umacct: no report: {}\n", printable(error.what()));
    }
}

/// Truncates the file. The command doesn't inherit it: it may run as another user, who must not
/// write to a file that only we may open.
FileDescriptor open_report(const RunOptions &options) {
    constexpr mode_t everybody_reads = 0666; // less the umask

    if (options.report.empty())
        return FileDescriptor(-1);
    const int fd =
        open(options.report.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, everybody_reads);
    if (fd < 0)
        throw Error(Failure::failed,
                    fmt::format("--report: cannot write '{}': {}", options.report,
                                std::generic_category().message(errno)),
                    "name a file in a directory that you may write to");
    return FileDescriptor(fd);
}

PersonChange parse_change(const RunOptions &options, const Machine &machine) {
    PersonChange change = parse_settings(options.settings, machine);

    if (options.charge)
        change.asked.charge = UMACCT_CHARGE_ON;
    return change;
}

std::string name_for(const RunOptions &options) {
    if (options.name.empty())
        return fmt::format("umacct-run-{}", getpid());
    if (options.name.find('/') != std::string::npos || options.name.starts_with('.'))
        throw Error(Failure::usage,
                    fmt::format("--name: '{}' is no name for a cgroup", options.name),
                    "a name has no '/' and doesn't begin with '.'");
    return options.name;
}

int run(Session &session, const RunOptions &options) {
    const Machine &machine = session.machine;
    const Output &output = session.output;
    const std::vector<std::string> &words = session.command;

    if (words.empty())
        throw Error(Failure::usage, "CMD is required: which command?",
                    "for example: umacct run --hard 40G python3 train.py");
    if (options.is_nvml_alone())
        return run_with_nvml(session);
    if (options.nvml)
        use_nvml(machine);

    PersonChange change = parse_change(options, machine);
    const bool has_total = !options.total.empty();
    const std::uint64_t total =
        has_total ? parse_total_option(options.total, machine) : UMACCT_UNLIMITED;
    if (has_total)
        charge_for_total(total, change);
    const std::string name = name_for(options);
    const std::optional<User> user =
        options.user ? std::optional(find_user(*options.user)) : std::nullopt;
    if (change.empty())
        session.count_meanwhile();
    Module &module = session.module(); // checked before anything is made: it may be missing
    const FileDescriptor file = open_report(options);
    const SignalGuard signals;
    Command command(words, user, signals);
    const Process holder([parent = getpid()] { hold_cgroup(parent); });
    const Scope cgroup(machine.cgroups(), name, "Command under umacct run",
                       {command.process().pid(), holder.pid()});
    const Target target{
        .path = cgroup.path(), .id = machine.cgroups().id(cgroup.path()), .pid = {}};

    if (!options.quiet)
        output.warn_if_degraded(module.status());
    // The command runs all the same; whoever started it must know, however quiet it is to be.
    const auto set = [&] { report_enforcement(output, carry_out(session, target, change).made); };
    if (has_total)
        set_total(machine, target, total, set);
    else if (!change.empty())
        set();
    if (const auto failure = command.release()) {
        if (*failure < 0)
            throw Error(Failure::permission,
                        fmt::format("--user: cannot become {}: {}", user->name,
                                    std::generic_category().message(-*failure)));
        fmt::print(output.err, "umacct: {}: {}\n", printable(words.front()),
                   std::generic_category().message(*failure));
        return *failure == ENOENT ? exit_not_found : exit_not_executable;
    }

    Need need(module, machine, target);
    const int exit_code = wait_for(command.process(), signals, need);
    report(module, machine, output, options, file, target, need, exit_code);
    return exit_code;
}

} // namespace

Action add_run(CLI::App &verb) {
    auto options = std::make_shared<RunOptions>();
    auto unused = std::make_shared<std::vector<std::string>>();

    add_setting_options(verb, options->settings);
    add_total_option(verb, options->total);
    verb.add_flag("--charge", options->charge, "the kernel's memory controller sees its memory");
    verb.add_flag(
        "--nvml", options->nvml,
        "it has NVML's answers from umacct; with this alone, it has no cgroup of its own");
    verb.add_option("--name", options->name, "name of the cgroup, or of the systemd scope")
        ->type_name("NAME");
    verb.add_option("--user", options->user, "user to run the command as; by default the caller")
        ->type_name("USER");
    verb.add_option("--report", options->report, "where to say what it took, not standard error")
        ->type_name("FILE");
    verb.add_flag("-q,--quiet", options->quiet, "say nothing on standard error but errors");
    // They never get this far: see take_command().
    verb.add_option("CMD", *unused, "the command and its arguments, as they are");
    add_examples(verb, "umacct run --hard 40G python3 train.py\n"
                       "umacct run --total 63G python3 train.py\n"
                       "umacct run --hard 40G --view --name trial ./serve --port 8000\n"
                       "umacct run --nvml nvtop               what nvtop asks, umacct answers\n"
                       "sudo umacct run --user $USER --report took.txt pytest tests/gpu");
    return [options, unused](Session &session) { return run(session, *options); };
}

} // namespace umacct::tool
