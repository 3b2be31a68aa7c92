// SPDX-License-Identifier: GPL-2.0-or-later
/// Arguments that verbs share, and errors that name the argument they are about.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lib/error.h"
#include "lib/machine.h"
#include "lib/orders/carry_out.h"

namespace CLI {
class App;
}

namespace umacct::tool {

/// Calls read(text); what it throws says which argument the text came from.
template <class Read>
auto read_argument(const char *argument, const std::string &text, Read read) {
    try {
        return read(text);
    } catch (const Error &error) {
        throw Error(error.failure(), fmt::format("{}: {}", argument, error.what()), error.hint());
    }
}

/// The names of the settings that a request changes, by netlink attribute.
using SettingNames = std::vector<std::pair<std::uint16_t, const char *>>;

/// "cannot set hard of /a.slice: REASON"
std::string cannot_set(std::string_view name, std::string_view whose, std::string_view reason);

/// Calls change(). When the module refuses it, the error names the setting that it points at, or
/// all, and whose they are.
void request_change(const std::string &whose, const SettingNames &names,
                    const std::function<void()> &change);

/// Help of arguments that several verbs share.
constexpr const char *target_help = "cgroup path, unit, container, pod or pid";
constexpr const char *subtree_help = "only this cgroup and what is below it";

/// Settings of an account as the user wrote them, by attribute; none where the option wasn't given.
struct SettingOptions {
    std::map<std::uint16_t, std::string> values;
    std::map<std::uint16_t, bool> flags;
};

/// An option for each setting that has one: --hard, --soft, --throttle, --view and --no-view.
void add_setting_options(CLI::App &verb, SettingOptions &options);

/// The value that takes a person's order back.
constexpr std::string_view back_word = "-";

/// Throws Error (usage) that names the option. A share, such as 50%, is of the machine's memory.
PersonChange parse_settings(const SettingOptions &options, const Machine &machine);

/// "8G" or "10%": of the machine's memory. Throws Error (usage).
std::uint64_t parse_machine_size(std::string_view text, const Machine &machine);

/// Adds lines below "Examples:" to the verb's help, before what is at its end.
void add_examples(CLI::App &verb, const std::string &lines);

} // namespace umacct::tool
