// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/history/analysis.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <iterator>
#include <numeric>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <umacct.h>

#include "lib/host/cgroup_tree.h"
#include "lib/text.h"
#include "lib/units.h"

namespace umacct::history {

namespace {

constexpr std::int64_t second = 1000;
constexpr std::int64_t minute = 60 * second;
constexpr std::int64_t hour = 60 * minute;

/// Windows in which the beginning of an end is looked for; the shortest that explains it wins.
constexpr std::array windows{15 * second, minute, 5 * minute, 15 * minute, hour, 6 * hour};
/// Share of the fall that a window must contain to explain it.
constexpr double most_of = 0.9;

/// Memory is short below this share of the total, or above this share of waiting.
constexpr double short_share = 0.10;
constexpr double stalled_much = 10;
constexpr std::int64_t stalled_window = 10 * second;

/// A sudden load is no leak.
constexpr std::int64_t sudden = 30 * second;

/// Minimum duration and growth of a leak.
constexpr std::int64_t leak_span = 10 * minute;
constexpr std::uint64_t leak_bytes = 16ULL << 20;
/// The share of a leak that may come back in between, and the share that each quarter of the time
/// has to add.
constexpr double leak_falls = 0.10;
constexpr double leak_quarter = 0.10;
constexpr std::size_t leak_points = 20;

std::int64_t minus(std::uint64_t a, std::uint64_t b) {
    return static_cast<std::int64_t>(a - b);
}

std::string size(std::int64_t bytes) {
    return format_size(static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0)));
}

/// A moment of the machine alone, for periods of many moments.
struct Point {
    std::int64_t time_ms;
    Figures machine;
};

std::vector<Point> points_of(Reader &reader, const Boot &boot, const Range &range) {
    std::vector<Point> points;

    reader.for_each(boot, range, [&](const Moment &moment) {
        points.push_back({moment.time_ms, moment.state.machine});
    });
    return points;
}

/// Returns the share of the time between two points, in per cent, in which all tasks waited for
/// memory.
double stalled_between(const Point &a, const Point &b) {
    const auto ms = static_cast<double>(b.time_ms - a.time_ms);

    if (ms <= 0 || b.machine[Figure::full_us] < a.machine[Figure::full_us])
        return 0;
    return static_cast<double>(b.machine[Figure::full_us] - a.machine[Figure::full_us]) / 10 / ms;
}

std::vector<Point>::const_iterator first_since(const std::vector<Point> &points,
                                               std::int64_t time_ms) {
    const auto found =
        std::ranges::find_if(points, [&](const Point &point) { return point.time_ms >= time_ms; });

    return found == points.end() ? std::prev(found) : found;
}

/// Finds the beginning of the fall that ended here: the last point that is not lower than any later
/// one.
std::vector<Point>::const_iterator begin_of_fall(const std::vector<Point> &points,
                                                 std::uint64_t (*measure)(const Figures &)) {
    const std::uint64_t last = measure(points.back().machine);
    const auto highest_in = [&](std::int64_t window) {
        auto best = std::prev(points.end());

        for (auto it = first_since(points, points.back().time_ms - window); it != points.end();
             ++it) {
            if (measure(it->machine) >= measure(best->machine))
                best = it;
        }
        return best;
    };
    const auto whole = highest_in(windows.back());
    const std::uint64_t fall = measure(whole->machine) - last;

    for (const std::int64_t window : windows) {
        const auto best = highest_in(window);

        if (static_cast<double>(measure(best->machine) - last) <
            most_of * static_cast<double>(fall))
            continue;
        // The last wave, where the measure wavers before it falls.
        const std::uint64_t nearly = measure(best->machine) - fall / 1000;
        auto from = best;
        for (auto it = best; it != points.end(); ++it) {
            if (measure(it->machine) >= nearly)
                from = it;
        }
        return from;
    }
    return whole;
}

std::uint64_t free_memory(const Figures &machine) {
    return machine[Figure::free];
}

std::vector<Growth> growths(const Moment &before, const Moment &after,
                            const std::map<std::uint32_t, Named> &names) {
    std::vector<Growth> all;

    for (const auto &[key, holdings] : after.state.accounts) {
        const auto was = before.state.accounts.find(key);
        const auto name = names.find(key);

        all.push_back({.key = key,
                       .named = name == names.end() ? Named{.path = "(forgotten)"} : name->second,
                       .before = was == before.state.accounts.end() ? Holdings() : was->second,
                       .after = holdings});
    }
    std::ranges::sort(all, [](const Growth &a, const Growth &b) {
        return std::pair(a.total(), b.named.path) > std::pair(b.total(), a.named.path);
    });
    return all;
}

/// Finds the account with most of the growth by some measure, and below it the deepest one that
/// still has most.
template <class Measure>
std::optional<Growth> most(const std::vector<Growth> &all, std::int64_t least, Measure measure) {
    const Growth *best = nullptr;

    for (const Growth &each : all) {
        if (each.named.path != "/" && measure(each) >= least && measure(each) > 0 &&
            (best == nullptr || measure(each) > measure(*best)))
            best = &each;
    }
    if (best == nullptr)
        return std::nullopt;
    for (bool found = true; found;) {
        found = false;
        for (const Growth &each : all) {
            if (is_below(each.named.path, best->named.path) &&
                measure(each) >= measure(*best) / 4 * 3) {
                best = &each;
                found = true;
            }
        }
    }
    return *best;
}

/// The next of 256 MiB, 512 MiB, 1 GiB, ...; of a small machine, of 16 MiB on.
std::uint64_t rounded_up(std::uint64_t bytes, std::uint64_t total) {
    std::uint64_t step = total < (8ULL << 30) ? 16ULL << 20 : 256ULL << 20;

    while (step < bytes)
        step *= 2;
    return step;
}

/// Returns how much there was of the measure when tasks began to wait for memory, or a part of the
/// whole if none did.
std::uint64_t needed(const std::vector<Point> &points, std::int64_t from_ms,
                     std::uint64_t (*measure)(const Figures &)) {
    constexpr double begins = 5;
    const std::uint64_t total = points.back().machine[Figure::total];

    for (std::size_t i = 1; i < points.size(); ++i) {
        if (points[i].time_ms > from_ms && stalled_between(points[i - 1], points[i]) >= begins)
            return rounded_up(measure(points[i - 1].machine) + 1, total);
    }
    return rounded_up(total / 32, total);
}

Prevention none(std::string why) {
    return {.why_not = std::move(why)};
}

/// Finds the moment from which less was available than a limit on driver or program memory would
/// have kept, and the account that grew most after it.
Prevention prevent(Reader &reader, const End &end, const std::vector<Point> &points,
                   const std::map<std::uint32_t, Named> &names) {
    Prevention prevention;
    const auto measure = end.kind == Kind::cache ? free_memory : obtainable;
    const std::uint64_t bytes = needed(points, end.fell_from_ms, measure);

    if (!end.culprit)
        return none("no single account took the memory");
    if (measure(end.before) <= bytes)
        return none(
            fmt::format("less than {} was available from the beginning", format_size(bytes)));
    const auto crossed = std::ranges::find_if(points, [&](const Point &point) {
        return point.time_ms >= end.fell_from_ms && measure(point.machine) < bytes;
    });
    if (crossed == points.end())
        return none(fmt::format("{} was available at any time", format_size(bytes)));
    // One second earlier: the sample before the threshold was crossed.
    const Point &at_last = crossed == points.begin() ? *crossed : *std::prev(crossed);
    const auto then = reader.at(end.boot, at_last.time_ms);
    const auto last = reader.at(end.boot, end.boot.last_ms);
    if (!then || !last)
        return none("there is no sample of that time");

    const std::vector<Growth> after = growths(*then, *last, names);
    prevention.time_ms = crossed->time_ms;
    prevention.bytes = bytes;
    switch (end.kind) {
    case Kind::driver: {
        const auto whom = most(after, 1, [](const Growth &growth) { return growth.driver(); });

        if (end.after[Figure::reserve] >= bytes)
            return none(fmt::format("a reserve of {} was in force",
                                    format_size(end.after[Figure::reserve])));
        if (!whom)
            return none(
                fmt::format("no account took more through the driver once less than {} could "
                            "be had",
                            format_size(bytes)));
        prevention.way = Prevention::Way::reserve;
        prevention.whom = whom;
        prevention.refused =
            whom->driver() - std::min(whom->driver(), minus(obtainable(at_last.machine), bytes));
        return prevention;
    }
    case Kind::programs: {
        const auto its = then->state.accounts.find(end.culprit->key);

        if (its == then->state.accounts.end())
            return none("the account was not there yet when memory became short");
        prevention.way = Prevention::Way::kernel_limit;
        prevention.bytes = its->second[Holding::current];
        prevention.whom = end.culprit;
        return prevention;
    }
    case Kind::cache:
        prevention.way = Prevention::Way::headroom;
        prevention.whom = end.culprit;
        return prevention;
    default:
        return none("no single account took the memory");
    }
}

Kind kind_of(const End &end, const std::optional<Growth> &by_memory,
             const std::optional<Growth> &by_cache) {
    const std::int64_t fall = minus(obtainable(end.before), obtainable(end.after));
    const auto share = [&](std::uint64_t bytes) {
        return static_cast<double>(bytes) /
               static_cast<double>(std::max<std::uint64_t>(end.after[Figure::total], 1));
    };
    const std::int64_t cached = minus(page_cache(end.after), page_cache(end.before));
    const bool is_short =
        share(obtainable(end.after)) < short_share || end.stalled_percent >= stalled_much;
    // Page cache counts as available; where the rest can't be taken back, it is what is left.
    const bool full_of_cache =
        end.stalled_percent >= 1 && share(end.after[Figure::free]) < short_share / 2 &&
        end.after[Figure::usage] + end.after[Figure::driver] > end.after[Figure::total] / 4;

    if (by_cache && full_of_cache && cached > std::max<std::int64_t>(fall, 0))
        return Kind::cache;
    if (!is_short)
        return Kind::not_short;
    if (by_memory && by_memory->total() * 2 >= fall)
        return by_memory->driver() * 2 >= by_memory->total() ? Kind::driver : Kind::programs;
    const std::int64_t all =
        minus(end.after[Figure::usage], end.before[Figure::usage]) +
        std::max<std::int64_t>(
            std::accumulate(end.growers.begin(), end.growers.end(), std::int64_t{0},
                            [](std::int64_t sum, const Growth &each) {
                                return each.named.path == "/" ||
                                               each.named.path.find('/', 1) != std::string::npos
                                           ? sum
                                           : sum + std::max<std::int64_t>(
                                                       each.total() - each.driver(), 0);
                            }),
            0);
    return all * 2 >= fall && all > 0 ? Kind::many : Kind::unknown;
}

/// Finds the moment after that point at which nearly as little was available as at the end.
std::int64_t low_since(const std::vector<Point> &points, const Point &first) {
    const std::uint64_t last = obtainable(points.back().machine);
    const std::uint64_t fall =
        obtainable(first.machine) - std::min(obtainable(first.machine), last);

    return std::ranges::find_if(points,
                                [&](const Point &point) {
                                    return point.time_ms >= first.time_ms &&
                                           obtainable(point.machine) <= last + fall / 20;
                                })
        ->time_ms;
}

/// Returns whether no task waited for memory for a minute after that fall: it was not the reason.
bool was_well_when_low(const std::vector<Point> &points, const Point &fell) {
    const std::int64_t low = low_since(points, fell);
    const std::uint64_t total = points.back().machine[Figure::total];

    if (obtainable(fell.machine) - obtainable(points.back().machine) < total / 50)
        return true;
    for (std::size_t i = 1; i < points.size(); ++i) {
        if (points[i].time_ms > low && stalled_between(points[i - 1], points[i]) >= 1)
            return points[i].time_ms - low >= minute;
    }
    return false;
}

/// Describes the time from that point on. Returns whether there are samples of it.
bool explain(End &end, Reader &reader, const std::vector<Point> &points, const Point &first,
             const std::map<std::uint32_t, Named> &names) {
    const Point &last = points.back();
    const auto before = reader.at(end.boot, first.time_ms);
    const auto after = reader.at(end.boot, last.time_ms);

    if (!before || !after)
        return false;
    end.fell_from_ms = first.time_ms;
    end.low_since_ms = low_since(points, first);
    end.before = first.machine;
    end.after = last.machine;
    end.stalled_percent =
        stalled_between(*first_since(points, last.time_ms - stalled_window), last);
    end.growers = growths(*before, *after, names);

    const auto least = static_cast<std::int64_t>(end.after[Figure::total] / 200);
    const auto by_memory =
        most(end.growers, least, [](const Growth &each) { return each.total(); });
    const auto by_cache = most(end.growers, least, [](const Growth &each) { return each.cache(); });
    end.kind = kind_of(end, by_memory, by_cache);
    if (end.kind == Kind::cache)
        end.culprit = by_cache;
    else if (end.kind == Kind::driver || end.kind == Kind::programs)
        end.culprit = by_memory;
    return true;
}

} // namespace

std::int64_t Growth::driver() const {
    return minus(after[Holding::driver], before[Holding::driver]);
}

std::int64_t Growth::total() const {
    return minus(history::total_and_swap(after), history::total_and_swap(before));
}

std::int64_t Growth::cache() const {
    return minus(after[Holding::cache], before[Holding::cache]);
}

End analyse_end(Reader &reader, const Boot &boot, const std::string &current) {
    End end{.boot = boot, .clean = boot.ended_ms.has_value(), .running = boot.boot_id == current};
    const auto names = reader.accounts(boot);
    const std::vector<Point> points =
        points_of(reader, boot, {.since_ms = boot.last_ms - windows.back()});

    if (points.empty())
        return end;
    // Page cache counts as available memory; where that doesn't explain it, what is free may.
    const auto fell = begin_of_fall(points, obtainable);
    const std::vector<Point> since_low(first_since(points, low_since(points, *fell)), points.end());
    if (!was_well_when_low(points, *fell) ||
        !explain(end, reader, points, *begin_of_fall(since_low, free_memory), names) ||
        end.kind != Kind::cache) {
        if (!explain(end, reader, points, *fell, names))
            return end;
    }
    for (Happening &happening : reader.happenings(boot, {.since_ms = end.fell_from_ms - minute})) {
        if (happening.type != "limits_changed" && happening.type != "failed" &&
            !happening.type.starts_with("soft_"))
            end.acts.push_back(std::move(happening));
    }
    if (end.kind != Kind::not_short)
        end.prevention = prevent(reader, end, points, names);
    return end;
}

// --- in words --------------------------------------------------------------------

namespace {

std::string quoted(const Named &named) {
    return printable(named.name());
}

std::string how_it_ended(const End &end) {
    const std::string last = clock_text(end.boot.last_ms, {});

    if (end.running)
        return fmt::format("The machine runs; the last sample is of {}.", last);
    if (end.clean)
        return fmt::format("The recording ended cleanly at {}: umacctd was stopped.", last);
    return fmt::format("The recording ends at {} without an orderly stop of umacctd: the "
                       "machine hung, lost its power, or umacctd was killed.",
                       last);
}

std::string what_happened(const End &end) {
    const std::string fall =
        fmt::format("{} of {} was available at {}, and {} ({} free) at the end",
                    format_size(obtainable(end.before)), format_size(end.after[Figure::total]),
                    clock_text(end.fell_from_ms, end.boot.last_ms),
                    format_size(obtainable(end.after)), format_size(end.after[Figure::free]));
    const std::int64_t took = std::max(end.low_since_ms - end.fell_from_ms, second);
    std::string text;

    switch (end.kind) {
    case Kind::driver:
        text =
            fmt::format("{} took {} through the driver within {}, {}: ", quoted(end.culprit->named),
                        size(end.culprit->driver()), span_text(took),
                        took <= sudden ? "a sudden load" : "little by little");
        break;
    case Kind::programs:
        text = fmt::format("Programs in {} took {} within {}, not through the driver: ",
                           quoted(end.culprit->named), size(end.culprit->total()), span_text(took));
        break;
    case Kind::cache:
        text = fmt::format(
            "The page cache grew by {} within {}, {} of it read or written by {}, while the driver "
            "held {} that the kernel cannot take back: ",
            size(minus(page_cache(end.after), page_cache(end.before))),
            span_text(end.boot.last_ms - end.fell_from_ms), size(end.culprit->cache()),
            quoted(end.culprit->named),
            format_size(end.after[Figure::usage] + end.after[Figure::driver]));
        break;
    case Kind::many:
        text = "Memory ran short, and no account took half of what is gone: ";
        break;
    case Kind::unknown:
        text = "Memory ran short, and no account took what is gone: ";
        break;
    case Kind::not_short:
        text = "Memory was not short: ";
        break;
    }
    text += fall;
    if (end.stalled_percent >= 1)
        text += fmt::format("; all tasks waited for memory {:.0f} % of the last {}",
                            end.stalled_percent, span_text(stalled_window));
    text += '.';
    if (end.kind == Kind::not_short && !end.clean && !end.running)
        text += " The data do not show what ended it.";
    if (end.kind == Kind::many || end.kind == Kind::unknown) {
        for (const Growth &each : end.growers) {
            if (each.named.path == "/" || each.total() <= 0)
                continue;
            text += fmt::format(" {} grew most, by {}.", quoted(each.named), size(each.total()));
            break;
        }
    }
    return text;
}

std::string what_umacct_did(const End &end) {
    std::uint64_t refused = 0;
    std::uint64_t steps = 0;
    const Happening *step = nullptr;
    const Happening *refusal = nullptr;

    for (const Happening &each : end.acts) {
        if (each.type.ends_with("_refused")) {
            refused += each.count;
            refusal = &each;
        } else if (each.type == "guard") {
            ++steps;
            step = &each;
        }
    }
    std::string text;
    if (refusal != nullptr)
        text += fmt::format(" umacct refused {} allocation{}, the last one, of {}, at {}.", refused,
                            refused == 1 ? "" : "s", printable(refusal->path),
                            clock_text(refusal->time_ms, end.boot.last_ms));
    if (step != nullptr)
        text += fmt::format(" The guard took {} step{}, the last one at {}: {}.", steps,
                            steps == 1 ? "" : "s", clock_text(step->time_ms, end.boot.last_ms),
                            printable(step->text));
    if (text.empty())
        text = fmt::format(
            " umacct did nothing; the reserve was {}.",
            end.after[Figure::reserve] == 0 ? "off" : format_size(end.after[Figure::reserve]));
    return text;
}

/// "4G", as commands take it.
std::string argument(std::uint64_t bytes) {
    for (const auto &[unit, letter] : {std::pair{1ULL << 30, 'G'}, {1ULL << 20, 'M'}}) {
        if (bytes >= unit && bytes % unit == 0)
            return fmt::format("{}{}", bytes / unit, letter);
    }
    return std::to_string(bytes >> 20U) + 'M';
}

std::string what_would_have_helped(const End &end) {
    const Prevention &it = end.prevention;
    const std::string time = clock_text(it.time_ms, end.boot.last_ms);

    switch (it.way) {
    case Prevention::Way::reserve:
        return fmt::format(
            " A reserve of {} would have refused {} at {}, before it took {} more; set "
            "it with `umacct reserve {}`.",
            format_size(it.bytes), quoted(it.whom->named), time, size(it.refused),
            argument(it.bytes));
    case Prevention::Way::kernel_limit:
        return fmt::format(" No limit of umacct's would have: this is not the driver's memory. A "
                           "limit of the kernel's of {} (MemoryMax=, docker --memory) would have "
                           "stopped {} at {}.",
                           format_size(it.bytes), quoted(it.whom->named), time);
    case Prevention::Way::headroom:
        return fmt::format(" `umacct headroom {}` would have given page cache back from {} on.",
                           argument(it.bytes), time);
    case Prevention::Way::none:
        break;
    }
    return end.kind == Kind::not_short
               ? ""
               : fmt::format(" The data do not show what would have prevented it: {}.", it.why_not);
}

} // namespace

std::string paragraph(const End &end) {
    std::string text = how_it_ended(end) + ' ' + what_happened(end);

    if (end.kind != Kind::not_short || !end.acts.empty())
        text += what_umacct_did(end);
    return text + what_would_have_helped(end);
}

std::string clock_text(std::int64_t time_ms, std::optional<std::int64_t> beside_ms) {
    const auto local = [](std::int64_t ms) {
        return fmt::localtime(static_cast<std::time_t>(ms / 1000));
    };

    if (beside_ms &&
        fmt::format("{:%F}", local(*beside_ms)) == fmt::format("{:%F}", local(time_ms)))
        return fmt::format("{:%T}", local(time_ms));
    return fmt::format("{:%F %T}", local(time_ms));
}

std::string span_text(std::int64_t ms) {
    const std::int64_t seconds = (ms + second / 2) / second;

    if (seconds < 120)
        return fmt::format("{} s", seconds);
    if (seconds < 7200)
        return fmt::format("{} min", seconds / 60);
    return seconds % 3600 / 60 == 0
               ? fmt::format("{} h", seconds / 3600)
               : fmt::format("{} h {} min", seconds / 3600, seconds % 3600 / 60);
}

// --- leaks -----------------------------------------------------------------------

namespace {

struct Course {
    std::vector<std::pair<double, double>> points; ///< hours, bytes
    std::int64_t first_ms = 0;
    std::int64_t last_ms = 0;
    Holdings first;
    Holdings last;
};

double slope_of(const std::vector<std::pair<double, double>> &points) {
    const auto n = static_cast<double>(points.size());
    double x = 0;
    double y = 0;
    double xx = 0;
    double xy = 0;

    for (const auto &[hours, bytes] : points) {
        x += hours / n;
        y += bytes / n;
    }
    for (const auto &[hours, bytes] : points) {
        xx += (hours - x) * (hours - x);
        xy += (hours - x) * (bytes - y);
    }
    return xx > 0 ? xy / xx : 0;
}

bool grows_without_falling(const std::vector<std::pair<double, double>> &points) {
    const double grown = points.back().second - points.front().second;
    double highest = 0;

    for (const auto &[hours, bytes] : points) {
        highest = std::max(highest, bytes);
        if (highest - bytes > leak_falls * grown)
            return false;
    }
    for (std::size_t quarter = 0; quarter < 4; ++quarter) {
        const auto at = [&](std::size_t part) {
            return points[part * (points.size() - 1) / 4].second;
        };

        if (at(quarter + 1) - at(quarter) < leak_quarter * grown)
            return false;
    }
    return true;
}

} // namespace

std::vector<Leak> find_leaks(Reader &reader, const Boot &boot, const Range &range,
                             std::int64_t interval_ms) {
    const auto names = reader.accounts(boot);
    std::map<std::uint32_t, Course> courses;
    std::vector<Leak> leaks;

    reader.for_each(
        boot, range,
        [&](const Moment &moment) {
            for (const auto &[key, holdings] : moment.state.accounts) {
                Course &course = courses[key];

                if (course.points.empty()) {
                    course.first_ms = moment.time_ms;
                    course.first = holdings;
                }
                course.last_ms = moment.time_ms;
                course.last = holdings;
                course.points.emplace_back(static_cast<double>(moment.time_ms - course.first_ms) /
                                               hour,
                                           static_cast<double>(total_and_swap(holdings)));
            }
            // Accounts that are gone leak no more.
            std::erase_if(courses, [&](const auto &each) {
                return !moment.state.accounts.contains(each.first);
            });
        },
        std::max<std::int64_t>(interval_ms, 10 * second));
    for (const auto &[key, course] : courses) {
        const auto name = names.find(key);
        const std::int64_t grown = minus(total_and_swap(course.last), total_and_swap(course.first));

        if (name == names.end() || name->second.path == "/" || course.points.size() < leak_points ||
            course.last_ms - course.first_ms < leak_span ||
            grown < static_cast<std::int64_t>(leak_bytes) || !grows_without_falling(course.points))
            continue;
        leaks.push_back(
            {.named = name->second,
             .since_ms = course.first_ms,
             .until_ms = course.last_ms,
             .grown = static_cast<std::uint64_t>(grown),
             .bytes_per_hour = slope_of(course.points),
             .driver =
                 minus(course.last[Holding::driver], course.first[Holding::driver]) * 2 >= grown});
    }
    // A leak inside another one's subtree is reported for the inner account only.
    std::erase_if(leaks, [all = leaks](const Leak &leak) {
        return std::ranges::any_of(all, [&](const Leak &other) {
            return is_below(other.named.path, leak.named.path) && other.grown >= leak.grown / 4 * 3;
        });
    });
    std::ranges::sort(
        leaks, [](const Leak &a, const Leak &b) { return a.bytes_per_hour > b.bytes_per_hour; });
    return leaks;
}

} // namespace umacct::history
