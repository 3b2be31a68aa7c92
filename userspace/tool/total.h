// SPDX-License-Identifier: GPL-2.0-or-later
/// One limit for all memory of a cgroup: charging, and the kernel's memory.max.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lib/machine.h"
#include "lib/module/module.h"
#include "lib/orders/carry_out.h"
#include "tool/output.h"

namespace CLI {
class App;
}

namespace umacct::tool {

/// The name that "set" has for it, and its help.
constexpr const char *total_key = "total";
constexpr const char *total_help =
    "bound all its memory, driver and programs: charging and memory.max; a size, or max";

/// Adds --total, into text.
void add_total_option(CLI::App &verb, std::string &text);

/// Reads a value: bytes, or UMACCT_UNLIMITED for "max". Throws Error (usage).
std::uint64_t parse_total(const std::string &text, const Machine &machine);

/// The same of --total.
std::uint64_t parse_total_option(const std::string &text, const Machine &machine);

/// Adds the charging that goes with it: on, or as without a person's order.
void charge_for_total(std::uint64_t bytes, PersonChange &change);

/// A memory.max that was set.
struct TotalChange {
    std::uint64_t before = UMACCT_UNLIMITED;
    std::uint64_t after = UMACCT_UNLIMITED;
};

/// Sets memory.max and calls set(), which sets the charging; takes memory.max back if that throws.
/// Throws Error.
TotalChange set_total(const Machine &machine, const Target &target, std::uint64_t bytes,
                      const std::function<void()> &set);

/// Prints the change; a note says which driver memory does not count as it was taken before.
void report_total(const Output &output, const TotalChange &total, const Account &account);

} // namespace umacct::tool
