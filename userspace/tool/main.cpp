// SPDX-License-Identifier: GPL-2.0-or-later
#include <clocale>
#include <cstdlib>
#include <iostream>
#include <string>

#include <fcntl.h>
#ifdef UMACCT_STATIC
#include <nss.h>
#endif
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

/// Opens /dev/null in place of closed standard files: the next file that is opened would take the
/// number, and a socket would get the output.
void open_what_is_closed() {
    for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (fcntl(file, F_GETFD) < 0)
            static_cast<void>(open(file == STDOUT_FILENO ? "/dev/full" : "/dev/null", O_RDWR));
    }
}

} // namespace

int main(int argc, char **argv) {
    open_what_is_closed();
#ifdef UMACCT_STATIC
    // Other sources of names are libraries of this machine's libc, which may be another one.
    for (const char *database : {"passwd", "group", "initgroups"})
        __nss_configure_lookup(database, "files");
#endif
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
