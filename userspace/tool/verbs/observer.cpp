// SPDX-License-Identifier: GPL-2.0-or-later
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/observer/observer.h"
#include "lib/policy/policy.h"
#include "lib/units.h"
#include "tool/arguments.h"
#include "tool/session.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

/// Since when, since the epoch; empty where it doesn't run.
std::optional<std::uint64_t> since() {
    const auto transport = pinned_observer();

    if (!transport)
        return std::nullopt;
    return decode<Status>(transport->request(UMACCT_CMD_STATUS_GET, {})).since_ns;
}

struct ObserverOptions {
    std::string word;
    std::uint32_t records = usual_records;
};

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

/// A policy that is wrong says nothing of it; umacctd tells what is wrong.
bool is_wanted(const Machine &machine) {
    try {
        return read_policy(policy_files(machine.root())).observer.value_or(true);
    } catch (const PolicyError &) {
        return true;
    }
}

/// What umacctd's start has it do: the module counts where it is loaded.
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

int control(Session &session, const ObserverOptions &options) {
    const Output &output = session.output;

    if (options.word == "on")
        begin_observing(options.records);
    else if (options.word == "off")
        end_observing();
    else if (options.word == "auto")
        begin_where_needed(session, options.records);

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

} // namespace

Action add_observer(CLI::App &verb) {
    auto options = std::make_shared<ObserverOptions>();

    verb.add_option("STATE", options->word,
                    "on: begin to count; off: end, and forget what was counted; auto: on where the "
                    "module isn't loaded and the policy doesn't say otherwise")
        ->check(CLI::IsMember({"on", "off", "auto"}));
    verb.add_option("-r,--records", options->records,
                    "allocations that live at once and are known; default: 1048576")
        ->check(CLI::Range(1U, usual_records * 16));
    add_examples(verb, "umacct observer\n"
                       "umacct observer on\n"
                       "umacct observer off");
    return [options](Session &session) { return control(session, *options); };
}

} // namespace umacct::tool
