// SPDX-License-Identifier: GPL-2.0-or-later
/// Limits as options of a verb.
#pragma once

#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "tool/context.h"

namespace umacct::tool {

/// As the user wrote them; none where the option wasn't given.
struct LimitOptions {
    std::optional<std::string> soft;
    std::optional<std::string> hard;
    std::optional<std::string> throttle;
};

/// --soft and --hard.
void add_limit_options(CLI::App &verb, LimitOptions &options);

/// Throws Error (usage) that names the option.
AccountChange parse_limits(const LimitOptions &options);

/// Sets them; an error names the target and the option.
void set_limits(Context &context, const Target &target, const AccountChange &change);

} // namespace umacct::tool
