// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include <fmt/ostream.h>
#include <nlohmann/json.hpp>
#include <sys/utsname.h>

#include "lib/error.h"
#include "lib/history/analysis.h"
#include "lib/history/reader.h"
#include "lib/history/sampler.h"
#include "lib/host/text_file.h"
#include "lib/json.h"
#include "lib/text.h"
#include "lib/units.h"
#include "tool/doctor/check.h"
#include "tool/history/period.h"
#include "tool/print/text.h"
#include "tool/report/page.h"
#include "tool/report/plot.h"
#include "tool/report/redact.h"
#include "tool/report/report.h"
#include "tool/session.h"

namespace umacct::tool {

namespace {

using history::Boot;
using history::Moment;
using history::Named;

/// Largest number of moments in a picture.
constexpr std::int64_t most_moments = 400;
constexpr std::size_t most_marks = 300;
/// A last sample that is older is followed by one of now.
constexpr std::int64_t recent_ms = 2000;

/// Data about a period: from the history, and current.
struct Collected {
    std::map<std::uint32_t, Named> names;
    std::vector<Moment> moments;
    Period period;
    std::optional<history::End> end;
    std::vector<std::string> remarks;
};

std::string with_hint(const Error &error) {
    return error.hint().empty() ? error.what() : fmt::format("{} ({})", error.what(), error.hint());
}

/// A remark for a period whose end umacctd has not recorded.
std::string not_recorded(const std::vector<Moment> &moments, std::int64_t now_ms) {
    if (moments.empty())
        return "umacctd has recorded nothing of the time before this report.";
    return fmt::format(
        "umacctd's last sample is of {}, {} before this report: what happened since is "
        "not in it.",
        history::clock_text(moments.back().time_ms),
        history::span_text(now_ms - moments.back().time_ms));
}

/// Returns the current moment in the recorder's form, with the history's numbers of accounts if it
/// has some.
Moment moment_of_now(Session &session, std::map<std::uint32_t, Named> &names) {
    history::Sampler sampler(session.connection, session.machine.proc(), session.machine.root());
    history::Sample sample = history::Sampler::with_room();
    std::map<std::pair<std::uint64_t, std::string>, std::uint32_t> keys;
    Moment moment;

    sampler.take(sample);
    for (const auto &[key, named] : names)
        keys[{named.id, named.path}] = key;
    moment.time_ms = sample.time_ms;
    moment.interval_ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(history::sample_interval).count();
    moment.state.machine = sample.machine;
    for (std::size_t i = 0; i < sample.count; ++i) {
        const history::Sample::Account &account = sample.accounts[i];
        const std::uint32_t next = names.empty() ? 1 : names.rbegin()->first + 1;
        const std::uint32_t key = keys.try_emplace({account.id, account.path}, next).first->second;

        names.try_emplace(key, Named{.id = account.id, .path = account.path});
        moment.state.accounts[key] = account.holdings;
    }
    return moment;
}

void read_history(Session &session, const ReportOptions &options, Follower &follower,
                  std::optional<Thinned> &thinned, Collected &collected) {
    history::Reader reader(session.machine.root());
    const std::vector<Boot> boots = reader.boots();
    const std::string current = boot_id(session.machine.proc());
    const Boot &boot = choose_boot(boots, options.time, current);
    const bool runs = boot.boot_id == current;
    const history::Range range = range_of(options.time, boot, runs);

    if (!runs)
        collected.end = history::analyse_end(reader, boot, current);
    collected.names = reader.accounts(boot);
    thinned.emplace(range, most_moments);
    reader.for_each(boot, range, [&](const Moment &moment) {
        follower.take(moment, collected.names);
        thinned->take(moment);
    });
    collected.period.happenings = reader.happenings(boot, range);
    collected.period.leaks = history::find_leaks(reader, boot, range);
    if (reader.damaged() > 0)
        collected.remarks.push_back(damage_text(reader) + '.');
}

Collected collect(Session &session, const ReportOptions &options) {
    const Filter all(session.machine, {});
    Follower follower(all);
    std::optional<Thinned> thinned;
    Collected collected;

    try {
        read_history(session, options, follower, thinned, collected);
    } catch (const Error &error) {
        // A report of the past needs the history; one of the present does not.
        if (options.asks_for_past() || options.time.since || error.failure() == Failure::usage)
            throw;
        collected.remarks.push_back(fmt::format("There is no history: {}", with_hint(error)));
    }
    if (thinned)
        collected.moments = thinned->end();
    if (!options.asks_for_past() && !collected.end) {
        try {
            const Moment now = moment_of_now(session, collected.names);

            if (collected.moments.empty() ||
                now.time_ms - collected.moments.back().time_ms > recent_ms) {
                if (thinned)
                    collected.remarks.push_back(not_recorded(collected.moments, now.time_ms));
                follower.take(now, collected.names);
                collected.moments.push_back(now);
            }
        } catch (const Error &error) {
            collected.remarks.push_back(
                fmt::format("The current state is unknown: {}", with_hint(error)));
        }
    }
    Period followed = follower.end();
    followed.happenings = std::move(collected.period.happenings);
    followed.leaks = std::move(collected.period.leaks);
    collected.period = std::move(followed);
    return collected;
}

/// The same with pseudonyms.
void redact(const Redactor &redactor, Collected &collected) {
    for (auto &[key, named] : collected.names)
        redactor.redact(named);
    for (AccountPeriod &row : collected.period.rows)
        redactor.redact(row.named);
    for (history::Happening &each : collected.period.happenings)
        redactor.redact(each);
    for (history::Leak &each : collected.period.leaks)
        redactor.redact(each.named);
    if (collected.end)
        redactor.redact(*collected.end);
    for (std::string &remark : collected.remarks)
        remark = redactor.sentence(remark);
}

void redact(const Redactor &redactor, doctor::Findings &findings) {
    for (doctor::Found &found : findings.all) {
        found.text = redactor.sentence(found.text, found.names);
        found.hint = redactor.sentence(found.hint, found.names);
    }
}

std::vector<PlotMark> marks_of(const Collected &collected, const NameAccount &name) {
    std::vector<PlotMark> marks;
    const auto &all = collected.period.happenings;

    for (std::size_t i = all.size() - std::min(all.size(), most_marks); i < all.size(); ++i) {
        const history::Happening &each = all[i];
        const bool is_bad = each.type.ends_with("_refused") || each.type.ends_with("failed");

        marks.push_back(
            {.time_ms = each.time_ms,
             .style = is_bad                           ? "bad"
                      : each.type.starts_with("guard") ? "step"
                                                       : "note",
             .text = fmt::format(
                 "{} {} {}: {}", history::clock_text(each.time_ms), each.type,
                 each.path.empty() ? "the machine" : name({.path = each.path}),
                 describe(each, [&](const std::string &path) { return name({.path = path}); }))});
    }
    return marks;
}

std::vector<std::pair<std::string, std::string>> versions_of(const Machine &machine,
                                                             const doctor::Diagnosis &made) {
    const auto known = [](const std::string &text) { return text.empty() ? "unknown" : text; };
    std::istringstream release(contents_of(machine.root() / "etc/os-release"));
    std::string system;
    utsname host{};

    for (std::string line; std::getline(release, line);) {
        if (line.starts_with("PRETTY_NAME="))
            system = line.substr(std::strlen("PRETTY_NAME="));
    }
    std::erase(system, '"');
    uname(&host);
    return {{"umacct", UMACCT_VERSION},
            {"netlink ABI", std::to_string(UMACCT_FAMILY_VERSION)},
            {"module", made.status ? made.status->module_version : "not there"},
            {"driver", made.status && !made.status->driver_version.empty()
                           ? fmt::format("{}, {}", made.status->driver_version,
                                         name_of(made.status->driver_state))
                           : "not there"},
            {"kernel", known(line_of(machine.proc() / "sys/kernel/osrelease"))},
            {"architecture", host.machine},
            {"system", known(system)}};
}

std::string draw(Session &session, const ReportOptions &options) {
    const Redactor redactor =
        options.redact ? Redactor(redaction_key(session.machine.root())) : Redactor();
    Collected collected = collect(session, options);
    std::ostringstream out;

    redact(redactor, collected);
    const std::map<std::string, std::string> owners = owners_in(collected.names);
    const NameAccount name = [&](const Named &named) {
        if (!named.owner.empty())
            return named.owner;
        if (const auto found = owners.find(named.path); found != owners.end())
            return found->second;
        return redactor.is_on() ? named.path : display_path(session.machine.owners(), named.path);
    };
    std::optional<Plot> plot;
    if (!collected.moments.empty()) {
        plot = make_plot(collected.moments, collected.names, name);
        plot->marks = marks_of(collected, name);
    }
    if (options.svg) {
        if (!plot)
            throw Error(Failure::failed, "cannot draw a plot: no sample is of that time",
                        "without --svg the report has the doctor's findings");
        print_plot(out, *plot, plot_title(*plot));
        return out.str();
    }
    doctor::Diagnosis made = doctor::diagnose(session.connection, session.machine);
    redact(redactor, made.found);
    Report report{.made = history::clock_text(history::milliseconds_of(CLOCK_REALTIME)),
                  .redacted = redactor.is_on(),
                  .versions = versions_of(session.machine, made),
                  .remarks = std::move(collected.remarks),
                  .end = std::move(collected.end),
                  .period = std::move(collected.period),
                  .plot = std::move(plot),
                  .findings = std::move(made.found)};
    if (made.status && !made.status->tells_all())
        report.remarks.emplace_back(
            "It was made by a user who can only see its own cgroup and those below.");
    print_page(out, report, name);
    return out.str();
}

} // namespace

int write_report(Session &session, const ReportOptions &options) {
    const Output &output = session.output;
    const bool to_output = options.file == "-";

    if (to_output && output.json)
        throw Error(Failure::usage, "--json: standard output has the report already",
                    "name a FILE, or leave --json out");
    if (to_output && output.terminal)
        throw Error(Failure::usage, "a terminal can't show it",
                    fmt::format("name a FILE: umacct history --{0} report.{0}", options.format()));
    const std::string text = draw(session, options);
    if (to_output) {
        output.out.write(text.data(), static_cast<std::streamsize>(text.size()));
        return 0;
    }
    std::ofstream out(options.file);
    if (!out.write(text.data(), static_cast<std::streamsize>(text.size())).flush())
        throw Error(Failure::failed,
                    fmt::format("cannot write '{}': {}", options.file,
                                std::generic_category().message(errno)),
                    "name a file in a directory that you may write to");
    if (output.json)
        output.document({{"file", options.file},
                         {"format", options.format()},
                         {"size_bytes", text.size()},
                         {"redacted", options.redact}});
    else
        fmt::print(output.out, "wrote {}, {}\n", printable(options.file), format_size(text.size()));
    return 0;
}

} // namespace umacct::tool
