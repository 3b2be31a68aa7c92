// SPDX-License-Identifier: GPL-2.0-or-later
#include <clocale>
#include <exception>

#include <CLI/CLI.hpp>

#include "daemon/daemon.h"
#include "daemon/log.h"
#include "lib/error.h"
#include "lib/module/announcements.h"
#include "lib/module/transport.h"

int main(int argc, char **argv) {
    CLI::App app("umacctd keeps limits as /etc/umacct.toml and /etc/umacct.toml.d say.\n"
                 "SIGHUP has it read them again. What it set stays set when it ends.",
                 "umacctd");

    app.set_version_flag("-V,--version", "umacctd " UMACCT_VERSION);
    try {
        app.parse(argc, argv);
        umacct::Daemon(umacct::connect_netlink, umacct::listen_to_controller(), "/proc", "/").run();
        return 0;
    } catch (const CLI::ParseError &error) {
        return app.exit(error) == 0 ? 0 : static_cast<int>(umacct::Failure::usage);
    } catch (const umacct::Error &error) {
        umacct::log_error(error);
        return static_cast<int>(error.failure());
    } catch (const std::exception &error) {
        umacct::log_line(umacct::Level::error, error.what());
        return static_cast<int>(umacct::Failure::failed);
    }
}
