// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/history/period.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "lib/error.h"
#include "lib/module/failure_event.h"
#include "lib/text.h"
#include "lib/units.h"
#include "tool/arguments.h"
#include "tool/history/times.h"
#include "tool/print/text.h"

namespace umacct::tool {

namespace {

using history::Boot;
using history::Happening;
using history::Leak;
using history::Moment;
using history::Named;
using history::Range;

constexpr std::int64_t hour_ms = 3'600'000;
/// Period in which growth is looked for, with --at.
constexpr std::int64_t at_window_ms = 600'000;
/// Shortest interval for a rate.
constexpr std::int64_t rate_window_ms = 10'000;

std::int64_t now_ms() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

bool is_at_or_below(const std::string &path, const std::string &top) {
    return top == "/" || path == top || path.starts_with(top + '/');
}

bool has_component(const std::string &path, const std::string &name) {
    return (path + '/').find('/' + name + '/') != std::string::npos;
}

/// Begins another window. The last may be shorter than the others.
void rate(AccountPeriod &row, std::int64_t time_ms, std::uint64_t held) {
    const std::int64_t elapsed = std::max<std::int64_t>(time_ms - row.rated_ms, 1000);

    row.fastest =
        std::max(row.fastest, static_cast<std::int64_t>(held - row.rated) * 1000 / elapsed);
    row.rated_ms = time_ms;
    row.rated = held;
}

void follow(AccountPeriod &row, const Moment &moment, const history::Holdings &holdings,
            bool is_first) {
    const std::uint64_t held = history::held(holdings);

    if (row.rated_ms == 0) {
        // Accounts that appeared later held nothing before.
        row.first = is_first ? holdings : history::Holdings();
        row.rated_ms = is_first ? moment.time_ms : moment.time_ms - moment.interval_ms;
        row.rated = history::held(row.first);
    }
    if (moment.time_ms - row.rated_ms >= rate_window_ms)
        rate(row, moment.time_ms, held);
    row.last = holdings;
    row.most = std::max(row.most, held);
    row.most_total = std::max(row.most_total, history::total(holdings));
}

} // namespace

void add_time_options(CLI::App &verb, AskedTime &asked) {
    verb.add_option("--since", asked.since, "from then on: 03:12, '2026-11-25 03:12', or 2h ago")
        ->type_name("TIME");
    verb.add_option("--until", asked.until, "until then")->type_name("TIME");
    verb.add_option("--at", asked.at, "as it was then, with the ten minutes before")
        ->type_name("TIME")
        ->excludes("--until");
    verb.add_option("--boot", asked.boot,
                    "0 is this start of the machine, -1 the one before, and how it ended")
        ->type_name("N")
        ->allow_extra_args(false);
}

Filter::Filter(const Machine &machine, std::optional<std::string> target)
    : target_(std::move(target)) {
    if (!target_)
        return;
    try {
        path_ = machine.resolve(*target_).path;
    } catch (const Error &) { // NOLINT(bugprone-empty-catch): it was there once, perhaps
    }
}

bool Filter::takes(const Named &named) const {
    if (!target_)
        return true;
    if (!path_.empty() && is_at_or_below(named.path, path_))
        return true;
    return is_at_or_below(named.path, *target_) || named.owner == *target_ ||
           named.owner.ends_with(' ' + *target_) || has_component(named.path, *target_) ||
           has_component(named.path, *target_ + ".service");
}

std::uint64_t AccountPeriod::rose(history::Holding which) const {
    return last[which] - std::min(last[which], first[which]);
}

const Boot &choose_boot(const std::vector<Boot> &boots, const AskedTime &asked,
                        const std::string &current) {
    if (boots.empty())
        throw Error(Failure::missing, "nothing was recorded yet",
                    "umacctd records it: systemctl enable --now umacctd");
    if (!asked.boot)
        return boots.back();
    // Counted from this start, which umacctd may not have recorded yet.
    const bool has_current = boots.back().boot_id == current;
    const int back = -*asked.boot - (has_current ? 0 : 1);

    if (!has_current && *asked.boot == 0)
        throw Error(Failure::missing,
                    "--boot: nothing of this start of the machine is recorded yet",
                    "umacctd records it: systemctl enable --now umacctd");
    if (back < 0)
        throw Error(Failure::usage, "--boot: 0 is this start of the machine, -1 the one before");
    if (static_cast<std::size_t>(back) >= boots.size())
        throw Error(Failure::failed,
                    fmt::format("--boot: {} start{} of the machine {} in the history", boots.size(),
                                boots.size() == 1 ? "" : "s", boots.size() == 1 ? "is" : "are"));
    return boots[boots.size() - 1 - static_cast<std::size_t>(back)];
}

Range range_of(const AskedTime &asked, const Boot &boot, bool runs) {
    const std::int64_t end = runs ? std::max(now_ms(), boot.last_ms) : boot.last_ms;
    const auto moment = [&](const char *option, const std::optional<std::string> &text,
                            std::int64_t otherwise) {
        return text
                   ? read_argument(option, *text,
                                   [&](const std::string &each) { return parse_moment(each, end); })
                   : otherwise;
    };
    Range range;

    range.until_ms = moment("--at", asked.at, moment("--until", asked.until, end));
    range.since_ms =
        moment("--since", asked.since, range.until_ms - (asked.at ? at_window_ms : hour_ms));
    // A second that was named is meant as a whole.
    range.until_ms += 999;
    if (range.since_ms > range.until_ms)
        throw Error(Failure::usage, "--since is after --until");
    return range;
}

void Follower::take(const Moment &moment, const std::map<std::uint32_t, Named> &names) {
    const bool is_first = !period_.first;

    for (auto &[key, row] : rows_)
        row.there = false;
    for (const auto &[key, holdings] : moment.state.accounts) {
        const auto name = names.find(key);

        if (name == names.end() || !filter_.takes(name->second))
            continue;
        AccountPeriod &row = rows_[key];
        row.named = name->second;
        row.there = true;
        follow(row, moment, holdings, is_first);
    }
    if (is_first)
        period_.first = moment;
    period_.last = moment;
    period_.interval_ms = std::max(period_.interval_ms, moment.interval_ms);
}

Period Follower::end() {
    for (auto &[key, row] : rows_) {
        if (row.there)
            rate(row, period_.last->time_ms, history::held(row.last));
        else
            row.last = {};
        period_.rows.push_back(std::move(row));
    }
    std::ranges::sort(period_.rows, [](const AccountPeriod &a, const AccountPeriod &b) {
        return std::pair(history::total(a.last), b.named.path) >
               std::pair(history::total(b.last), a.named.path);
    });
    return std::move(period_);
}

Period read_period(history::Reader &reader, const Boot &boot, const Range &range,
                   const Filter &filter, std::int64_t interval_ms,
                   const std::function<void(const Moment &moment)> &visit) {
    const auto names = reader.accounts(boot);
    Follower follower(filter);

    reader.for_each(
        boot, range,
        [&](const Moment &moment) {
            follower.take(moment, names);
            if (visit)
                visit(moment);
        },
        interval_ms);
    Period period = follower.end();
    period.range = range;
    period.owners = owners_in(names);
    for (Happening &happening : reader.happenings(boot, range)) {
        if (filter.takes({.path = happening.path, .owner = {}}))
            period.happenings.push_back(std::move(happening));
    }
    for (Leak &leak : history::find_leaks(reader, boot, range, interval_ms)) {
        if (filter.takes(leak.named))
            period.leaks.push_back(std::move(leak));
    }
    return period;
}

std::string damage_text(const history::Reader &reader) {
    return fmt::format("{} of the history {} left out: damaged, or a continuation of a damaged one",
                       reader.damaged() == 1 ? "1 record"
                                             : fmt::format("{} records", reader.damaged()),
                       reader.damaged() == 1 ? "is" : "are");
}

std::map<std::string, std::string> owners_in(const std::map<std::uint32_t, history::Named> &names) {
    std::map<std::string, std::string> owners;

    for (const auto &[key, named] : names) {
        if (!named.owner.empty())
            owners[named.path] = named.owner;
    }
    return owners;
}

std::string describe(const Happening &happening,
                     const std::function<std::string(const std::string &path)> &name) {
    if (!happening.text.empty())
        return printable(with_name(happening.text, happening.path, name(happening.path)));
    if (happening.type == "hard_refused")
        return fmt::format("refused {}: {} used of the hard limit {}", format_size(happening.size),
                           format_size(happening.usage), format_size(happening.limit));
    if (happening.type == "reserve_refused")
        return fmt::format("refused {}: {} available, reserve {}", format_size(happening.size),
                           format_size(happening.usage), format_size(happening.limit));
    if (happening.type == "failed")
        return failed_text(happening.size, happening.usage,
                           happening.limit_path.empty() ? "" : name(happening.limit_path),
                           happening.limit);
    if (happening.type == "killed")
        return "the kernel killed it: the machine had no memory" +
               (happening.limit_path.empty()
                    ? std::string()
                    : fmt::format("; {} held {} of the driver's", name(happening.limit_path),
                                  format_size(happening.limit)));
    if (happening.type == "killed_at_limit")
        return fmt::format("the kernel killed it at memory.max of {}", name(happening.limit_path));
    return fmt::format("size {}, usage {}, limit {}", format_size(happening.size),
                       format_size(happening.usage), format_size(happening.limit));
}

} // namespace umacct::tool
