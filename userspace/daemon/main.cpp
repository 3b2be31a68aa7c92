// SPDX-License-Identifier: GPL-2.0-or-later
#include <clocale>
#include <exception>

#include <CLI/CLI.hpp>
#include <sys/stat.h>

#include "daemon/daemon.h"
#include "lib/error.h"
#include "lib/module/announcements.h"
#include "lib/module/transport.h"
#include "lib/observer/observer.h"
#include "service/log.h"

int main(int argc, char **argv) {
    CLI::App app("umacctd keeps limits as /etc/umacct.toml and /etc/umacct.toml.d say.\n"
                 "SIGHUP has it read them again. What it set stays set when it ends.",
                 "umacctd");

    app.set_version_flag("-V,--version", "umacctd " UMACCT_VERSION);
    // Its files have data of all tenants.
    umask(S_IRWXG | S_IRWXO);
    try {
        app.parse(argc, argv);
        const umacct::LogThread log;
        umacct::Daemon(umacct::connect_netlink, umacct::listen_to_controller(), "/proc", "/",
                       {.connect = umacct::pinned_observer, .end = umacct::end_observing})
            .run();
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
