// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/process.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <thread>

#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

namespace umacct {

namespace {

constexpr int exit_signal_base = 128; ///< same as a shell
constexpr std::array ending{SIGINT, SIGTERM, SIGHUP, SIGQUIT};

// Signals of faults and of job control keep their usual effect.
constexpr std::array left_alone{SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGTRAP, SIGABRT, SIGSYS,
                                SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGURG,  SIGWINCH};

/// Drops the capabilities that a process other than root's may have, as a service does.
bool drop_capabilities() {
    __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> none{};

    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return syscall(SYS_capset, &header, none.data()) == 0;
}

} // namespace

// NOLINTNEXTLINE(cppcoreguidelines-pro-type-cstyle-cast): SIG_IGN is the system's
SignalGuard::SignalGuard() : pipe_before_(signal(SIGPIPE, SIG_IGN)) {
    sigfillset(&taken_);
    for (const int each : left_alone)
        sigdelset(&taken_, each);
    // Blocked as well as ignored, it would wait for its old effect.
    sigdelset(&taken_, SIGPIPE);
    // An ignored SIGCHLD, which we may have inherited, takes the exit codes away.
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_BLOCK, &taken_, &before_);
}

void SignalGuard::restore() const {
    signal(SIGPIPE, pipe_before_);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<siginfo_t> SignalGuard::wait(std::chrono::milliseconds timeout) const {
    const timespec time{.tv_sec = timeout.count() / 1000,
                        .tv_nsec = timeout.count() % 1000 * 1'000'000};
    siginfo_t info{};

    // One that is interrupted may be shorter.
    return sigtimedwait(&taken_, &info, &time) < 0 ? std::nullopt : std::optional(info);
}

bool SignalGuard::interrupted() {
    sigset_t pending{};

    sigpending(&pending);
    return std::ranges::any_of(ending,
                               [&](int signal) { return sigismember(&pending, signal) == 1; });
}

Pipe::Pipe() {
    std::array<int, 2> ends{};

    if (pipe2(ends.data(), O_CLOEXEC) != 0)
        throw std::system_error(errno, std::generic_category(), "pipe");
    read_.reset(ends[0]);
    write_.reset(ends[1]);
}

std::optional<int> Pipe::get() const {
    int value = 0;

    while (true) {
        const ssize_t size = read(read_.get(), &value, sizeof(value));

        if (size == sizeof(value))
            return value;
        if (size >= 0 || errno != EINTR)
            return std::nullopt;
    }
}

bool Pipe::wait(std::chrono::milliseconds timeout) const {
    pollfd watched{.fd = read_.get(), .events = POLLIN, .revents = 0};

    return poll(&watched, 1, static_cast<int>(timeout.count())) == 1;
}

void Pipe::put(int value) const {
    while (write(write_.get(), &value, sizeof(value)) < 0 && errno == EINTR) {
    }
}

std::optional<std::string> Pipe::get_text(std::chrono::milliseconds timeout,
                                          std::size_t largest) const {
    const auto end = std::chrono::steady_clock::now() + timeout;
    std::array<char, 16384> part{};
    std::string text;

    while (text.size() <= largest) {
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
        if (left.count() <= 0)
            break;
        if (!wait(left)) // too late, or a signal
            continue;

        const ssize_t size = read(read_.get(), part.data(), part.size());
        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0)
            break;
        text.append(part.data(), static_cast<std::size_t>(size));
        if (const auto complete = text.find('\0'); complete != std::string::npos)
            return text.substr(0, complete);
    }
    return std::nullopt;
}

void Pipe::put_text(std::string_view text) const {
    const std::string whole(text.substr(0, text.find('\0')));

    for (std::size_t done = 0; done <= whole.size();) {
        const ssize_t size = write(write_.get(), whole.c_str() + done, whole.size() + 1 - done);

        if (size < 0 && errno != EINTR)
            return;
        done += size > 0 ? static_cast<std::size_t>(size) : 0;
    }
}

void Pipe::close_all_but_write() const {
    const auto kept = static_cast<unsigned int>(write_.get());

    if (kept > 0)
        close_range(0, kept - 1, 0);
    close_range(kept + 1, ~0U, 0);
}

Process::~Process() {
    constexpr std::chrono::microseconds first(50);
    constexpr std::chrono::microseconds last(500'000);

    if (pid_ <= 0 || kill(pid_, SIGKILL) != 0)
        return;
    // Gives up after a while: a child that waits for a file system that does not answer can't be
    // killed. init reaps it after our end.
    for (auto pause = first; pause < last && waitpid(pid_, nullptr, WNOHANG) == 0; pause *= 2)
        std::this_thread::sleep_for(pause);
}

std::optional<int> Process::exit_code() {
    int status = 0;

    if (waitpid(pid_, &status, WNOHANG) != pid_)
        return std::nullopt;
    pid_ = -1;
    return WIFSIGNALED(status) ? exit_signal_base + WTERMSIG(status) : WEXITSTATUS(status);
}

void die_with_parent() {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

bool drop_privileges(uid_t user) {
    int signal = 0;

    if (geteuid() != 0)
        return drop_capabilities();
    prctl(PR_GET_PDEATHSIG, &signal);
    if (setgroups(0, nullptr) != 0 || setresgid(nobodys_uid, nobodys_uid, nobodys_uid) != 0 ||
        setresuid(user, user, user) != 0)
        return false;
    // A change of user takes it away.
    prctl(PR_SET_PDEATHSIG, signal);
    return true;
}

bool forbid_typing() {
#ifdef __x86_64__
    constexpr unsigned native = AUDIT_ARCH_X86_64;
    constexpr unsigned compat = AUDIT_ARCH_I386;
#else
    constexpr unsigned native = AUDIT_ARCH_AARCH64;
    constexpr unsigned compat = AUDIT_ARCH_ARM;
#endif
    constexpr unsigned compat_ioctl = 54; // i386's and arm's number
    constexpr unsigned x32 = 0x40000000;  // and above: the same calls by other numbers
    const auto load = [](std::size_t offset) {
        return sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(offset));
    };
    const auto equal = [](unsigned value, std::uint8_t then, std::uint8_t otherwise) {
        return sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, then, otherwise);
    };
    constexpr sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    constexpr sock_filter deny = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    std::array filter{
        load(offsetof(seccomp_data, arch)),
        equal(native, 0, 3), // how many to skip where it is so, and where it isn't
        load(offsetof(seccomp_data, nr)),
        sock_filter BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, x32, 8, 0),
        equal(SYS_ioctl, 3, 6),
        equal(compat, 0, 5),
        load(offsetof(seccomp_data, nr)),
        equal(compat_ioctl, 0, 3),
        load(offsetof(seccomp_data, args) + sizeof(seccomp_data::args[0])),
        equal(TIOCSTI, 2, 0),
        equal(TIOCLINUX, 1, 0), // TIOCLINUX selects text on a console and pastes it
        allow,
        deny,
    };
    const sock_fprog program{.len = filter.size(), .filter = filter.data()};

    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

std::optional<std::string> answer_of_child(const std::function<std::string()> &work,
                                           std::chrono::milliseconds timeout, std::size_t largest) {
    try {
        Pipe answer;
        const Process child([&] {
            die_with_parent();
            answer.close_all_but_write();
            try {
                answer.put_text(work());
            } catch (const std::exception &) {
                // No answer is one, too.
            }
        });

        answer.close_write();
        return answer.get_text(timeout, largest);
    } catch (const std::system_error &) {
        return std::nullopt;
    }
}

} // namespace umacct
