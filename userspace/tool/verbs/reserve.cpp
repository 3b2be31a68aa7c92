// SPDX-License-Identifier: GPL-2.0-or-later
#include <memory>

#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/json.h"
#include "lib/units.h"
#include "tool/argument.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

std::uint64_t parse_reserve(const std::string &text) {
    return text == "off" ? 0 : parse_size(text);
}

void print(Context &context) {
    const Status status = context.module().status();
    const std::uint64_t available = context.meminfo().available();

    if (context.json) {
        print_json(context.out(), merged(json_document(), {{"reserve", status.reserve},
                                                           {"reserve_count", status.reserve_count},
                                                           {"available", available}}));
        return;
    }
    if (status.reserve == 0)
        fmt::print(context.out(), "no reserve; {} available\n", format_size(available));
    else
        fmt::print(context.out(), "reserve {}; {} available; {} allocations refused for it\n",
                   format_size(status.reserve), format_size(available), status.reserve_count);
}

void reserve(Context &context, const std::optional<std::string> &size) {
    if (size) {
        const std::uint64_t bytes = read_argument("SIZE", *size, parse_reserve);

        request_change("", {{UMACCT_A_STATUS_RESERVE, "SIZE"}},
                       [&] { context.module().set_reserve(bytes); });
    }
    if (!size || context.json)
        print(context);
}

} // namespace

void add_reserve(CLI::App &app, Context &context) {
    auto size = std::make_shared<std::optional<std::string>>();
    CLI::App *verb = app.add_subcommand("reserve", "memory that the driver must leave available");

    verb->add_option("SIZE", *size, "how much, or off; nothing to print it");
    verb->footer(
        "What would push the machine's MemAvailable under the reserve is refused, so that\n"
        "the system stays alive when a program takes all it can get. What is held already\n"
        "stays. Setting takes root.\n"
        "\n"
        "Examples:\n"
        "  umacct reserve\n"
        "  umacct reserve 4G\n"
        "  umacct reserve off");
    verb->callback([size, &context] { reserve(context, *size); });
}

} // namespace umacct::tool
