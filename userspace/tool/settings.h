// SPDX-License-Identifier: GPL-2.0-or-later
/// Changing what is set, and saying what changed.
#pragma once

#include <string>

#include "lib/machine.h"
#include "lib/module/module.h"
#include "tool/output.h"

namespace umacct::tool {

/// Sets it; an error names the target and the option.
Enforcement set_account(Module &module, const Target &target, const AccountChange &change);

/// Sets it, and prints every setting that was asked for, before and after. Returns the
/// exit code.
int change_account(Module &module, const Machine &machine, Output &output, const Target &target,
                   const AccountChange &change);

/// "reserve off -> 4.00 GiB"
void print_change(const Output &output, const std::string &what, const std::string &before,
                  const std::string &after);

/// Says when nothing enforces what was just set; the exit code.
int report_enforcement(const Output &output, const Enforcement &made);

} // namespace umacct::tool
