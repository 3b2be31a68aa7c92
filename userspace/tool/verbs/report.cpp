// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <sys/utsname.h>

#include "lib/error.h"
#include "lib/history/analysis.h"
#include "lib/history/reader.h"
#include "lib/history/sampler.h"
#include "lib/host/text_file.h"
#include "lib/json.h"
#include "lib/text.h"
#include "tool/arguments.h"
#include "tool/doctor/check.h"
#include "tool/history/period.h"
#include "tool/print/text.h"
#include "tool/report/page.h"
#include "tool/report/plot.h"
#include "tool/report/png.h"
#include "tool/report/redact.h"
#include "tool/session.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

using history::Boot;
using history::Moment;
using history::Named;

/// So many moments are in a picture at the most.
constexpr std::int64_t most_moments = 400;
constexpr std::size_t most_marks = 300;
/// A last sample that is older is followed by one of now.
constexpr std::int64_t recent_ms = 2000;
/// Of a PNG, so that it can be read on any screen.
constexpr double png_scale = 2;

struct ReportOptions {
    AskedTime time;
    std::string file = "-";
    bool svg = false;
    bool png = false;
    bool redact = false;

    const char *format() const { return svg ? "svg" : png ? "png" : "html"; }

    bool asks_for_past() const { return time.until || time.at || time.boot.value_or(0) != 0; }
};

/// What is known of a time: from the history, and of now.
struct Told {
    std::map<std::uint32_t, Named> names;
    std::vector<Moment> moments;
    Period period;
    std::optional<history::End> end;
    std::vector<std::string> remarks;
};

std::string with_hint(const Error &error) {
    return error.hint().empty() ? error.what() : fmt::format("{} ({})", error.what(), error.hint());
}

/// As the recorder would have it, with the history's numbers of accounts where it has some.
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
                  std::optional<Thinned> &thinned, Told &told) {
    history::Reader reader(session.machine.root());
    const std::vector<Boot> boots = reader.boots();
    const std::string current = boot_id(session.machine.proc());
    const Boot &boot = choose_boot(boots, options.time, current);
    const bool runs = boot.boot_id == current;
    const history::Range range = range_of(options.time, boot, runs);

    if (!runs)
        told.end = history::analyse_end(reader, boot, current);
    told.names = reader.accounts(boot);
    thinned.emplace(range, most_moments);
    reader.for_each(boot, range, [&](const Moment &moment) {
        follower.take(moment, told.names);
        thinned->take(moment);
    });
    told.period.happenings = reader.happenings(boot, range);
    told.period.leaks = history::find_leaks(reader, boot, range);
}

Told tell(Session &session, const ReportOptions &options) {
    const Filter all(session.machine, {});
    Follower follower(all);
    std::optional<Thinned> thinned;
    Told told;

    try {
        read_history(session, options, follower, thinned, told);
    } catch (const Error &error) {
        // Of the past there is nothing else; of now there is.
        if (options.asks_for_past() || options.time.since || error.failure() == Failure::usage)
            throw;
        told.remarks.push_back(fmt::format("There is no history: {}", with_hint(error)));
    }
    if (thinned)
        told.moments = thinned->end();
    if (!options.asks_for_past() && !told.end) {
        try {
            const Moment now = moment_of_now(session, told.names);

            if (told.moments.empty() || now.time_ms - told.moments.back().time_ms > recent_ms) {
                follower.take(now, told.names);
                told.moments.push_back(now);
            }
        } catch (const Error &error) {
            told.remarks.push_back(
                fmt::format("The current state is unknown: {}", with_hint(error)));
        }
    }
    Period followed = follower.end();
    followed.happenings = std::move(told.period.happenings);
    followed.leaks = std::move(told.period.leaks);
    told.period = std::move(followed);
    return told;
}

/// The same with pseudonyms.
void redact(const Redactor &redactor, Told &told) {
    for (auto &[key, named] : told.names)
        redactor.redact(named);
    for (AccountPeriod &row : told.period.rows)
        redactor.redact(row.named);
    for (history::Happening &each : told.period.happenings)
        redactor.redact(each);
    for (history::Leak &each : told.period.leaks)
        redactor.redact(each.named);
    if (told.end)
        redactor.redact(*told.end);
    for (std::string &remark : told.remarks)
        remark = redactor.sentence(remark);
}

void redact(const Redactor &redactor, doctor::Findings &findings) {
    for (doctor::Found &found : findings.all) {
        found.text = redactor.sentence(found.text, found.names);
        found.hint = redactor.sentence(found.hint, found.names);
    }
}

std::vector<PlotMark> marks_of(const Told &told, const NameAccount &name) {
    std::vector<PlotMark> marks;
    const auto &all = told.period.happenings;

    for (std::size_t i = all.size() - std::min(all.size(), most_marks); i < all.size(); ++i) {
        const history::Happening &each = all[i];
        const bool is_bad = each.type.ends_with("_refused") || each.type.ends_with("failed");

        marks.push_back(
            {.time_ms = each.time_ms,
             .style = is_bad                           ? "bad"
                      : each.type.starts_with("guard") ? "step"
                                                       : "note",
             .text = fmt::format("{} {} {}: {}", history::clock_text(each.time_ms), each.type,
                                 each.path.empty() ? "the machine" : name({.path = each.path}),
                                 describe(each))});
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
    Told told = tell(session, options);
    std::ostringstream out;

    redact(redactor, told);
    const NameAccount name = [&](const Named &named) {
        if (!named.owner.empty())
            return named.owner;
        return redactor.is_on() ? named.path : display_path(session.machine.owners(), named.path);
    };
    std::optional<Plot> plot;
    if (!told.moments.empty()) {
        plot = make_plot(told.moments, told.names, name);
        plot->marks = marks_of(told, name);
    }
    if (options.svg || options.png) {
        if (!plot)
            throw Error(Failure::failed, "cannot draw a plot: no sample is of that time",
                        "without --svg and --png the report has the doctor's findings");
        print_plot(out, *plot, plot_title(*plot));
        return options.png ? png_of(out.str(), png_scale) : out.str();
    }
    doctor::Diagnosis made = doctor::diagnose(session.connection, session.machine);
    redact(redactor, made.found);
    Report report{.made = history::clock_text(history::milliseconds_of(CLOCK_REALTIME)),
                  .redacted = redactor.is_on(),
                  .versions = versions_of(session.machine, made),
                  .remarks = std::move(told.remarks),
                  .end = std::move(told.end),
                  .period = std::move(told.period),
                  .plot = std::move(plot),
                  .findings = std::move(made.found)};
    if (made.status && !made.status->tells_all())
        report.remarks.emplace_back(
            "It was made by a user who may see its own cgroup and what is below it, and no more.");
    print_page(out, report, name);
    return out.str();
}

int report(Session &session, const ReportOptions &options) {
    const Output &output = session.output;
    const bool to_output = options.file == "-";

    if (to_output && output.json)
        throw Error(Failure::usage, "--json: standard output has the report already",
                    "name a FILE, or leave --json out");
    if (to_output && output.terminal)
        throw Error(Failure::usage, "a terminal can't show it",
                    fmt::format("name a FILE: umacct report report.{}", options.format()));
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
    return 0;
}

} // namespace

Action add_report(CLI::App &verb) {
    auto options = std::make_shared<ReportOptions>();

    verb.add_option("FILE", options->file, "where it goes; - is standard output")
        ->type_name("FILE")
        ->capture_default_str();
    add_time_options(verb, options->time);
    CLI::Option *svg =
        verb.add_flag("--svg", options->svg, "only the picture of the memory's course, as SVG");
    verb.add_flag("--png", options->png, "the same as PNG, drawn by librsvg")->excludes(svg);
    verb.add_flag("--redact", options->redact, "pseudonyms for names and paths");
    add_examples(verb, "umacct report report.html\n"
                       "umacct report --boot -1 --redact frozen.html\n"
                       "umacct report --since 2h --png memory.png");
    return [options](Session &session) { return report(session, *options); };
}

} // namespace umacct::tool
