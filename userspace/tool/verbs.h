// SPDX-License-Identifier: GPL-2.0-or-later
/// The verbs. Each function adds its subcommand, which runs when it is parsed.
#pragma once

#include <CLI/CLI.hpp>

#include "tool/context.h"

namespace umacct::tool {

void add_audit(CLI::App &app, Context &context);
void add_charge(CLI::App &app, Context &context);
/// For the shells' completions, and not shown.
void add_complete_targets(CLI::App &app, Context &context);
void add_doctor(CLI::App &app, Context &context);
void add_limit(CLI::App &app, Context &context);
void add_ls(CLI::App &app, Context &context);
void add_ps(CLI::App &app, Context &context);
void add_reserve(CLI::App &app, Context &context);
void add_run(CLI::App &app, Context &context);
void add_show(CLI::App &app, Context &context);
void add_top(CLI::App &app, Context &context);
void add_verify(CLI::App &app, Context &context);
void add_watch(CLI::App &app, Context &context);

/// What the tool prints without a verb.
void print_summary(Context &context);

} // namespace umacct::tool
