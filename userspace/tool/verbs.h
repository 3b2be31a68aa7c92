// SPDX-License-Identifier: GPL-2.0-or-later
/// The verbs. A verb is a file with a function that adds what it takes to its parser,
/// and a row in verbs.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "lib/observer/observer.h"

namespace CLI {
class App;
}

namespace umacct {
class Machine;
}

namespace umacct::tool {

struct Session;

/// Runs a parsed command line, and returns its exit code. Throws Error.
using Action = std::function<int(Session &)>;

/// A row of the table; see verbs().
struct Verb {
    const char *name;
    const char *group;   ///< empty: not shown
    const char *summary; ///< empty: not shown
    Action (*add)(CLI::App &verb);
};

std::span<const Verb> verbs();

Action add_audit(CLI::App &verb);
Action add_charge(CLI::App &verb);
Action add_complete(CLI::App &verb, std::span<const Verb> verbs);
Action add_config(CLI::App &verb);
Action add_doctor(CLI::App &verb);
Action add_headroom(CLI::App &verb);
Action add_history(CLI::App &verb);
Action add_limit(CLI::App &verb);
Action add_ls(CLI::App &verb);
Action add_preflight(CLI::App &verb);
Action add_ps(CLI::App &verb);
Action add_reserve(CLI::App &verb);
Action add_run(CLI::App &verb);
Action add_set(CLI::App &verb);
Action add_setup(CLI::App &verb);
Action add_show(CLI::App &verb);
Action add_top(CLI::App &verb);
Action add_verify(CLI::App &verb);
Action add_view(CLI::App &verb);
Action add_watch(CLI::App &verb);
Action add_web(CLI::App &verb);

/// "show guard": the cgroups that umacctd's guard would act against.
int show_guard(const Session &session);

/// "preflight --fix" without a size: gives back what the driver keeps in its pools.
int empty_pools(Session &session);

/// "run --nvml": makes programs that are started from now on find umacct's library for NVML.
void use_nvml(const Machine &machine);
/// Runs the session's command with it, in place of this program.
int run_with_nvml(const Session &session);

/// "setup observer".
struct ObserverOptions {
    std::string state; ///< the wanted one: on, off or auto; empty to print it
    std::uint32_t records = usual_records;
};

int control_observer(Session &session, const ObserverOptions &options);

/// "config save" and "config load".
int save_settings(Session &session);
int load_settings(Session &session, const std::string &file, bool dry_run);

/// Prints the summary that the tool shows without a verb.
int print_summary(Session &session);

} // namespace umacct::tool
