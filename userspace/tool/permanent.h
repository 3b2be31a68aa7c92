// SPDX-License-Identifier: GPL-2.0-or-later
/// "--permanent": a change as a rule of the policy, for a cgroup that need not be there yet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/orders/carry_out.h"

namespace umacct::tool {

struct Session;

/// "hard = "42949672960"", a line for each setting of the change, as a rule has it.
std::string rule_lines(const AccountChange &change);

/// Puts a text in quotes, as TOML has it.
std::string quoted(const std::string &text);

/// Writes the rule, and carries it out where the cgroup is there. total: the rule's, which systemd
/// sets. Returns the exit code.
int change_for_good(Session &session, const std::string &target, const PersonChange &asked,
                    std::optional<std::uint64_t> total = {});

/// The option's help.
constexpr const char *permanent_help =
    "write a rule to /etc/umacct.toml.d, for this cgroup now and whenever it is made again";

} // namespace umacct::tool
