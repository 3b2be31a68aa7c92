// SPDX-License-Identifier: GPL-2.0-or-later
/// Child processes and what it takes to speak to them and to end in order.
#pragma once

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include <sys/types.h>
#include <unistd.h>

#include "lib/host/file_descriptor.h"

namespace umacct {

/// Takes the signals that others send to end us or to tell us something, and SIGCHLD,
/// for as long as it lives. One that came meanwhile and was not waited for takes its
/// effect at the end. SIGPIPE is ignored: a write fails instead.
class SignalGuard {
public:
    SignalGuard();
    SignalGuard(const SignalGuard &) = delete;
    SignalGuard &operator=(const SignalGuard &) = delete;
    SignalGuard(SignalGuard &&) = delete;
    SignalGuard &operator=(SignalGuard &&) = delete;

    ~SignalGuard() { restore(); }

    void restore() const;
    /// Empty where none came within the time.
    std::optional<siginfo_t> wait(std::chrono::milliseconds timeout) const;
    /// Someone asked us to end.
    static bool interrupted();

private:
    sigset_t taken_{};
    sigset_t before_{};
    sighandler_t pipe_before_;
};

/// Whole numbers, or one text, from one process to another.
class Pipe {
public:
    Pipe();

    void close_read() { read_.reset(-1); }

    void close_write() { write_.reset(-1); }

    /// Empty when the other end was closed.
    std::optional<int> get() const;
    /// Something, or the other end's closing, came within the time.
    bool wait(std::chrono::milliseconds timeout) const;
    void put(int value) const;

    /// The text that was put; empty unless it came whole, within the time and the size.
    std::optional<std::string> get_text(std::chrono::milliseconds timeout,
                                        std::size_t largest) const;
    void put_text(std::string_view text) const;

    /// Closes every other file of this process.
    void close_all_but_write() const;

private:
    FileDescriptor read_{-1};
    FileDescriptor write_{-1};
};

/// A child process; killed and reaped if it still lives at the end.
class Process {
public:
    /// Forks; the child runs body and never returns.
    template <class Body>
    explicit Process(Body body) : pid_(fork()) {
        if (pid_ < 0)
            throw std::system_error(errno, std::generic_category(), "fork");
        if (pid_ == 0) {
            body();
            _exit(exit_of_child);
        }
    }

    Process(const Process &) = delete;
    Process &operator=(const Process &) = delete;
    Process(Process &&) = delete;
    Process &operator=(Process &&) = delete;
    ~Process();

    pid_t pid() const { return pid_; }

    /// The exit code as a shell says it, once it has exited.
    std::optional<int> exit_code();

private:
    static constexpr int exit_of_child = 126; ///< returned by the body

    pid_t pid_;
};

/// Has the kernel kill this process when its parent ends.
void die_with_parent();

constexpr uid_t nobodys_uid = 65534;

/// Becomes that user, without groups; who isn't root stays who it is, and loses its
/// capabilities. Whether it worked.
bool drop_privileges(uid_t user);

/// Keeps this process, and all that it starts, from typing into its terminal (TIOCSTI, TIOCLINUX),
/// which a program of another user's could do to the shell that it returns to. Takes CAP_SYS_ADMIN
/// or no_new_privs. Whether it worked.
bool forbid_typing();

/// Runs work in a child process which has no file open; what it returns, or nothing when
/// that takes longer or is larger, or when the child dies or can't be started.
std::optional<std::string> answer_of_child(const std::function<std::string()> &work,
                                           std::chrono::milliseconds timeout, std::size_t largest);

} // namespace umacct
