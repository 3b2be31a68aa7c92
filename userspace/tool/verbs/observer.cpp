// SPDX-License-Identifier: GPL-2.0-or-later
#include <optional>
#include <string>

#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/observer/observer.h"
#include "lib/policy/policy.h"
#include "lib/units.h"
#include "tool/session.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

/// Returns the start of its counting, since the epoch; empty if it doesn't run.
std::optional<std::uint64_t> since() {
    const auto transport = pinned_observer();

    if (!transport)
        return std::nullopt;
    return decode<Status>(transport->request(UMACCT_CMD_STATUS_GET, {})).since_ns;
}

bool is_loaded(Session &session) {
    try {
        session.connection.loaded();
        return true;
    } catch (const Error &error) {
        if (error.failure() != Failure::missing)
            throw;
        return false;
    }
}

/// A policy that is wrong says nothing of it; umacctd logs the error.
bool is_wanted(const Machine &machine) {
    try {
        return read_policy(policy_files(machine.root())).observer.value_or(true);
    } catch (const PolicyError &) {
        return true;
    }
}

/// Starts the observer for umacctd, unless the module is loaded.
void begin_where_needed(Session &session, std::uint32_t records) {
    if (is_loaded(session)) {
        end_observing();
        session.output.note("the module is loaded, and counts");
    } else if (is_wanted(session.machine)) {
        begin_observing(records);
    } else {
        session.output.note("the policy has 'observer = false'");
    }
}

} // namespace

int control_observer(Session &session, const ObserverOptions &options) {
    const Output &output = session.output;

    if (options.state == "on") {
        output.note("loading the BPF programs, which takes some seconds");
        begin_observing(options.records);
    } else if (options.state == "off") {
        end_observing();
    } else if (options.state == "auto") {
        begin_where_needed(session, options.records);
    }

    const auto began = since();
    if (output.json)
        output.document(
            {{"observer", began.has_value()}, {"since_ns", began ? Json(*began) : Json(nullptr)}});
    else if (began)
        fmt::print(output.out, "on: what was allocated since {} is known\n", format_clock(*began));
    else
        fmt::print(output.out, "off\n");
    return 0;
}

} // namespace umacct::tool
