// SPDX-License-Identifier: GPL-2.0-or-later
#include <clocale>
#include <cstdlib>
#include <iostream>
#include <string>

#include <sys/ioctl.h>
#include <unistd.h>

#include "lib/module/transport.h"
#include "lib/observer/observer.h"
#include "tool/app.h"
#include "tool/top/terminal.h"

namespace {

std::string variable(const char *name) {
    const char *value = std::getenv(name);

    return value == nullptr ? "" : value;
}

int terminal_width() {
    winsize size{};

    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

} // namespace

int main(int argc, char **argv) {
    const bool terminal = isatty(STDOUT_FILENO) == 1;
    const bool colour = terminal && variable("NO_COLOR").empty() && !variable("TERM").empty() &&
                        variable("TERM") != "dumb";

    std::setlocale(LC_CTYPE, "");
    return umacct::tool::run_tool(
        argc, argv,
        {.connect = umacct::connect_netlink,
         .output = {.out = std::cout,
                    .err = std::cerr,
                    .colour = colour,
                    .terminal = terminal,
                    .width = terminal ? terminal_width() : 0},
         .open_terminal =
             [colour] { return umacct::tool::open_curses_terminal(colour, std::cerr); },
         .observe = umacct::pinned_observer,
         .observe_meanwhile = umacct::observer_meanwhile});
}
