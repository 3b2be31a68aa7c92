// SPDX-License-Identifier: GPL-2.0-or-later
/// What shells need to complete a command line of the tool's.
#pragma once

#include <ostream>

#include "docgen/interface.h"

namespace umacct::docgen {

void print_bash(std::ostream &out, const Interface &interface);
void print_zsh(std::ostream &out, const Interface &interface);
void print_fish(std::ostream &out, const Interface &interface);

} // namespace umacct::docgen
