// SPDX-License-Identifier: GPL-2.0-or-later
#include <cstdlib>
#include <iostream>

#include <unistd.h>

#include "lib/netlink.h"
#include "tool/cli.h"

int main(int argc, char **argv) {
    return umacct::tool::run_tool(
        argc, argv,
        {.connect = umacct::connect_netlink,
         .proc = "/proc",
         .out = std::cout,
         .err = std::cerr,
         .colour = isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr});
}
