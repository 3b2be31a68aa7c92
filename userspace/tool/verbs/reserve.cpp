// SPDX-License-Identifier: GPL-2.0-or-later
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/hints.h"
#include "lib/json.h"
#include "lib/units.h"
#include "tool/arguments.h"
#include "tool/print/text.h"
#include "tool/session.h"
#include "tool/settings.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

std::string format_reserve(std::uint64_t bytes) {
    return bytes == 0 ? "off" : format_size(bytes);
}

int reserve(Session &session, const std::optional<std::string> &size) {
    Module &module = session.module();
    const Output &output = session.output;
    const Status before = module.status();
    Status status = before;
    MachineChanged changed;

    if (!size && !status.tells_all())
        throw Error(Failure::permission, "cannot read the reserve: permission denied", run_as_root);
    if (size) {
        const std::uint64_t bytes = read_argument("SIZE", *size, [&](const std::string &text) {
            return text == "off" || text == none_word ? 0
                                                      : parse_machine_size(text, session.machine);
        });

        MachineWish wish;

        wish.module.reserve = bytes;
        changed = change_machine(session, wish);
        status = module.status();
    }

    const Json pools_json = status.pools ? Json(*status.pools) : Json(nullptr);
    if (output.json)
        output.document(merged({{"reserve_bytes", status.reserve},
                                {"before_bytes", before.reserve},
                                {"reserve_count", status.reserve_count},
                                {"available_bytes", status.available},
                                {"pools_bytes", pools_json}},
                               size ? to_json(changed.of_module.made) : Json::object()));
    else if (size)
        print_change(output, "reserve", format_reserve(before.reserve),
                     format_reserve(status.reserve));
    else
        fmt::print(output.out,
                   "reserve {}; {} available to the driver, of it {} in its pools{}; "
                   "{} allocations refused for it\n",
                   format_reserve(status.reserve), format_size(status.available),
                   size_or_unknown(status.pools),
                   status.kept == 0
                       ? ""
                       : fmt::format(", and {} kept by guarantees", format_size(status.kept)),
                   status.reserve_count);
    if (size)
        note_machine(output, changed);
    return report_enforcement(output, changed.of_module.made);
}

} // namespace

Action add_reserve(CLI::App &verb) {
    auto size = std::make_shared<std::optional<std::string>>();

    verb.add_option("SIZE", *size, "how much, such as 8G or 10%, or off; without it, print it");
    add_examples(verb, "umacct reserve\n"
                       "umacct reserve 4G\n"
                       "umacct reserve off");
    return [size](Session &session) { return reserve(session, *size); };
}

} // namespace umacct::tool
