// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/total.h"

#include <algorithm>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "lib/error.h"
#include "lib/text.h"
#include "lib/units.h"
#include "tool/arguments.h"
#include "tool/print/text.h"
#include "tool/settings.h"

namespace umacct::tool {

namespace {

constexpr const char *file = "memory.max";

std::string text_of(std::uint64_t bytes) {
    return bytes == UMACCT_UNLIMITED ? "max" : std::to_string(bytes);
}

} // namespace

void add_total_option(CLI::App &verb, std::string &text) {
    verb.add_option("--total", text, total_help)->type_name("SIZE");
}

std::uint64_t parse_total(const std::string &text, const Machine &machine) {
    return parse_amount(text).of(text.ends_with('%') ? machine.meminfo().total() : 0);
}

std::uint64_t parse_total_option(const std::string &text, const Machine &machine) {
    return read_argument("--total", text,
                         [&](const std::string &size) { return parse_total(size, machine); });
}

void charge_for_total(std::uint64_t bytes, PersonChange &change) {
    if (bytes == UMACCT_UNLIMITED)
        change.taken_back.push_back(UMACCT_A_ACCOUNT_CHARGE);
    else
        change.asked.charge = UMACCT_CHARGE_ON;
}

TotalChange set_total(const Machine &machine, const Target &target, std::uint64_t bytes,
                      const std::function<void()> &set) {
    const Cgroups &cgroups = machine.cgroups();
    const auto before = cgroups.number(target.path, file);

    if (!before)
        throw Error(Failure::failed,
                    fmt::format("cannot set total of {}: its cgroup has no memory controller",
                                printable(target.path)),
                    "name a cgroup above it that has memory.max, or use --hard");
    cgroups.write(target.path, file, text_of(bytes));
    try {
        set();
    } catch (...) {
        cgroups.try_write(target.path, file, text_of(*before));
        throw;
    }
    return {.before = *before, .after = bytes};
}

void report_total(const Output &output, const TotalChange &total, const Account &account) {
    if (!output.json)
        print_change(output, total_key, format_known(total.before), format_known(total.after));
    const std::uint64_t before =
        account.uncharged() - std::min(account.uncharged(), account.metadata);

    if (before > 0 && total.after != UMACCT_UNLIMITED)
        output.note(
            fmt::format("{} of driver memory that it holds already does not count: what was "
                        "taken before charging was on stays uncharged until it is freed",
                        format_size(before)));
}

} // namespace umacct::tool
