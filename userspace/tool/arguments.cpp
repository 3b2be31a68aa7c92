// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/arguments.h"

#include <CLI/CLI.hpp>

#include "lib/units.h"

namespace umacct::tool {

void request_change(const std::string &subject, const AttributeNames &names,
                    const std::function<void()> &change) {
    try {
        change();
    } catch (const RequestError &error) {
        std::string where = subject;

        for (const auto &[attribute, argument] : names) {
            if (attribute == error.attribute())
                where = where.empty() ? argument : fmt::format("{}: {}", where, argument);
        }
        throw Error(error.failure(),
                    where.empty() ? error.what() : fmt::format("{}: {}", where, error.what()),
                    error.hint());
    }
}

void add_limit_options(CLI::App &verb, LimitOptions &options) {
    verb.add_option("--soft", options.soft, "size above which an event is sent; max for none")
        ->type_name("SIZE");
    verb.add_option("--hard", options.hard,
                    "size that nothing may exceed, or a share of the machine's; max for none")
        ->type_name("SIZE");
    verb.add_option("--throttle", options.throttle,
                    "longest delay of one call above the soft limit, such as 50ms; off for none")
        ->type_name("TIME");
}

std::uint64_t parse_machine_size(std::string_view text, const Machine &machine) {
    return parse_size_of(text, text.ends_with('%') ? machine.meminfo().total() : 0);
}

AccountChange parse_limits(const LimitOptions &options, const Machine &machine) {
    AccountChange change;
    const auto limit = [&](const std::string &text) {
        return text.ends_with('%') ? parse_machine_size(text, machine) : parse_limit(text);
    };

    if (options.soft)
        change.soft = read_argument("--soft", *options.soft, limit);
    if (options.hard)
        change.hard = read_argument("--hard", *options.hard, limit);
    if (options.throttle)
        change.throttle_ns = read_argument("--throttle", *options.throttle, parse_time);
    return change;
}

void add_examples(CLI::App &verb, const std::string &lines) {
    std::string footer = verb.get_footer();

    footer += (footer.empty() ? "Examples:\n  " : "\nExamples:\n  ");
    for (const char c : lines)
        footer += c == '\n' ? "\n  " : std::string(1, c);
    verb.footer(footer);
}

} // namespace umacct::tool
