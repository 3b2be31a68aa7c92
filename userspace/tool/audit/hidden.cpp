// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/audit/hidden.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "lib/units.h"
#include "tool/audit/statement.h"
#include "tool/session.h"

namespace umacct::tool {

bool note_hidden(const Session &session, const Status &status) {
    if (status.tells_all())
        return false;

    const Statement statement =
        machine_statement(session.machine, session.machine.meminfo(status), status);
    const std::int64_t hidden = std::max<std::int64_t>(statement[Part::unexplained], 0);
    session.output.note(fmt::format(
        "what others hold through the driver is not visible to you; with what no counter of the "
        "kernel's has it is {} of the machine's {}: run as root",
        format_size(static_cast<std::uint64_t>(hidden)), format_size(statement.total)));
    return true;
}

} // namespace umacct::tool
