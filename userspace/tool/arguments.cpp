// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/arguments.h"

#include <charconv>

#include <CLI/CLI.hpp>

#include "lib/error.h"
#include "lib/settings.h"
#include "lib/units.h"

namespace umacct::tool {

std::string cannot_set(std::string_view name, std::string_view whose, std::string_view reason) {
    return fmt::format("cannot set {} of {}: {}", name, whose, reason);
}

void request_change(const std::string &whose, const SettingNames &names,
                    const std::function<void()> &change) {
    try {
        change();
    } catch (const RequestError &error) {
        std::string all;
        std::string one;

        for (const auto &[attribute, name] : names) {
            all += (all.empty() ? "" : ", ") + std::string(name);
            if (attribute == error.attribute())
                one = name;
        }
        throw Error(error.failure(), cannot_set(one.empty() ? all : one, whose, error.what()),
                    error.hint());
    }
}

void add_setting_options(CLI::App &verb, SettingOptions &options) {
    for_each_setting([&](const auto &setting) {
        const std::string option = setting.option;
        const std::uint16_t attribute = setting.attribute;

        if (!option.starts_with("--"))
            return;
        if (setting.kind == SettingKind::flag) {
            const auto add = [&](const std::string &name, const char *help, bool value) {
                return verb.add_flag_callback(
                    name, [&options, attribute, value] { options.flags[attribute] = value; }, help);
            };

            add(option, setting.help, true)
                ->excludes(add("--no" + option.substr(1), setting.help_off, false));
            return;
        }
        verb.add_option_function<std::string>(
                option,
                [&options, attribute](const std::string &text) {
                    options.values[attribute] = text;
                },
                setting.help)
            ->type_name(setting.kind == SettingKind::time ? "TIME" : "SIZE");
    });
}

namespace {

/// A bare number is bytes; one below a page is a size whose unit was forgotten. Throws Error
/// (usage).
void check_unit(std::string_view text) {
    constexpr std::uint64_t page = 4096;
    std::uint64_t bytes = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);

    if (error == std::errc() && end == text.data() + text.size() && bytes > 0 && bytes < page)
        throw Error(Failure::usage, fmt::format("'{}' is {} bytes, less than a page", text, text),
                    fmt::format("write {}G, {}M or {}K", text, text, text));
}

} // namespace

std::uint64_t parse_machine_size(std::string_view text, const Machine &machine) {
    check_unit(text);
    return parse_size_of(text, text.ends_with('%') ? machine.meminfo().total() : 0);
}

PersonChange parse_settings(const SettingOptions &options, const Machine &machine) {
    WrittenSettings written;
    PersonChange change;

    for_each_setting([&]<class Change, class Value, class Neutral>(
                         const Setting<Change, Value, Neutral> &setting) {
        if constexpr (std::is_same_v<Value, bool>) {
            if (const auto flag = options.flags.find(setting.attribute);
                flag != options.flags.end())
                written.exact.*setting.change = flag->second;
        } else if (const auto text = options.values.find(setting.attribute);
                   text != options.values.end()) {
            if (text->second == back_word) {
                change.taken_back.push_back(setting.attribute);
                return;
            }
            read_argument(setting.option, text->second, [&](const std::string &value) {
                if constexpr (std::is_same_v<Value, Limit>)
                    check_unit(value);
                written.read(setting, value);
                return true;
            });
        }
    });
    change.asked = written.on(written.has_shares() ? machine.meminfo().total() : 0);
    return change;
}

void add_examples(CLI::App &verb, const std::string &lines) {
    std::string more = verb.get_footer();
    std::string footer = "Examples:\n  ";

    more.erase(more.find_last_not_of('\n') + 1);
    for (const char c : lines)
        footer += c == '\n' ? "\n  " : std::string(1, c);
    verb.footer(footer + (more.empty() ? "" : "\n\n" + more));
}

} // namespace umacct::tool
