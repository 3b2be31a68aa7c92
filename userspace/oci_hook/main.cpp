// SPDX-License-Identifier: GPL-2.0-or-later
#include <array>
#include <cerrno>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>

#include <syslog.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/module/transport.h"
#include "oci_hook/hook.h"
#include "oci_hook/state.h"

namespace {

/// Reads the runtime's state, up to a bound.
std::string read_input() {
    std::array<char, 16384> buffer{};
    std::string text;

    while (text.size() <= umacct::oci_hook::largest_state) {
        const ssize_t size = read(STDIN_FILENO, buffer.data(), buffer.size());

        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0)
            break;
        text.append(buffer.data(), static_cast<std::size_t>(size));
    }
    return text;
}

} // namespace

int main(int argc, char **argv) {
    const std::string_view option = argc > 1 ? argv[1] : "";

    if (option == "-V" || option == "--version") {
        std::cout << "umacct-hook " UMACCT_VERSION "\n";
        return 0;
    }
    if (argc > 1) {
        std::cerr << "umacct-hook: a container runtime runs it, with no options: see "
                     "umacct-hook(8)\n";
        return static_cast<int>(umacct::Failure::usage);
    }
    try {
        std::ostringstream said;
        const int code =
            umacct::oci_hook::run_hook(read_input(), {umacct::connect_netlink, "/proc", "/", said});

        std::cerr << said.str();
        // Not every runtime passes on what its hooks say.
        if (!said.str().empty())
            syslog(LOG_DAEMON | LOG_ERR, "%s", said.str().c_str());
        return code;
    } catch (const std::exception &error) {
        std::cerr << "umacct-hook: " << error.what() << '\n';
        return static_cast<int>(umacct::Failure::failed);
    }
}
