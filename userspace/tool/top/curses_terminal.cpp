// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/top/curses_terminal.h"

#include <algorithm>
#include <array>
#include <clocale>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>

#include <langinfo.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define NCURSES_NOMACROS
#include <curses.h>

#include <fmt/ostream.h>

#include "lib/text.h"

namespace umacct::tool {

namespace {

constexpr int escape_delay_ms = 50;
constexpr wint_t delete_character = 0x7F;
constexpr wint_t backspace_character = 0x08;
constexpr wint_t escape_character = 0x1B;

enum Pair : short { uncharged_pair = 1, over_soft_pair, refused_pair };

std::string terminal_name() {
    const char *term = std::getenv("TERM");

    return term == nullptr ? "" : term;
}

bool is_dumb(const std::string &terminal) {
    return terminal.empty() || terminal == "dumb" || terminal == "unknown";
}

/// Signals that end the tool are read as keys, so that the terminal is restored
/// first; SIGWINCH is let through only while waiting, so that none is missed.
class Signals {
public:
    Signals() : ending_(make_ending()), fd_(signalfd(-1, &ending_, SFD_CLOEXEC | SFD_NONBLOCK)) {
        sigset_t blocked = ending_;

        sigaddset(&blocked, SIGWINCH);
        sigprocmask(SIG_BLOCK, &blocked, &before_);
    }

    Signals(const Signals &) = delete;
    Signals &operator=(const Signals &) = delete;
    Signals(Signals &&) = delete;
    Signals &operator=(Signals &&) = delete;

    ~Signals() {
        sigprocmask(SIG_SETMASK, &before_, nullptr);
        if (fd_ >= 0)
            close(fd_);
    }

    int fd() const { return fd_; }

    const sigset_t *while_waiting() const { return &ending_; }

    /// A signal that has come, 0 for none.
    int take() const {
        signalfd_siginfo info{};

        return read(fd_, &info, sizeof(info)) == sizeof(info) ? static_cast<int>(info.ssi_signo)
                                                              : 0;
    }

private:
    static sigset_t make_ending() {
        sigset_t set{};

        sigemptyset(&set);
        for (const int signal : {SIGINT, SIGTERM, SIGQUIT, SIGHUP})
            sigaddset(&set, signal);
        return set;
    }

    sigset_t ending_;
    sigset_t before_{};
    int fd_;
};

struct ScreenDelete {
    void operator()(SCREEN *screen) const {
        if (screen == nullptr)
            return;
        endwin();
        delscreen(screen);
    }
};

class CursesTerminal : public Terminal {
public:
    /// Null screen: the terminal can't be used.
    explicit CursesTerminal(bool colour) : screen_(newterm(nullptr, stdout, stdin)) {
        if (!screen_)
            return;
        unicode_ = std::string_view(nl_langinfo(CODESET)) == "UTF-8";
        cbreak();
        noecho();
        nonl();
        keypad(stdscr, TRUE);
        nodelay(stdscr, TRUE);
        set_escdelay(escape_delay_ms);
        curs_set(0);
        colour_ = colour && has_colors() && start_color() == OK;
        if (colour_) {
            const short background = use_default_colors() == OK ? -1 : COLOR_BLACK;

            init_pair(uncharged_pair, COLOR_YELLOW, background);
            init_pair(over_soft_pair, COLOR_MAGENTA, background);
            init_pair(refused_pair, COLOR_RED, background);
        }
    }

    bool usable() const { return screen_ != nullptr; }

    Size size() const override { return {getmaxy(stdscr), getmaxx(stdscr)}; }

    bool unicode() const override { return unicode_; }

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
            if (const auto key = read_key())
                return key;

            const auto left = std::max(until - std::chrono::steady_clock::now(),
                                       std::chrono::steady_clock::duration::zero());
            const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
            const timespec timeout{ns / 1'000'000'000, ns % 1'000'000'000};
            std::array<pollfd, 2> ready{{{STDIN_FILENO, POLLIN, 0}, {signals_.fd(), POLLIN, 0}}};
            const int count = ppoll(ready.data(), ready.size(), &timeout, signals_.while_waiting());

            if (count == 0)
                return std::nullopt;
            if (count > 0 && ready[1].revents != 0)
                return Key{Key::Code::stop, 0, signals_.take()};
            if (count > 0 && (ready[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0)
                return Key{Key::Code::stop, 0, 0};
        }
    }

private:
    static std::optional<Key> read_key() {
        wint_t code = 0;

        switch (wget_wch(stdscr, &code)) {
        case KEY_CODE_YES:
            return Key{function_key(code), 0, 0};
        case OK:
            return character_key(code);
        default:
            return std::nullopt;
        }
    }

    using Codes = std::pair<wint_t, Key::Code>;

    static Key::Code function_key(wint_t code) {
        static constexpr std::array keys{
            Codes{KEY_UP, Key::Code::up},         Codes{KEY_DOWN, Key::Code::down},
            Codes{KEY_LEFT, Key::Code::left},     Codes{KEY_RIGHT, Key::Code::right},
            Codes{KEY_PPAGE, Key::Code::page_up}, Codes{KEY_NPAGE, Key::Code::page_down},
            Codes{KEY_HOME, Key::Code::home},     Codes{KEY_END, Key::Code::end},
            Codes{KEY_ENTER, Key::Code::enter},   Codes{KEY_BACKSPACE, Key::Code::backspace},
            Codes{KEY_RESIZE, Key::Code::resize}};
        const auto *const key = std::ranges::find(keys, code, &Codes::first);

        return key == keys.end() ? Key::Code::other : key->second;
    }

    static Key character_key(wint_t code) {
        static constexpr std::array keys{Codes{'\r', Key::Code::enter},
                                         Codes{'\n', Key::Code::enter},
                                         Codes{escape_character, Key::Code::escape},
                                         Codes{backspace_character, Key::Code::backspace},
                                         Codes{delete_character, Key::Code::backspace}};
        const auto *const key = std::ranges::find(keys, code, &Codes::first);

        return key == keys.end() ? Key{Key::Code::character, static_cast<char32_t>(code), 0}
                                 : Key{key->second, 0, 0};
    }

    attr_t attributes(const Cell &cell) const {
        const attr_t mark = cell.marked ? A_REVERSE : A_NORMAL;

        switch (cell.tone) {
        case Tone::plain:
            break;
        case Tone::strong:
            return mark | A_BOLD;
        case Tone::faint:
            return mark | A_DIM;
        case Tone::head:
            return mark | A_REVERSE;
        case Tone::head_strong:
            return mark | A_REVERSE | A_BOLD | A_UNDERLINE;
        case Tone::uncharged:
            return mark | coloured(uncharged_pair, A_NORMAL);
        case Tone::over_soft:
            return mark | coloured(over_soft_pair, A_BOLD);
        case Tone::refused:
            return mark | coloured(refused_pair, A_BOLD);
        }
        return mark;
    }

    attr_t coloured(Pair pair, attr_t without) const {
        return colour_ ? static_cast<attr_t>(COLOR_PAIR(pair)) | without : without;
    }

    Signals signals_; // before the screen: ncurses handles signals by itself otherwise
    std::unique_ptr<SCREEN, ScreenDelete> screen_;
    bool unicode_ = false;
    bool colour_ = false;
};

} // namespace

std::unique_ptr<Terminal> open_curses_terminal(bool colour, std::ostream &err) {
    if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1 || is_dumb(terminal_name()))
        return nullptr;
    std::setlocale(LC_CTYPE, "");

    auto terminal = std::make_unique<CursesTerminal>(colour);
    if (!terminal->usable()) {
        fmt::print(err, "note: the terminal '{}' is not known here: no full screen\n",
                   printable(terminal_name()));
        return nullptr;
    }
    return terminal;
}

} // namespace umacct::tool
