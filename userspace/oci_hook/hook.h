// SPDX-License-Identifier: GPL-2.0-or-later
/// umacct-hook: gives a container its limits before its first instruction, or keeps it from
/// starting.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>

#include "lib/module/module.h"

namespace umacct::oci_hook {

struct Surroundings {
    Connection::Connect connect;
    std::filesystem::path proc;
    std::filesystem::path root; ///< the folder of /sys, /run and /etc
    std::ostream &err;
};

/// state: what the runtime wrote to standard input. Its exit code; where that is not 0, or the
/// container starts with less than it was to have, one line says why.
int run_hook(const std::string &state, const Surroundings &surroundings);

} // namespace umacct::oci_hook
