// SPDX-License-Identifier: GPL-2.0-or-later
/// The terminal that the tool runs on, through ncurses.
#pragma once

#include <memory>
#include <ostream>

#include "tool/top/terminal.h"

namespace umacct::tool {

/// Takes the whole screen of the terminal on standard input and output; null where
/// there is none, or one that can't do that. SIGINT, SIGTERM, SIGQUIT and SIGHUP
/// are keys then, until it is given back. Says on err when TERM names a terminal that
/// is not known here.
std::unique_ptr<Terminal> open_curses_terminal(bool colour, std::ostream &err);

} // namespace umacct::tool
