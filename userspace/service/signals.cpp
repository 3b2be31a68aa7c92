// SPDX-License-Identifier: GPL-2.0-or-later
#include "service/signals.h"

#include <csignal>
#include <initializer_list>

#include <sys/signalfd.h>

namespace umacct {

FileDescriptor take_signals() {
    sigset_t taken;

    sigemptyset(&taken);
    for (const int signal : {SIGHUP, SIGINT, SIGTERM})
        sigaddset(&taken, signal);
    sigprocmask(SIG_BLOCK, &taken, nullptr);
    return FileDescriptor(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
}

} // namespace umacct
