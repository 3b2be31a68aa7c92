// SPDX-License-Identifier: GPL-2.0-or-later
/// The machine's memory over a time, as bands that add up to all of it at every moment.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "lib/history/reader.h"
#include "tool/print/markup.h"

namespace umacct::tool {

struct Band {
    std::string name;
    std::string style;                ///< its class in the style sheet
    const char *colour;               ///< used on white, by programs without style sheets
    std::vector<std::uint64_t> bytes; ///< one value for each moment
    std::string path{};               ///< cgroup of an account's band
};

/// Something that happened, on the time line.
struct PlotMark {
    std::int64_t time_ms = 0;
    const char *style = ""; ///< "bad", "step" or "note"
    std::string text;
};

struct Plot {
    std::int64_t since_ms = 0;
    std::int64_t until_ms = 0;
    std::uint64_t total = 0;
    std::vector<std::int64_t> times{};
    std::int64_t gap_ms = 0;   ///< moments that are further apart have nothing between them
    std::vector<Band> bands{}; ///< lowest first
    std::vector<std::uint64_t> reserve{}; ///< one value for each moment
    std::vector<PlotMark> marks{};

    /// Returns whether it is a single moment, which has no course.
    bool is_still() const { return times.size() == 1; }
};

/// Reduces moments to the number that a picture shows: of several, it keeps the one with the least
/// available memory, and the last of all.
class Thinned {
public:
    /// most: number of moments to keep.
    Thinned(const history::Range &range, std::int64_t most);

    void take(const history::Moment &moment);

    std::vector<history::Moment> end();

private:
    std::int64_t since_ms_;
    std::int64_t width_ms_;
    std::map<std::int64_t, history::Moment> kept_; ///< the key is the bucket
    std::optional<history::Moment> last_;
};

/// name: of an account, for people.
using NameAccount = std::function<std::string(const history::Named &named)>;

/// moments: one at least, the oldest first. An account's band has what it holds itself, without
/// what is below it, and without page cache, which has a band of its own.
Plot make_plot(const std::vector<history::Moment> &moments,
               const std::map<std::uint32_t, history::Named> &names, const NameAccount &name);

/// A tick of an axis: where, as a share of its length, and what is written there.
struct Tick {
    double at;
    std::string text;
};

std::vector<Tick> time_ticks(const Plot &plot);
std::vector<Tick> size_ticks(std::uint64_t total);

/// Coordinates of the next two: the viewBox of the caller's <svg>, which may have any size.
constexpr int plot_width = 1000;
constexpr int plot_height = 300;
constexpr int bar_height = 40;

/// The bands, with the reserve and the marks.
void draw_bands(Markup &markup, const Plot &plot);

/// The last moment as one bar.
void draw_bar(Markup &markup, const Plot &plot);

/// A picture by itself.
void print_plot(std::ostream &out, const Plot &plot, const std::string &title);

/// Rules of a style sheet for what is drawn here: its colours on light and on dark.
void add_plot_style(Markup &markup);

} // namespace umacct::tool
