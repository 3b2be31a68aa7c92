// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/top/terminal.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <string>
#include <utility>

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <fmt/ostream.h>

#include "lib/host/file_descriptor.h"
#include "lib/text.h"

namespace umacct::tool {

namespace {

constexpr int escape_delay_ms = 50;

/// Signals that end the tool are left pending until the terminal is restored.
constexpr std::array ending{SIGINT, SIGTERM, SIGQUIT, SIGHUP};

sigset_t ending_signals() {
    sigset_t set{};

    sigemptyset(&set);
    for (const int signal : ending)
        sigaddset(&set, signal);
    return set;
}

struct Look {
    attr_t attributes = A_NORMAL;
    short colour = 0; ///< set on terminals with colours; 0 for none
};

/// How each Tone looks, in their order.
constexpr std::array looks{Look{A_NORMAL},
                           Look{A_BOLD},
                           Look{A_DIM},
                           Look{A_UNDERLINE},
                           Look{A_UNDERLINE | A_BOLD},
                           Look{A_NORMAL, COLOR_YELLOW},
                           Look{A_BOLD, COLOR_MAGENTA},
                           Look{A_BOLD, COLOR_RED}};

struct Restore {
    sigset_t signals;

    void operator()(SCREEN *screen) const {
        endwin();
        delscreen(screen);
        // ncurses may have put its own handlers there.
        for (const int signal : ending)
            std::signal(signal, SIG_DFL);
        sigprocmask(SIG_SETMASK, &signals, nullptr);
    }
};

using Screen = std::unique_ptr<SCREEN, Restore>;

/// Null where the terminal can't be used.
Screen open_screen() {
    sigset_t blocked = ending_signals();
    sigset_t before{};

    // Signals first: ncurses installs handlers otherwise. SIGWINCH is unblocked only while waiting,
    // so that none is missed.
    sigaddset(&blocked, SIGWINCH);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    Screen screen(newterm(nullptr, stdout, stdin), Restore{before});
    // A terminal that this machine has no description of, as after ssh from a newer one.
    if (!screen)
        screen.reset(newterm("xterm", stdout, stdin));
    if (!screen)
        sigprocmask(SIG_SETMASK, &before, nullptr);
    return screen;
}

class CursesTerminal : public Terminal {
public:
    CursesTerminal(Screen screen, bool colour)
        : screen_(std::move(screen)), colour_(colour && start_colours()) {
        cbreak();
        noecho();
        nonl();
        keypad(stdscr, TRUE);
        nodelay(stdscr, TRUE);
        set_escdelay(escape_delay_ms);
        curs_set(0);
    }

    Size size() const override { return {getmaxy(stdscr), getmaxx(stdscr)}; }

    void show(const Grid &grid) override {
        werase(stdscr);
        for (int row = 0; row < grid.size().rows; ++row) {
            wmove(stdscr, row, 0);
            for (const Cell &cell : grid.row(row)) {
                wattrset(stdscr, static_cast<int>(attributes(cell)));
                waddstr(stdscr, cell.text.c_str());
            }
        }
        wrefresh(stdscr);
    }

    std::optional<Key> wait(std::chrono::milliseconds time) override {
        const auto until = std::chrono::steady_clock::now() + time;

        while (true) {
            switch (const int key = wgetch(stdscr)) {
            case ERR:
                break;
            case '\r':
            case '\n':
                return Key::enter;
            case '\b':
            case 0x7F:
                return Key::backspace;
            default:
                return Key{key};
            }

            const auto left = std::max<std::chrono::nanoseconds>(
                until - std::chrono::steady_clock::now(), std::chrono::nanoseconds::zero());
            const timespec timeout{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
            std::array<pollfd, 2> ready{{{STDIN_FILENO, POLLIN, 0}, {asked_.get(), POLLIN, 0}}};
            const int count = ppoll(ready.data(), ready.size(), &timeout, &ending_);

            if (count == 0)
                return std::nullopt;
            if (count > 0 &&
                (ready[1].revents != 0 || (ready[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0))
                return Key::stop;
        }
    }

private:
    static bool start_colours() {
        if (!has_colors() || start_color() != OK)
            return false;

        const short background = use_default_colors() == OK ? -1 : COLOR_BLACK;
        // A pair has its colour's number.
        for (const Look &look : looks) {
            if (look.colour != 0)
                init_pair(look.colour, look.colour, background);
        }
        return true;
    }

    attr_t attributes(const Cell &cell) const {
        const Look &look = looks.at(static_cast<std::size_t>(cell.tone));
        const auto colour = static_cast<attr_t>(colour_ ? COLOR_PAIR(look.colour) : 0);

        return (cell.marked ? A_REVERSE : A_NORMAL) | look.attributes | colour;
    }

    sigset_t ending_ = ending_signals();
    FileDescriptor asked_{signalfd(-1, &ending_, SFD_CLOEXEC)}; ///< readable once one is pending
    Screen screen_;
    bool colour_;
};

} // namespace

std::unique_ptr<Terminal> open_curses_terminal(bool colour, std::ostream &err) {
    const char *term = std::getenv("TERM");
    const std::string name = term == nullptr ? "" : term;

    if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1 || name.empty() || name == "dumb" ||
        name == "unknown")
        return nullptr;

    Screen screen = open_screen();
    if (!screen) {
        fmt::print(err, "note: the terminal '{}' is not known here: no full screen\n",
                   printable(name));
        return nullptr;
    }
    return std::make_unique<CursesTerminal>(std::move(screen), colour);
}

} // namespace umacct::tool
