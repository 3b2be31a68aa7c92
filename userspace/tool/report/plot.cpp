// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/report/plot.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <set>
#include <unordered_map>
#include <utility>

#include <fmt/chrono.h>

#include "lib/arithmetic.h"
#include "lib/units.h"

namespace umacct::tool {

namespace {

using history::Figure;
using history::Holdings;
using history::Moment;
using history::Named;

/// Accounts with a band of their own.
struct AccountColour {
    const char *style;
    const char *colour;
};

constexpr std::array account_colours{
    AccountColour{"a0", "#0072b2"}, AccountColour{"a1", "#e69f00"}, AccountColour{"a2", "#009e73"},
    AccountColour{"a3", "#cc79a7"}, AccountColour{"a4", "#56b4e9"}, AccountColour{"a5", "#d55e00"},
    AccountColour{"a6", "#8c6bb1"},
};

constexpr double across = plot_width;
constexpr double high = plot_height;

using Keys = std::vector<std::uint32_t>;

/// Those above each account, the nearest first.
std::unordered_map<std::uint32_t, Keys> ancestors(const std::map<std::uint32_t, Named> &names) {
    std::unordered_map<std::string_view, Keys> by_path; // a name may have been given again
    std::unordered_map<std::uint32_t, Keys> all;

    for (const auto &[key, named] : names)
        by_path[named.path].push_back(key);
    for (const auto &[key, named] : names) {
        std::string_view path = named.path;
        Keys &above = all[key];

        while (path.size() > 1 && path.front() == '/') {
            path = path.substr(0, std::max<std::size_t>(path.rfind('/'), 1));
            if (const auto found = by_path.find(path); found != by_path.end())
                above.insert(above.end(), found->second.begin(), found->second.end());
        }
    }
    return all;
}

/// Returns each account's own memory, without that of cgroups below.
std::map<std::uint32_t, std::uint64_t>
own_memory(const Moment &moment, const std::unordered_map<std::uint32_t, Keys> &above) {
    std::map<std::uint32_t, std::uint64_t> below;
    std::map<std::uint32_t, std::uint64_t> own;

    for (const auto &[key, holdings] : moment.state.accounts) {
        const auto found = above.find(key);

        if (found == above.end())
            continue;
        const auto nearest = std::ranges::find_if(found->second, [&](std::uint32_t each) {
            return moment.state.accounts.contains(each);
        });
        if (nearest != found->second.end())
            below[*nearest] += history::total(holdings);
    }
    for (const auto &[key, holdings] : moment.state.accounts) {
        if (above.contains(key))
            own[key] = without(history::total(holdings), below[key]);
    }
    return own;
}

/// Those with the most, of all moments.
Keys largest(const std::vector<std::map<std::uint32_t, std::uint64_t>> &owns,
             const std::map<std::uint32_t, Named> &names) {
    std::map<std::uint32_t, std::uint64_t> most;
    Keys keys;

    for (const auto &own : owns) {
        for (const auto &[key, bytes] : own)
            most[key] = std::max(most[key], bytes);
    }
    for (const auto &[key, bytes] : most) {
        if (bytes > 0 && names.at(key).path != "/")
            keys.push_back(key);
    }
    std::ranges::sort(keys, [&](std::uint32_t a, std::uint32_t b) {
        return std::pair(most[a], b) > std::pair(most[b], a);
    });
    if (keys.size() > account_colours.size())
        keys.resize(account_colours.size());
    return keys;
}

/// Takes at most the rest.
std::uint64_t take(std::uint64_t &left, std::uint64_t wanted) {
    const std::uint64_t taken = std::min(left, wanted);

    left -= taken;
    return taken;
}

std::tm local_time(std::int64_t time_ms) {
    return fmt::localtime(static_cast<std::time_t>(time_ms / 1000));
}

/// Seconds that the local clock is ahead of UTC.
std::int64_t clock_offset(std::int64_t time_ms) {
    return local_time(time_ms).tm_gmtoff;
}

double share(std::int64_t part, std::int64_t whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

double height_of(const Plot &plot, std::uint64_t bytes) {
    return plot.total > 0 ? high * (1 - static_cast<double>(std::min(bytes, plot.total)) /
                                            static_cast<double>(plot.total))
                          : high;
}

double place_of(const Plot &plot, std::int64_t time_ms) {
    return across * share(time_ms - plot.since_ms, plot.until_ms - plot.since_ms);
}

/// The moments from one gap to the next; a moment by itself lasts until the next one would come.
std::vector<std::pair<std::size_t, std::size_t>> runs_of(const Plot &plot) {
    std::vector<std::pair<std::size_t, std::size_t>> runs;
    std::size_t first = 0;

    for (std::size_t i = 1; i <= plot.times.size(); ++i) {
        if (i < plot.times.size() && plot.times[i] - plot.times[i - 1] <= plot.gap_ms)
            continue;
        runs.emplace_back(first, i);
        first = i;
    }
    return runs;
}

/// Returns whether the next point begins a new line.
bool starts(const std::string &path) {
    return path.empty() || path.back() == 'Z' || path.back() == ' ';
}

/// Each with its place, in one direction.
void add_points(std::string &path, const Plot &plot, std::size_t first, std::size_t last,
                const std::vector<std::uint64_t> &bytes, bool backwards) {
    const auto add = [&](double x, std::size_t i) {
        path +=
            fmt::format("{}{:.1f} {:.1f}", starts(path) ? "M" : "L", x, height_of(plot, bytes[i]));
    };

    if (plot.is_still() || last - first == 1) {
        const double x = plot.is_still() ? 0 : place_of(plot, plot.times[first]);
        const double end =
            plot.is_still() ? across : std::max(x + 1, place_of(plot, plot.times[first] + 1000));

        add(backwards ? end : x, first);
        add(backwards ? x : end, first);
        return;
    }
    for (std::size_t n = first; n < last; ++n) {
        const std::size_t i = backwards ? last - 1 - (n - first) : n;

        add(place_of(plot, plot.times[i]), i);
    }
}

bool is_drawn(const Band &band) {
    return std::ranges::any_of(band.bytes, [](std::uint64_t bytes) { return bytes > 0; });
}

/// Cuts a long name to its end, which differs from others'.
std::string shortened(const std::string &name) {
    constexpr std::size_t most = 26;
    std::size_t from = name.size() - std::min(name.size(), most);

    while (from > 0 && from < name.size() &&
           (static_cast<unsigned char>(name[from]) & 0xc0U) == 0x80)
        ++from;
    return from == 0 ? name : "…" + name.substr(from);
}

} // namespace

// --- what is shown ---------------------------------------------------------------

Thinned::Thinned(const history::Range &range, std::int64_t most)
    : since_ms_(range.since_ms),
      width_ms_(std::max<std::int64_t>((range.until_ms - range.since_ms) / most, 1)) {}

void Thinned::take(const Moment &moment) {
    const auto [kept, is_new] = kept_.try_emplace((moment.time_ms - since_ms_) / width_ms_, moment);

    if (!is_new &&
        history::obtainable(moment.state.machine) < history::obtainable(kept->second.state.machine))
        kept->second = moment;
    last_ = moment;
}

std::vector<Moment> Thinned::end() {
    std::vector<Moment> moments;

    for (auto &[bucket, moment] : kept_)
        moments.push_back(std::move(moment));
    // A clock that was set may have put them out of order.
    std::ranges::stable_sort(moments, {}, &Moment::time_ms);
    if (last_ && moments.back().time_ms < last_->time_ms)
        moments.push_back(std::move(*last_));
    return moments;
}

Plot make_plot(const std::vector<Moment> &moments, const std::map<std::uint32_t, Named> &names,
               const NameAccount &name) {
    const auto above = ancestors(names);
    std::vector<std::map<std::uint32_t, std::uint64_t>> owns;
    Plot plot{.since_ms = moments.front().time_ms, .until_ms = moments.back().time_ms};

    owns.reserve(moments.size());
    for (const Moment &moment : moments)
        owns.push_back(own_memory(moment, above));
    const Keys shown = largest(owns, names);

    const auto add_band = [&](std::string title, const char *style, const char *colour) {
        plot.bands.push_back({std::move(title), style, colour, {}, {}});
    };
    add_band("driver, for itself", "own", "#4d4d4d");
    for (std::size_t i = 0; i < shown.size(); ++i) {
        add_band(name(names.at(shown[i])), account_colours.at(i).style,
                 account_colours.at(i).colour);
        plot.bands.back().path = names.at(shown[i]).path;
    }
    add_band("other accounts", "others", "#999999");
    add_band("programs and kernel beside", "rest", "#bdb5a1");
    add_band("page cache", "cache", "#dcd6c8");
    add_band("free", "free", "#f2f0ea");

    std::int64_t interval = 0;
    for (std::size_t i = 0; i < moments.size(); ++i) {
        const Moment &moment = moments[i];
        const history::Figures &machine = moment.state.machine;
        std::uint64_t left = machine[Figure::total];
        std::uint64_t others = 0;
        auto band = plot.bands.begin();
        const auto put = [&](std::uint64_t bytes) { (band++)->bytes.push_back(bytes); };

        plot.total = std::max(plot.total, left);
        plot.times.push_back(moment.time_ms);
        plot.reserve.push_back(machine[Figure::reserve]);
        interval = std::max(interval, moment.interval_ms);
        // Free memory is exact. If the accounts' page cache isn't known, their sum is too large,
        // and the machine's page cache gets a smaller band.
        const std::uint64_t free = take(left, machine[Figure::free]);
        put(take(left, machine[Figure::driver] + machine[Figure::pools]));
        for (const std::uint32_t key : shown) {
            const auto own = owns[i].find(key);

            put(take(left, own == owns[i].end() ? 0 : own->second));
        }
        for (const auto &[key, bytes] : owns[i])
            others += std::ranges::find(shown, key) == shown.end() ? bytes : 0;
        put(take(left, others));
        const std::uint64_t cache = take(left, history::page_cache(machine));
        put(left);
        put(cache);
        put(free);
    }
    // Thinned moments are further apart.
    plot.gap_ms = std::max(5 * interval, 3 * (plot.until_ms - plot.since_ms) /
                                             static_cast<std::int64_t>(moments.size()));
    return plot;
}

std::vector<Tick> time_ticks(const Plot &plot) {
    static constexpr std::array<std::int64_t, 22> steps{
        1,    2,    5,    10,    15,    30,    60,    120,    300,    600,     900,
        1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000, 7776000};
    constexpr std::int64_t most = 6;
    const std::int64_t span = (plot.until_ms - plot.since_ms) / 1000;
    const auto *found =
        std::ranges::find_if(steps, [span](std::int64_t each) { return span / each < most; });
    const std::int64_t step = found == steps.end() ? steps.back() : *found;
    const std::int64_t offset = clock_offset(plot.since_ms);
    std::vector<Tick> ticks;

    if (plot.is_still() || span <= 0)
        return ticks;
    const std::int64_t begin = (plot.since_ms + 999) / 1000 + offset;
    for (std::int64_t second = (begin + step - 1) / step * step;
         second - offset <= plot.until_ms / 1000; second += step) {
        const std::int64_t time_ms = (second - offset) * 1000;
        const std::tm time = local_time(time_ms);

        ticks.push_back({share(time_ms - plot.since_ms, plot.until_ms - plot.since_ms),
                         step < 60      ? fmt::format("{:%H:%M:%S}", time)
                         : step < 86400 ? fmt::format("{:%H:%M}", time)
                                        : fmt::format("{:%m-%d}", time)});
    }
    return ticks;
}

std::vector<Tick> size_ticks(std::uint64_t total) {
    std::vector<Tick> ticks{{0, "0"}};
    std::uint64_t step = 1ULL << 20;

    while (total / step > 5)
        step *= 2;
    for (std::uint64_t bytes = step; bytes <= total && total > 0; bytes += step)
        ticks.push_back({static_cast<double>(bytes) / static_cast<double>(total),
                         step >= 1ULL << 30 ? fmt::format("{} GiB", bytes >> 30U)
                                            : fmt::format("{} MiB", bytes >> 20U)});
    return ticks;
}

// --- how it is drawn -------------------------------------------------------------

void add_plot_style(Markup &markup) {
    markup.add(".own{fill:#4d4d4d}.a0{fill:#0072b2}.a1{fill:#e69f00}.a2{fill:#009e73}"
               ".a3{fill:#cc79a7}.a4{fill:#56b4e9}.a5{fill:#d55e00}.a6{fill:#8c6bb1}"
               ".others{fill:#999}.rest{fill:#bdb5a1}.cache{fill:#dcd6c8}.free{fill:#f2f0ea}"
               ".ground{fill:#fff}.ink{fill:#222}.line{stroke:#0003;fill:none}"
               ".reserve{stroke:#b00020;fill:none}.mark{fill:none}.mark.bad{stroke:#b00020}"
               ".mark.step{stroke:#b35900}.mark.note{stroke:#555}\n"
               "@media (prefers-color-scheme:dark){.own{fill:#8a8a8a}.others{fill:#6b6b6b}"
               ".rest{fill:#5a5548}.cache{fill:#3d3a33}.free{fill:#24231f}.ground{fill:#161613}"
               ".ink{fill:#eee}.line{stroke:#fff3}.reserve,.mark.bad{stroke:#ff6b81}"
               ".mark.step{stroke:#ffb066}.mark.note{stroke:#bbb}}\n");
}

void draw_bands(Markup &markup, const Plot &plot) {
    const auto runs = runs_of(plot);
    std::vector<std::uint64_t> below(plot.times.size());

    for (const Band &band : plot.bands) {
        std::vector<std::uint64_t> until = below;
        std::string path;

        for (std::size_t i = 0; i < until.size(); ++i)
            until[i] += band.bytes[i];
        for (const auto &[first, last] : runs) {
            add_points(path, plot, first, last, until, false);
            add_points(path, plot, first, last, below, true);
            path += 'Z';
        }
        below = std::move(until);
        if (is_drawn(band))
            markup.format("<path class=\"{}\" fill=\"{}\" d=\"{}\"><title>{}</title></path>\n",
                          band.style, band.colour, path, band.name);
    }
    if (std::ranges::any_of(plot.reserve, [](std::uint64_t bytes) { return bytes > 0; })) {
        std::vector<std::uint64_t> limit;
        std::string path;

        for (const std::uint64_t bytes : plot.reserve)
            limit.push_back(without(plot.total, bytes));
        for (const auto &[first, last] : runs) {
            path += path.empty() ? "" : " ";
            add_points(path, plot, first, last, limit, false);
        }
        markup.format("<path class=\"reserve\" d=\"{}\" stroke=\"#b00020\" fill=\"none\" "
                      "stroke-dasharray=\"6 4\" vector-effect=\"non-scaling-stroke\">"
                      "<title>the reserve</title></path>\n",
                      path);
    }
    for (const PlotMark &mark : plot.marks) {
        if (mark.time_ms >= plot.since_ms && mark.time_ms <= plot.until_ms)
            markup.format("<path class=\"mark {}\" d=\"M{:.1f} 0V{}\" stroke=\"#b00020\" "
                          "stroke-width=\"1.5\" vector-effect=\"non-scaling-stroke\">"
                          "<title>{}</title></path>\n",
                          mark.style, place_of(plot, mark.time_ms), plot_height, mark.text);
    }
}

void draw_bar(Markup &markup, const Plot &plot) {
    std::uint64_t before = 0;
    const auto place = [&](std::uint64_t bytes) {
        return plot.total > 0
                   ? across * static_cast<double>(bytes) / static_cast<double>(plot.total)
                   : 0;
    };

    for (const Band &band : plot.bands) {
        const std::uint64_t bytes = band.bytes.back();

        if (bytes > 0)
            markup.format("<rect class=\"{}\" fill=\"{}\" x=\"{:.2f}\" y=\"0\" width=\"{:.2f}\" "
                          "height=\"{}\"><title>{}: {}</title></rect>\n",
                          band.style, band.colour, place(before), place(bytes), bar_height,
                          band.name, format_size(bytes));
        before += bytes;
    }
}

void print_plot(std::ostream &out, const Plot &plot, const std::string &title) {
    constexpr double width = 960;
    constexpr double left = 70;
    constexpr double top = 50;
    constexpr double wide = 870;
    constexpr double tall = 320;
    constexpr double line = 20;
    constexpr std::size_t columns = 3;
    std::vector<const Band *> shown;
    Markup markup(out);

    for (const Band &band : plot.bands) {
        if (is_drawn(band))
            shown.push_back(&band);
    }
    const std::size_t lines = (shown.size() + columns - 1) / columns;
    const double height = top + tall + 2.5 * line + static_cast<double>(lines) * line;

    markup.format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
                  "viewBox=\"0 0 {0} {1}\" font-family=\"DejaVu Sans,sans-serif\" "
                  "font-size=\"13\">\n<title>{2}</title>\n<style>",
                  width, height, title);
    add_plot_style(markup);
    markup.format(
        "</style>\n<rect class=\"ground\" width=\"{}\" height=\"{}\" fill=\"#fff\"/>\n"
        "<text class=\"ink\" fill=\"#222\" x=\"20\" y=\"28\" font-size=\"15\">{}</text>\n",
        width, height, title);
    markup.format("<svg x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {} {}\" "
                  "preserveAspectRatio=\"none\">\n",
                  left, top, wide, tall, plot_width, plot_height);
    draw_bands(markup, plot);
    markup.add("</svg>\n");
    for (const Tick &tick : size_ticks(plot.total)) {
        const double y = top + tall * (1 - tick.at);

        markup.format("<path class=\"line\" d=\"M{0} {1:.1f}h{2}\" stroke=\"#0003\"/>"
                      "<text class=\"ink\" fill=\"#222\" x=\"{3}\" y=\"{4:.1f}\" "
                      "text-anchor=\"end\">{5}</text>\n",
                      left, y, wide, left - 6, y + 4, tick.text);
    }
    for (const Tick &tick : time_ticks(plot))
        markup.format("<text class=\"ink\" fill=\"#222\" x=\"{:.1f}\" y=\"{:.1f}\" "
                      "text-anchor=\"middle\">{}</text>\n",
                      left + wide * tick.at, top + tall + line, tick.text);
    for (std::size_t i = 0; i < shown.size(); ++i) {
        const Band &band = *shown[i];
        const std::size_t column = i % columns;
        const std::size_t row = 2 + i / columns;
        const double x = 20 + static_cast<double>(column) * (width - 40) / columns;
        const double y = top + tall + static_cast<double>(row) * line;

        markup.format("<rect class=\"{}\" fill=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" "
                      "height=\"12\" stroke=\"#888\" stroke-width=\"0.5\"/>"
                      "<text class=\"ink\" fill=\"#222\" x=\"{:.1f}\" y=\"{:.1f}\">{}  {}</text>\n",
                      band.style, band.colour, x, y - 10, x + 18, y, shortened(band.name),
                      format_size(band.bytes.back()));
    }
    markup.add("</svg>\n");
}

} // namespace umacct::tool
