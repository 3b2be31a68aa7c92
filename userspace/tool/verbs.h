// SPDX-License-Identifier: GPL-2.0-or-later
/// The verbs. A verb is a file with a function that adds what it takes to its parser,
/// and a row in verbs.cpp.
#pragma once

#include <functional>
#include <span>

namespace CLI {
class App;
}

namespace umacct::tool {

struct Session;

/// What runs when the command line was understood; its exit code. Throws Error.
using Action = std::function<int(Session &)>;

/// A row of the table; see verbs().
struct Verb {
    const char *name;
    const char *summary; ///< empty: not shown
    Action (*add)(CLI::App &verb);
};

std::span<const Verb> verbs();

Action add_audit(CLI::App &verb);
Action add_charge(CLI::App &verb);
Action add_complete(CLI::App &verb, std::span<const Verb> verbs);
Action add_config(CLI::App &verb);
Action add_doctor(CLI::App &verb);
Action add_guard(CLI::App &verb);
Action add_headroom(CLI::App &verb);
Action add_history(CLI::App &verb);
Action add_limit(CLI::App &verb);
Action add_ls(CLI::App &verb);
Action add_nvml(CLI::App &verb);
Action add_observer(CLI::App &verb);
Action add_preflight(CLI::App &verb);
Action add_ps(CLI::App &verb);
Action add_reclaim(CLI::App &verb);
Action add_report(CLI::App &verb);
Action add_reserve(CLI::App &verb);
Action add_restore(CLI::App &verb);
Action add_run(CLI::App &verb);
Action add_save(CLI::App &verb);
Action add_set(CLI::App &verb);
Action add_setup(CLI::App &verb);
Action add_show(CLI::App &verb);
Action add_top(CLI::App &verb);
Action add_verify(CLI::App &verb);
Action add_view(CLI::App &verb);
Action add_watch(CLI::App &verb);

/// What the tool prints without a verb.
int print_summary(Session &session);

} // namespace umacct::tool
