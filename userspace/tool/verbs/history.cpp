// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/history/analysis.h"
#include "lib/history/reader.h"
#include "lib/json.h"
#include "lib/text.h"
#include "lib/units.h"
#include "tool/arguments.h"
#include "tool/history/times.h"
#include "tool/print/table.h"
#include "tool/print/text.h"
#include "tool/session.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

using history::Boot;
using history::Figure;
using history::Happening;
using history::Holding;
using history::Leak;
using history::Moment;
using history::Named;
using history::Range;

constexpr std::int64_t hour_ms = 3'600'000;
/// With --at, how far back the growth is looked for.
constexpr std::int64_t at_window_ms = 600'000;
/// Rates are of so long a time at the least.
constexpr std::int64_t rate_window_ms = 10'000;
constexpr std::size_t accounts_shown = 20;
constexpr std::size_t events_shown = 20;

struct Options {
    std::optional<std::string> target;
    std::optional<std::string> since;
    std::optional<std::string> until;
    std::optional<std::string> at;
    std::optional<int> boot;
    bool csv = false;
};

/// One account, over the time that is asked for.
struct Row {
    Named named;
    history::Holdings first;
    history::Holdings last;
    std::uint64_t most = 0;
    std::int64_t fastest = 0; ///< bytes per second, over rate_window_ms at the most
    bool there = false;       ///< at the end

    // To find the fastest.
    std::int64_t rated_ms = 0;
    std::uint64_t rated = 0;

    std::int64_t grown() const {
        return static_cast<std::int64_t>(history::held(last) - history::held(first));
    }
};

/// All that is to be told of a time.
struct Period {
    Range range;
    std::optional<Moment> first;
    std::optional<Moment> last;
    std::int64_t interval_ms = 0; ///< of the coarsest samples in it
    std::vector<Row> rows;        ///< by what they hold at its end
    std::vector<Happening> happenings;
    std::vector<Leak> leaks;
};

std::int64_t now_ms() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

/// What of the history is about TARGET: by what its cgroups were called, as they may be gone.
class Filter {
public:
    Filter(const Session &session, std::optional<std::string> target) : target_(std::move(target)) {
        if (!target_)
            return;
        try {
            path_ = session.machine.resolve(*target_).path;
        } catch (const Error &) { // NOLINT(bugprone-empty-catch): it was there once, perhaps
        }
    }

    bool takes(const Named &named) const {
        if (!target_)
            return true;
        if (!path_.empty() && is_at_or_below(named.path, path_))
            return true;
        return is_at_or_below(named.path, *target_) || named.owner == *target_ ||
               named.owner.ends_with(' ' + *target_) || has_component(named.path, *target_) ||
               has_component(named.path, *target_ + ".service");
    }

    bool is_set() const { return target_.has_value(); }

private:
    static bool is_at_or_below(const std::string &path, const std::string &top) {
        return top == "/" || path == top || path.starts_with(top + '/');
    }

    static bool has_component(const std::string &path, const std::string &name) {
        return (path + '/').find('/' + name + '/') != std::string::npos;
    }

    std::optional<std::string> target_;
    std::string path_;
};

const Boot &choose_boot(const std::vector<Boot> &boots, const Options &options) {
    if (boots.empty())
        throw Error(Failure::missing, "nothing was recorded yet",
                    "umacctd records it: systemctl enable --now umacctd");
    const int back = -options.boot.value_or(0);

    if (back < 0)
        throw Error(Failure::usage, "--boot: 0 is this start of the machine, -1 the one before");
    if (static_cast<std::size_t>(back) >= boots.size())
        throw Error(Failure::failed,
                    fmt::format("--boot: {} start{} of the machine {} in the history", boots.size(),
                                boots.size() == 1 ? "" : "s", boots.size() == 1 ? "is" : "are"));
    return boots[boots.size() - 1 - static_cast<std::size_t>(back)];
}

Range range_of(const Options &options, const Boot &boot, bool runs) {
    const std::int64_t end = runs ? std::max(now_ms(), boot.last_ms) : boot.last_ms;
    const auto moment = [&](const char *option, const std::optional<std::string> &text,
                            std::int64_t otherwise) {
        return text
                   ? read_argument(option, *text,
                                   [&](const std::string &each) { return parse_moment(each, end); })
                   : otherwise;
    };
    Range range;

    range.until_ms = moment("--at", options.at, moment("--until", options.until, end));
    range.since_ms =
        moment("--since", options.since, range.until_ms - (options.at ? at_window_ms : hour_ms));
    // A second that was named is meant as a whole.
    range.until_ms += 999;
    if (range.since_ms > range.until_ms)
        throw Error(Failure::usage, "--since is after --until");
    return range;
}

/// Begins another window. The last may be shorter than the others.
void rate(Row &row, std::int64_t time_ms, std::uint64_t held) {
    const std::int64_t elapsed = std::max<std::int64_t>(time_ms - row.rated_ms, 1000);

    row.fastest =
        std::max(row.fastest, static_cast<std::int64_t>(held - row.rated) * 1000 / elapsed);
    row.rated_ms = time_ms;
    row.rated = held;
}

void follow(Row &row, const Moment &moment, const history::Holdings &holdings, bool is_first) {
    const std::uint64_t held = history::held(holdings);

    if (row.rated_ms == 0) {
        // Who came later held nothing before.
        row.first = is_first ? holdings : history::Holdings();
        row.rated_ms = is_first ? moment.time_ms : moment.time_ms - moment.interval_ms;
        row.rated = history::held(row.first);
    }
    if (moment.time_ms - row.rated_ms >= rate_window_ms)
        rate(row, moment.time_ms, held);
    row.last = holdings;
    row.most = std::max(row.most, held);
}

Period read_period(history::Reader &reader, const Boot &boot, const Range &range,
                   const Filter &filter) {
    const auto names = reader.accounts(boot);
    std::map<std::uint32_t, Row> rows;
    Period period;

    period.range = range;

    reader.for_each(boot, range, [&](const Moment &moment) {
        const bool is_first = !period.first;

        for (auto &[key, row] : rows)
            row.there = false;
        for (const auto &[key, holdings] : moment.state.accounts) {
            const auto name = names.find(key);

            if (name == names.end() || !filter.takes(name->second))
                continue;
            Row &row = rows[key];
            row.named = name->second;
            row.there = true;
            follow(row, moment, holdings, is_first);
        }
        if (is_first)
            period.first = moment;
        period.last = moment;
        period.interval_ms = std::max(period.interval_ms, moment.interval_ms);
    });
    for (auto &[key, row] : rows) {
        if (row.there)
            rate(row, period.last->time_ms, history::held(row.last));
        else
            row.last = {};
        period.rows.push_back(std::move(row));
    }
    std::ranges::sort(period.rows, [](const Row &a, const Row &b) {
        return std::pair(history::held(a.last), b.named.path) >
               std::pair(history::held(b.last), a.named.path);
    });
    for (Happening &happening : reader.happenings(boot, range)) {
        if (filter.takes({.path = happening.path, .owner = {}}))
            period.happenings.push_back(std::move(happening));
    }
    for (Leak &leak : history::find_leaks(reader, boot, range)) {
        if (filter.takes(leak.named))
            period.leaks.push_back(std::move(leak));
    }
    return period;
}

// --- as text ---------------------------------------------------------------------

std::string describe(const Happening &happening) {
    if (!happening.text.empty())
        return printable(happening.text);
    if (happening.type == "hard_refused")
        return fmt::format("refused {}: {} used of the hard limit {}", format_size(happening.size),
                           format_size(happening.usage), format_size(happening.limit));
    if (happening.type == "reserve_refused")
        return fmt::format("refused {}: {} available, reserve {}", format_size(happening.size),
                           format_size(happening.usage), format_size(happening.limit));
    return fmt::format("size {}, usage {}, limit {}", format_size(happening.size),
                       format_size(happening.usage), format_size(happening.limit));
}

void print_machine(const Output &output, const Period &period) {
    const auto &before = period.first->state.machine;
    const auto &after = period.last->state.machine;
    Table table({left(), right("THEN"), right("AT THE END")});
    const auto add = [&](const char *title, std::uint64_t then, std::uint64_t end) {
        table.add({title, format_size(then), format_size(end)});
    };

    add("total", before[Figure::total], after[Figure::total]);
    add("could be had", history::obtainable(before), history::obtainable(after));
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
    Table table({left("ACCOUNT"), right("HELD"), right("GREW"), right("FASTEST"), right("MOST"),
                 right("DRIVER"), right("CACHE"), right("HARD"), right("REFUSED"),
                 right("FAILED")});
    std::size_t shown = 0;

    for (const Row &row : period.rows) {
        if (shown++ == accounts_shown)
            break;
        const std::uint64_t hard = row.last[Holding::hard];
        const auto rose = [&](Holding which) {
            return std::to_string(row.last[which] - std::min(row.last[which], row.first[which]));
        };

        table.add({row.named.owner.empty() ? display_path(session.machine.owners(), row.named.path)
                                           : printable(row.named.owner),
                   format_size(history::held(row.last)),
                   (row.grown() < 0 ? "-" : "+") +
                       format_size(static_cast<std::uint64_t>(std::abs(row.grown()))),
                   format_rate(row.fastest), format_size(row.most),
                   format_size(row.last[Holding::driver]), format_size(row.last[Holding::cache]),
                   format_limit(hard == UMACCT_UNLIMITED ? Limit() : Limit(hard)),
                   rose(Holding::refusals), rose(Holding::failures)});
    }
    table.print(output);
    if (period.rows.size() > accounts_shown)
        fmt::print(output.out, "and {} more\n", period.rows.size() - accounts_shown);
}

void print_happenings(const Output &output, const Session &session, const Period &period) {
    const std::size_t skipped =
        period.happenings.size() - std::min(period.happenings.size(), events_shown);

    if (period.happenings.empty())
        return;
    fmt::print(output.out, "\n");
    if (skipped > 0)
        fmt::print(output.out, "{} events before these; --json has all\n", skipped);
    for (auto it = period.happenings.begin() + static_cast<std::ptrdiff_t>(skipped);
         it != period.happenings.end(); ++it)
        fmt::print(
            output.out, "{}  {:<15}  {}{}{}{}\n", history::clock_text(it->time_ms),
            printable(it->type),
            it->path.empty() ? "the machine" : display_path(session.machine.owners(), it->path),
            it->pid == 0 ? "" : fmt::format("  pid {} ({})", it->pid, printable(it->comm)),
            "  " + describe(*it), it->count > 1 ? fmt::format(", the last of {}", it->count) : "");
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

Json to_json(const Happening &happening) {
    return {{"time", utc_text(happening.time_ms)},
            {"type", happening.type},
            {"path", happening.path.empty() ? Json() : Json(happening.path)},
            {"limit_path", happening.limit_path.empty() ? Json() : Json(happening.limit_path)},
            {"pid", happening.pid},
            {"comm", happening.comm},
            {"size_bytes", happening.size},
            {"usage_bytes", happening.usage},
            {"limit_bytes", limit_json(happening.limit)},
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
                                              {"grown_bytes", end.culprit->locked()},
                                              {"cache_grown_bytes", end.culprit->cache()}})
                                    : Json()},
            {"prevention", prevents ? Json{{"way", word_of(prevention.way)},
                                           {"size_bytes", prevention.bytes},
                                           {"time", utc_text(prevention.time_ms)}}
                                    : Json()},
            {"text", paragraph(end)}};
}

Json rows_json(const Period &period) {
    Json rows = Json::array();

    for (const Row &row : period.rows)
        rows.push_back(merged(merged(to_json(row.named), to_json(row.last)),
                              {{"held_bytes", history::held(row.last)},
                               {"most_bytes", row.most},
                               {"grown_bytes", row.grown()},
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

void print_document(const Output &output, const std::vector<Boot> &boots, const Boot &boot,
                    const std::optional<history::End> &end, const Period &period) {
    const auto figures = [](const std::optional<Moment> &moment) {
        return moment ? to_json(moment->state.machine) : Json();
    };

    output.document({{"boots", list_json(boots)},
                     {"boot", to_json(boot)},
                     {"since", period.first ? Json(utc_text(period.first->time_ms)) : Json()},
                     {"until", period.last ? Json(utc_text(period.last->time_ms)) : Json()},
                     {"interval_ms", period.interval_ms},
                     {"end", end ? to_json(*end) : Json()},
                     {"machine_then", figures(period.first)},
                     {"machine", figures(period.last)},
                     {"accounts", rows_json(period)},
                     {"events", list_json(period.happenings)},
                     {"leaks", list_json(period.leaks)}});
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

/// Of the machine; with TARGET, of accounts.
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

int history_of(Session &session, const Options &options) {
    history::Reader reader(session.machine.root());
    const Output &output = session.output;
    const std::vector<Boot> boots = reader.boots();
    const Boot &boot = choose_boot(boots, options);
    const std::string current = boot_id(session.machine.proc());
    const bool runs = boot.boot_id == current;
    const Range range = range_of(options, boot, runs);
    const Filter filter(session, options.target);

    if (options.csv) {
        print_csv(output, reader, boot, range, filter);
        return 0;
    }
    // Of one that runs on there is no end.
    std::optional<history::End> end;
    if (!runs)
        end = history::analyse_end(reader, boot, current);
    const Period period = read_period(reader, boot, range, filter);
    if (output.json) {
        print_document(output, boots, boot, end, period);
        return 0;
    }
    if (end && !filter.is_set() && !options.at)
        fmt::print(output.out, "{}\n\n", paragraph(*end));
    print_period(output, session, period);
    return 0;
}

} // namespace

Action add_history(CLI::App &verb) {
    auto options = std::make_shared<Options>();

    verb.add_option("TARGET", options->target, "only this cgroup, unit, container or pod");
    verb.add_option("--since", options->since, "from then on: 03:12, '2026-11-25 03:12', or 2h ago")
        ->type_name("TIME");
    verb.add_option("--until", options->until, "until then")->type_name("TIME");
    verb.add_option("--at", options->at, "as it was then, with the ten minutes before")
        ->type_name("TIME")
        ->excludes("--until");
    verb.add_option("--boot", options->boot,
                    "0 is this start of the machine, -1 the one before, and how it ended")
        ->type_name("N")
        ->allow_extra_args(false);
    verb.add_flag("--csv", options->csv,
                  "a row for each sample: of the machine, or with TARGET of accounts");
    add_examples(verb, "umacct history\n"
                       "umacct history --boot -1\n"
                       "umacct history vllm --since 2h\n"
                       "umacct history --at 03:12");
    return [options](Session &session) { return history_of(session, *options); };
}

} // namespace umacct::tool
