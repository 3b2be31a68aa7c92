// SPDX-License-Identifier: GPL-2.0-or-later
#include <CLI/CLI.hpp>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/json.h"
#include "lib/units.h"
#include "tool/arguments.h"
#include "tool/print/text.h"
#include "tool/session.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

int reclaim(Session &session) {
    const Output &output = session.output;
    const Reclaim made = session.module().reclaim();
    if (output.json)
        output.document(to_json(made));
    else
        fmt::print(output.out, "{} reclaimed, {} left in the driver's pools\n",
                   format_size(made.reclaimed), size_or_unknown(made.pools));
    return 0;
}

} // namespace

Action add_reclaim(CLI::App &verb) {
    add_examples(verb, "umacct reclaim");
    return reclaim;
}

} // namespace umacct::tool
