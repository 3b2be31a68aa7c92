// SPDX-License-Identifier: GPL-2.0-or-later
/// The signals that end a daemon, or have it read its configuration again.
#pragma once

#include "lib/host/file_descriptor.h"

namespace umacct {

/// SIGHUP, SIGINT and SIGTERM are read from this file, as signalfd(2) has it, and do nothing
/// else any more.
FileDescriptor take_signals();

} // namespace umacct
