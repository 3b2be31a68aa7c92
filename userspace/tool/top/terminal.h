// SPDX-License-Identifier: GPL-2.0-or-later
/// A full screen and its keyboard, as "top" needs them; tests have their own.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <ostream>

#define NCURSES_NOMACROS
#include <curses.h>

#include "tool/top/grid.h"

namespace umacct::tool {

/// A byte of what is typed, control characters too, or a key by the number that ncurses
/// gives it. Those that have a name here mean something to us.
enum class Key : int {
    escape = 0x1B,
    up = KEY_UP,
    down = KEY_DOWN,
    left = KEY_LEFT,
    right = KEY_RIGHT,
    page_up = KEY_PPAGE,
    page_down = KEY_NPAGE,
    home = KEY_HOME,
    end = KEY_END,
    enter = KEY_ENTER,
    backspace = KEY_BACKSPACE,
    resize = KEY_RESIZE, ///< the size has changed
    stop = ERR,          ///< no key: a signal asks to end, or the terminal is gone
};

class Terminal {
public:
    Terminal() = default;
    Terminal(const Terminal &) = delete;
    Terminal &operator=(const Terminal &) = delete;
    Terminal(Terminal &&) = delete;
    Terminal &operator=(Terminal &&) = delete;
    /// Gives the terminal back as it was. A signal that asked to end does so then.
    virtual ~Terminal() = default;

    virtual Size size() const = 0;
    virtual void show(const Grid &grid) = 0;
    /// The next key; empty when none came in that time.
    virtual std::optional<Key> wait(std::chrono::milliseconds time) = 0;
};

/// Takes the whole screen of the terminal on standard input and output, through ncurses;
/// null where there is none, or one that can't do that. SIGINT, SIGTERM, SIGQUIT and SIGHUP
/// are keys then, until it is given back. Says on err when TERM names a terminal that is
/// not known here.
std::unique_ptr<Terminal> open_curses_terminal(bool colour, std::ostream &err);

} // namespace umacct::tool
