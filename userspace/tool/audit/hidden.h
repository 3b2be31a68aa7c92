// SPDX-License-Identifier: GPL-2.0-or-later
/// The memory that a caller without the right does not see.
#pragma once

#include "lib/module/model.h"

namespace umacct::tool {

struct Session;

/// Prints a note of what is hidden from a caller that may not see all; returns whether it is one.
bool note_hidden(const Session &session, const Status &status);

} // namespace umacct::tool
