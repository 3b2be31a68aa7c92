// SPDX-License-Identifier: GPL-2.0-or-later
#include <cerrno>
#include <chrono>
#include <fstream>
#include <optional>
#include <sstream>

#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/hints.h"
#include "lib/host/umacctd.h"
#include "lib/json.h"
#include "lib/text.h"
#include "lib/units.h"
#include "tool/print/table.h"
#include "tool/session.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

/// Reads the ranking of the guard's last look; empty if there is none. Throws Error.
std::optional<Json> read_ranking(const std::filesystem::path &root) {
    const std::filesystem::path file = root / ranking_file;
    errno = 0;
    std::ifstream in(file);
    std::ostringstream text;

    if (!in && failure_of(errno) == Failure::permission)
        throw Error(Failure::permission, "cannot see what the guard sees: permission denied",
                    run_as_root);
    if (!in)
        return std::nullopt;
    text << in.rdbuf();
    Json ranking = Json::parse(text.str(), nullptr, false);
    if (!ranking.is_object())
        throw Error(Failure::failed, fmt::format("cannot read {}: it is damaged", file.string()),
                    "umacctd writes it anew within seconds");
    return ranking;
}

std::string words_of(const Json &steps) {
    std::string words;

    for (const Json &step : steps)
        words += (words.empty() ? "" : ", ") + step.get<std::string>();
    return words;
}

std::string size_of(const Json &object, const char *key) {
    return format_size(object.at(key).get<std::uint64_t>());
}

void print(const Output &output, const Json &ranking, std::chrono::seconds age) {
    Table table({right("#"),
                 {"CGROUP", Align::left, true},
                 left("KIND"),
                 right("DRIVER"),
                 right("OTHER"),
                 right("GREW"),
                 {"WHY NOT", Align::left, true, true}});
    int place = 0;

    fmt::print(output.out, "{}: {}; available {}, floor {}{}; {} s ago\n",
               ranking.at("dry_run").get<bool>() ? "dry run" : "on", words_of(ranking.at("steps")),
               size_of(ranking, "obtainable_bytes"), size_of(ranking, "floor_bytes"),
               ranking.at("short").get<bool>() ? ": memory is short" : "", age.count());
    for (const Json &each : ranking.at("candidates")) {
        const bool candidate = each.at("candidate").get<bool>();

        table.add({candidate ? std::to_string(++place) : "-",
                   printable(each.at("path").get<std::string>()),
                   each.at("kind").get<std::string>(), size_of(each, "driver_bytes"),
                   size_of(each, "other_bytes"),
                   fmt::format("{} in {} s", size_of(each, "grown_bytes"),
                               each.at("within_s").get<std::int64_t>()),
                   each.at("reason").get<std::string>()});
    }
    if (!table.empty())
        table.print(output);
    if (const Json &last = ranking.at("last"); last.is_object())
        fmt::print(output.out, "last, at {}: {}\n", last.at("time").get<std::string>(),
                   printable(last.at("text").get<std::string>()));
}

} // namespace

int show_guard(const Session &session) {
    const Machine &machine = session.machine;
    const Output &output = session.output;
    const std::optional<Json> ranking = read_ranking(machine.root());
    const auto now = std::chrono::duration_cast<std::chrono::microseconds>(
        std::chrono::steady_clock::now().time_since_epoch());
    const auto age =
        ranking ? now - std::chrono::microseconds(ranking->at("as_of_us").get<std::int64_t>())
                : std::chrono::microseconds(0);

    if (output.json) {
        Json document{{"on", ranking.has_value()}};

        if (ranking) {
            document.update(*ranking);
            document.erase("as_of_us");
            document["age_us"] = age.count();
        }
        output.document(document);
    } else if (ranking) {
        print(output, *ranking, std::chrono::duration_cast<std::chrono::seconds>(age));
    } else {
        fmt::print(output.out, "off\n");
        output.note("it is on where umacctd runs and its policy has a [guard]: umacct.toml(5)");
    }
    return 0;
}

} // namespace umacct::tool
