// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/process.h"

#include <algorithm>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>

namespace umacct::tool {

namespace {

constexpr int exit_signal_base = 128; ///< as a shell says it
constexpr std::array ending{SIGINT, SIGTERM, SIGHUP, SIGQUIT};

} // namespace

SignalGuard::SignalGuard() {
    sigemptyset(&taken_);
    for (const int signal : ending)
        sigaddset(&taken_, signal);
    sigaddset(&taken_, SIGCHLD);
    // An ignored SIGCHLD, which we may have inherited, takes the exit codes away.
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_BLOCK, &taken_, &before_);
}

void SignalGuard::restore() const {
    sigprocmask(SIG_SETMASK, &before_, nullptr);
}

siginfo_t SignalGuard::wait() const {
    siginfo_t info{};

    while (sigwaitinfo(&taken_, &info) < 0) {
    }
    return info;
}

bool SignalGuard::interrupted() {
    sigset_t pending{};

    sigpending(&pending);
    return std::ranges::any_of(ending,
                               [&](int signal) { return sigismember(&pending, signal) == 1; });
}

Pipe::Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0)
        throw std::system_error(errno, std::generic_category(), "pipe");
}

Pipe::~Pipe() {
    close_end(0);
    close_end(1);
}

std::optional<int> Pipe::get() const {
    int value = 0;

    while (true) {
        const ssize_t size = read(ends_[0], &value, sizeof(value));

        if (size == sizeof(value))
            return value;
        if (size >= 0 || errno != EINTR)
            return std::nullopt;
    }
}

bool Pipe::wait(std::chrono::milliseconds timeout) const {
    pollfd watched{.fd = ends_[0], .events = POLLIN, .revents = 0};

    return poll(&watched, 1, static_cast<int>(timeout.count())) == 1;
}

void Pipe::put(int value) const {
    while (write(ends_[1], &value, sizeof(value)) < 0 && errno == EINTR) {
    }
}

void Pipe::close_end(std::size_t end) {
    if (ends_.at(end) >= 0)
        close(ends_.at(end));
    ends_.at(end) = -1;
}

Process::~Process() {
    if (pid_ > 0 && kill(pid_, SIGKILL) == 0)
        waitpid(pid_, nullptr, 0);
}

std::optional<int> Process::exit_code() {
    int status = 0;

    if (waitpid(pid_, &status, WNOHANG) != pid_)
        return std::nullopt;
    pid_ = -1;
    return WIFSIGNALED(status) ? exit_signal_base + WTERMSIG(status) : WEXITSTATUS(status);
}

} // namespace umacct::tool
