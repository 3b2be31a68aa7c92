// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/arithmetic.h"
#include "lib/error.h"
#include "lib/history/analysis.h"
#include "lib/history/reader.h"
#include "lib/json.h"
#include "lib/text.h"
#include "lib/units.h"
#include "tool/arguments.h"
#include "tool/history/period.h"
#include "tool/history/times.h"
#include "tool/print/table.h"
#include "tool/print/text.h"
#include "tool/report/plot.h"
#include "tool/report/report.h"
#include "tool/session.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

struct HistoryOptions {
    std::optional<std::string> target;
    AskedTime time;
    ReportOptions report;
    bool csv = false;
    std::int64_t course = 0; ///< number of its moments
};

using history::Boot;
using history::Figure;
using history::Happening;
using history::Holding;
using history::Leak;
using history::Moment;
using history::Named;
using history::Range;

/// Largest number of samples that a moment of a course stands for.
constexpr std::int64_t samples_of_moment = 8;
constexpr std::int64_t most_of_course = 2000;
constexpr std::size_t accounts_shown = 20;
constexpr std::size_t events_shown = 20;

// --- as text ---------------------------------------------------------------------

void print_machine(const Output &output, const Period &period) {
    const auto &before = period.first->state.machine;
    const auto &after = period.last->state.machine;
    Table table({left(), right("THEN"), right("AT THE END")});
    const auto add = [&](const char *title, std::uint64_t then, std::uint64_t end) {
        table.add({title, format_size(then), format_size(end)});
    };

    add("total", before[Figure::total], after[Figure::total]);
    add("available", history::obtainable(before), history::obtainable(after));
    add("free", before[Figure::free], after[Figure::free]);
    add("page cache", history::page_cache(before), history::page_cache(after));
    add("driver, for accounts", before[Figure::usage], after[Figure::usage]);
    add("driver, for itself", before[Figure::driver], after[Figure::driver]);
    add("reserve", before[Figure::reserve], after[Figure::reserve]);
    add("swap used", before[Figure::swap_total] - before[Figure::swap_free],
        after[Figure::swap_total] - after[Figure::swap_free]);
    table.print(output);
}

void print_rows(const Output &output, const Session &session, const Period &period) {
    Table table({left("ACCOUNT"), right("TOTAL"), right("GREW"), right("MOST"), right("DRIVER"),
                 right("CACHE"), right("SWAP"), right("FASTEST"), right("HARD"), right("REFUSED"),
                 right("FAILED")});
    std::size_t shown = 0;

    for (const AccountPeriod &row : period.rows) {
        if (shown++ == accounts_shown)
            break;
        const std::uint64_t hard = row.last[Holding::hard];
        table.add({row.named.owner.empty() ? display_path(session.machine.owners(), row.named.path)
                                           : printable(row.named.owner),
                   format_size(history::total(row.last)),
                   (row.total_grown() < 0 ? "-" : "+") +
                       format_size(static_cast<std::uint64_t>(std::abs(row.total_grown()))),
                   format_size(row.most_total), format_size(row.last[Holding::driver]),
                   format_size(row.last[Holding::cache]), format_size(row.last[Holding::swap]),
                   format_rate(row.fastest),
                   format_limit(hard == UMACCT_UNLIMITED ? Limit() : Limit(hard)),
                   std::to_string(row.rose(Holding::refusals)),
                   std::to_string(row.rose(Holding::failures))});
    }
    table.print(output);
    if (period.rows.size() > accounts_shown)
        fmt::print(output.out, "and {} more\n", period.rows.size() - accounts_shown);
}

/// Returns the name that was recorded, or the present one.
std::string name_of(const Session &session, const Period &period, const std::string &path) {
    const auto found = period.owners.find(path);

    return found != period.owners.end() ? printable(found->second)
                                        : display_path(session.machine.owners(), path);
}

void print_happenings(const Output &output, const Session &session, const Period &period) {
    const std::size_t skipped =
        period.happenings.size() - std::min(period.happenings.size(), events_shown);

    const auto name = [&](const std::string &path) { return name_of(session, period, path); };

    if (period.happenings.empty())
        return;
    fmt::print(output.out, "\n");
    if (skipped > 0)
        fmt::print(output.out, "{} events before these; --json has all\n", skipped);
    for (auto it = period.happenings.begin() + static_cast<std::ptrdiff_t>(skipped);
         it != period.happenings.end(); ++it)
        fmt::print(output.out, "{}  {:<15}  {}{}{}{}\n", history::clock_text(it->time_ms),
                   printable(it->type), it->path.empty() ? "the machine" : name(it->path),
                   it->pid == 0 ? "" : fmt::format("  pid {} ({})", it->pid, printable(it->comm)),
                   "  " + describe(*it, name),
                   it->count > 1 ? fmt::format(", the last of {}", it->count) : "");
}

/// The driver's lines in the kernel's log, beside what they came to.
void print_complaints(const Output &output, const Period &period) {
    const std::uint64_t lines = without(period.last->state.machine[Figure::complaints],
                                        period.first->state.machine[Figure::complaints]);
    std::uint64_t failed = 0;

    for (const Happening &happening : period.happenings)
        failed += happening.type == "failed" ? happening.count : 0;
    if (lines > 0)
        fmt::print(
            output.out,
            "\nThe driver logged NV_ERR_NO_MEMORY {}, once for each try, and had no memory for "
            "{}\n",
            counted(lines, "time", "times"), counted(failed, "request", "requests"));
}

void print_leaks(const Output &output, const Period &period) {
    for (const Leak &leak : period.leaks)
        fmt::print(output.out, "\n{} grows and does not fall: {} in {}, {}/h, {}\n",
                   printable(leak.named.name()), format_size(leak.grown),
                   history::span_text(leak.until_ms - leak.since_ms),
                   format_size(static_cast<std::uint64_t>(leak.bytes_per_hour)),
                   leak.driver ? "through the driver" : "its programs' own memory");
}

void print_period(const Output &output, const Session &session, const Period &period) {
    if (!period.first) {
        fmt::print(output.out, "There are no samples from {} to {}.\n",
                   history::clock_text(period.range.since_ms),
                   history::clock_text(period.range.until_ms));
        return;
    }
    fmt::print(output.out, "From {} to {}, a sample every {}\n\n",
               history::clock_text(period.first->time_ms),
               history::clock_text(period.last->time_ms, period.first->time_ms),
               history::span_text(period.interval_ms));
    print_machine(output, period);
    fmt::print(output.out, "\n");
    print_rows(output, session, period);
    print_happenings(output, session, period);
    print_complaints(output, period);
    print_leaks(output, period);
}

// --- for programs ----------------------------------------------------------------

Json limit_json(std::uint64_t bytes) {
    return bytes == UMACCT_UNLIMITED ? Json() : Json(bytes);
}

Json to_json(const history::Holdings &holdings) {
    Json json = Json::object();

    for (std::size_t i = 0; i < history::Holdings::size(); ++i) {
        const auto which = Holding(i);

        json[key_of(which)] = which == Holding::hard || which == Holding::soft
                                  ? limit_json(holdings[which])
                                  : Json(holdings[which]);
    }
    return json;
}

Json to_json(const history::Figures &machine) {
    Json json = Json::object();

    for (std::size_t i = 0; i < history::Figures::size(); ++i)
        json[key_of(Figure(i))] = machine[Figure(i)];
    return json;
}

Json to_json(const Named &named) {
    return {{"id", named.id},
            {"path", named.path},
            {"owner_name", named.owner.empty() ? Json() : Json(named.owner)}};
}

Json to_json(const Boot &boot) {
    return {{"boot_id", boot.boot_id},
            {"started", utc_text(boot.started_ms)},
            {"first", utc_text(boot.first_ms)},
            {"last", utc_text(boot.last_ms)},
            {"ended", boot.ended_ms ? Json(utc_text(*boot.ended_ms)) : Json()}};
}

Json to_json(const Happening &happening, const Period &period) {
    const auto owner = period.owners.find(happening.path);
    const bool failed = happening.type == "failed" || happening.type == "killed";

    return {{"time", utc_text(happening.time_ms)},
            {"type", happening.type},
            {"path", happening.path.empty() ? Json() : Json(happening.path)},
            {"owner_name", owner == period.owners.end() ? Json() : Json(owner->second)},
            {"limit_path",
             failed || happening.limit_path.empty() ? Json() : Json(happening.limit_path)},
            {"pid", happening.pid},
            {"comm", happening.comm},
            {"size_bytes", happening.size},
            {"usage_bytes", happening.usage},
            {"limit_bytes", failed ? Json() : limit_json(happening.limit)},
            {"holder_path",
             failed && !happening.limit_path.empty() ? Json(happening.limit_path) : Json()},
            {"holder_bytes", failed ? Json(happening.limit) : Json()},
            {"count", happening.count},
            {"text", happening.text}};
}

Json to_json(const Leak &leak) {
    return merged(to_json(leak.named), {{"since", utc_text(leak.since_ms)},
                                        {"until", utc_text(leak.until_ms)},
                                        {"grown_bytes", leak.grown},
                                        {"bytes_per_hour", leak.bytes_per_hour},
                                        {"through_driver", leak.driver}});
}

const char *word_of(history::Kind kind) {
    switch (kind) {
    case history::Kind::not_short:
        return "not_short";
    case history::Kind::driver:
        return "driver";
    case history::Kind::programs:
        return "programs";
    case history::Kind::cache:
        return "cache";
    case history::Kind::many:
        return "many";
    case history::Kind::unknown:
        break;
    }
    return "unknown";
}

const char *word_of(history::Prevention::Way way) {
    switch (way) {
    case history::Prevention::Way::reserve:
        return "reserve";
    case history::Prevention::Way::kernel_limit:
        return "kernel_limit";
    case history::Prevention::Way::headroom:
        return "headroom";
    case history::Prevention::Way::none:
        break;
    }
    return "none";
}

Json to_json(const history::End &end) {
    const history::Prevention &prevention = end.prevention;
    const bool prevents = prevention.way != history::Prevention::Way::none;

    return {{"clean", end.clean},
            {"running", end.running},
            {"kind", word_of(end.kind)},
            {"fell_from", utc_text(end.fell_from_ms)},
            {"low_since", utc_text(end.low_since_ms)},
            {"stalled_percent", end.stalled_percent},
            {"culprit", end.culprit ? merged(to_json(end.culprit->named),
                                             {{"driver_grown_bytes", end.culprit->driver()},
                                              {"grown_bytes", end.culprit->total()},
                                              {"cache_grown_bytes", end.culprit->cache()}})
                                    : Json()},
            {"prevention", prevents ? Json{{"way", word_of(prevention.way)},
                                           {"size_bytes", prevention.bytes},
                                           {"time", utc_text(prevention.time_ms)}}
                                    : Json()},
            {"text", paragraph(end)}};
}

Json to_json(const Band &band) {
    const bool is_account = !band.path.empty();

    return {{"kind", is_account ? "account" : band.style},
            {"name", band.name},
            {"path", is_account ? Json(band.path) : Json()},
            {"bytes", band.bytes}};
}

Json rows_json(const Period &period) {
    Json rows = Json::array();

    for (const AccountPeriod &row : period.rows)
        rows.push_back(merged(merged(to_json(row.named), to_json(row.last)),
                              {{"held_bytes", history::held(row.last)},
                               {"most_bytes", row.most},
                               {"grown_bytes", row.grown()},
                               {"total_bytes", history::total(row.last)},
                               {"total_most_bytes", row.most_total},
                               {"total_grown_bytes", row.total_grown()},
                               {"fastest_bytes_per_s", row.fastest}}));
    return rows;
}

template <class List>
Json list_json(const List &list) {
    Json json = Json::array();

    for (const auto &each : list)
        json.push_back(to_json(each));
    return json;
}

Json to_json(const Plot &plot) {
    return {{"total_bytes", plot.total},
            {"gap_ms", plot.gap_ms},
            {"times_ms", plot.times},
            {"bands", list_json(plot.bands)},
            {"reserve_bytes", plot.reserve}};
}

void print_document(const Output &output, const std::vector<Boot> &boots, const Boot &boot,
                    const std::optional<history::End> &end, const Period &period,
                    std::size_t damaged, const std::optional<Json> &course) {
    const auto figures = [](const std::optional<Moment> &moment) {
        return moment ? to_json(moment->state.machine) : Json();
    };

    Json events = Json::array();
    for (const Happening &happening : period.happenings)
        events.push_back(to_json(happening, period));
    Json document = {{"boots", list_json(boots)},
                     {"boot", to_json(boot)},
                     {"since", period.first ? Json(utc_text(period.first->time_ms)) : Json()},
                     {"until", period.last ? Json(utc_text(period.last->time_ms)) : Json()},
                     {"interval_ms", period.interval_ms},
                     {"damaged_records", damaged},
                     {"end", end ? to_json(*end) : Json()},
                     {"machine_then", figures(period.first)},
                     {"machine", figures(period.last)},
                     {"accounts", rows_json(period)},
                     {"events", events},
                     {"leaks", list_json(period.leaks)}};
    if (course)
        document["course"] = *course;
    output.document(document);
}

/// A text in a table of commas.
std::string quoted(const std::string &text) {
    std::string quoted = "\"";

    for (const char c : printable(text))
        quoted += c == '"' ? "\"\"" : std::string(1, c);
    return quoted + '"';
}

template <class Key>
std::string csv_keys() {
    std::string text;

    for (std::size_t i = 0; i < history::Numbers<Key>::size(); ++i)
        text += fmt::format(",{}", key_of(Key(i)));
    return text;
}

template <class Key>
std::string csv_values(const history::Numbers<Key> &numbers) {
    std::string text;

    for (std::size_t i = 0; i < history::Numbers<Key>::size(); ++i)
        text += numbers[Key(i)] == UMACCT_UNLIMITED ? "," : fmt::format(",{}", numbers[Key(i)]);
    return text;
}

/// Prints the machine's samples; with TARGET, accounts'.
void print_csv(const Output &output, history::Reader &reader, const Boot &boot, const Range &range,
               const Filter &filter) {
    const auto names = reader.accounts(boot);

    fmt::print(output.out, "time{}{}\n", filter.is_set() ? ",path,owner_name" : "",
               filter.is_set() ? csv_keys<Holding>() : csv_keys<Figure>());
    reader.for_each(boot, range, [&](const Moment &moment) {
        if (!filter.is_set()) {
            fmt::print(output.out, "{}{}\n", utc_text(moment.time_ms),
                       csv_values(moment.state.machine));
            return;
        }
        for (const auto &[key, holdings] : moment.state.accounts) {
            const auto name = names.find(key);

            if (name != names.end() && filter.takes(name->second))
                fmt::print(output.out, "{},{},{}{}\n", utc_text(moment.time_ms),
                           quoted(name->second.path), quoted(name->second.owner),
                           csv_values(holdings));
        }
    });
}

/// The document with the memory's course, from as few samples as that takes.
void print_course(const Output &output, const Machine &machine, history::Reader &reader,
                  const std::vector<Boot> &boots, const Boot &boot,
                  const std::optional<history::End> &end, const Range &range, std::int64_t most) {
    const Filter all(machine, {});
    const std::int64_t interval = (range.until_ms - range.since_ms) / (most * samples_of_moment);
    Thinned thinned(range, most);
    const Period period = read_period(reader, boot, range, all, interval,
                                      [&](const Moment &moment) { thinned.take(moment); });
    const auto moments = thinned.end();
    Json course;

    if (!moments.empty())
        course = to_json(make_plot(moments, reader.accounts(boot),
                                   [](const Named &named) { return named.name(); }));
    print_document(output, boots, boot, end, period, reader.damaged(), course);
}

int tell_history(Session &session, const HistoryOptions &options, history::Reader &reader) {
    const Output &output = session.output;

    if (options.course > 0 && !output.json)
        throw Error(Failure::usage, "--course is for --json",
                    "--svg draws it: umacct history --svg memory.svg");
    const std::vector<Boot> boots = reader.boots();
    const std::string current = boot_id(session.machine.proc());
    const Boot &boot = choose_boot(boots, options.time, current);
    const bool runs = boot.boot_id == current;
    const Range range = range_of(options.time, boot, runs);
    const Filter filter(session.machine, options.target);

    if (filter.is_set() && std::ranges::none_of(reader.accounts(boot), [&](const auto &each) {
            return filter.takes(each.second);
        }))
        throw Error(
            Failure::failed,
            fmt::format("'{}' is not in the history of this boot", printable(*options.target)),
            "'umacct history' lists the cgroups that are");
    if (options.csv) {
        print_csv(output, reader, boot, range, filter);
        return 0;
    }
    // A boot that runs on has no end.
    std::optional<history::End> end;
    if (!runs)
        end = history::analyse_end(reader, boot, current);
    if (options.course > 0) {
        print_course(output, session.machine, reader, boots, boot, end, range, options.course);
        return 0;
    }
    const Period period = read_period(reader, boot, range, filter);
    if (output.json) {
        print_document(output, boots, boot, end, period, reader.damaged(), {});
        return 0;
    }
    if (end && !filter.is_set() && !options.time.at)
        fmt::print(output.out, "{}\n\n", paragraph(*end));
    print_period(output, session, period);
    return 0;
}

int history_of(Session &session, const HistoryOptions &options) {
    if (options.report.is_asked_for()) {
        ReportOptions report = options.report;

        report.time = options.time;
        report.file = options.target.value_or(report.file);
        return write_report(session, report);
    }
    if (options.report.redact)
        throw Error(Failure::usage, "--redact is for --html and --svg");
    history::Reader reader(session.machine.root());
    const int code = tell_history(session, options, reader);

    if (reader.damaged() > 0 && !session.output.json)
        fmt::print(session.output.err, "warning: {}\n", damage_text(reader));
    return code;
}

} // namespace

Action add_history(CLI::App &verb) {
    auto options = std::make_shared<HistoryOptions>();

    CLI::Option *target = verb.add_option("TARGET", options->target,
                                          "only this cgroup, unit, container or pod; with --html "
                                          "or --svg the file to write");
    add_time_options(verb, options->time);
    CLI::Option *csv = verb.add_flag(
        "--csv", options->csv, "a row for each sample: of the machine, or with TARGET of accounts");
    verb.add_option("--course", options->course,
                    "with --json: number of moments of the machine's memory, for a picture")
        ->type_name("N")
        ->check(CLI::Range(std::int64_t{2}, most_of_course))
        ->excludes(target)
        ->excludes(csv);
    verb.add_flag("--html", options->report.html,
                  "write a report: all of it as one file, to be sent")
        ->excludes(csv);
    verb.add_flag("--svg", options->report.svg,
                  "write only the picture of the memory's course, as SVG")
        ->excludes(csv);
    verb.add_flag("--redact", options->report.redact, "of both: pseudonyms for names and paths");
    add_examples(verb, "umacct history\n"
                       "umacct history --boot -1\n"
                       "umacct history vllm --since 2h\n"
                       "umacct history --at 03:12\n"
                       "umacct history --html --boot -1 --redact frozen.html");
    return [options](Session &session) { return history_of(session, *options); };
}

} // namespace umacct::tool
