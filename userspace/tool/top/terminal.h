// SPDX-License-Identifier: GPL-2.0-or-later
/// A full screen and its keyboard, as "top" needs them; tests have their own.
#pragma once

#include <chrono>
#include <optional>

#include "tool/top/grid.h"

namespace umacct::tool {

struct Key {
    enum class Code {
        character,
        up,
        down,
        left,
        right,
        page_up,
        page_down,
        home,
        end,
        enter,
        escape,
        backspace,
        resize, ///< the size has changed
        other,  ///< any key that means nothing here
        stop,   ///< no key: a signal asks to end, or the terminal is gone
    };

    Code code = Code::other;
    char32_t character = 0; ///< of Code::character, control characters too
    int signal = 0;         ///< of Code::stop; 0 when the terminal is gone
};

class Terminal {
public:
    Terminal() = default;
    Terminal(const Terminal &) = delete;
    Terminal &operator=(const Terminal &) = delete;
    Terminal(Terminal &&) = delete;
    Terminal &operator=(Terminal &&) = delete;
    /// Gives the terminal back as it was.
    virtual ~Terminal() = default;

    virtual Size size() const = 0;
    /// Whether it shows UTF-8.
    virtual bool unicode() const = 0;
    virtual void show(const Grid &grid) = 0;
    /// The next key; empty when none came in that time.
    virtual std::optional<Key> wait(std::chrono::milliseconds time) = 0;
};

} // namespace umacct::tool
