// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/top/draw.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "lib/arithmetic.h"
#include "lib/module/health.h"
#include "lib/units.h"
#include "tool/top/detail.h"

namespace umacct::tool {

namespace {

// --- the machine --------------------------------------------------------------

/// A part of the machine's memory, and how the bar shows it.
struct Part {
    const char *name;
    std::uint64_t bytes;
    const char *unicode;
    const char *ascii;
    Tone tone = Tone::plain;

    const char *glyph() const { return shows_unicode() ? unicode : ascii; }
};

const char *reserve_glyph() {
    return shows_unicode() ? "\u254C" : "-";
}

/// Returns the parts of the bar from the left; the rest is available.
std::vector<Part> parts_of(const TopSample &sample) {
    const Status &status = sample.status;
    const std::uint64_t used = sample.total - std::min(sample.available, sample.total);
    const std::uint64_t driver = status.usage + status.driver_usage;

    return {{"other", without(used, driver), "\u2591", "."},
            {"charged", status.charged, "\u2592", "+"},
            {"driver's own", status.driver_usage, "\u2593", "%", Tone::uncharged},
            {"uncharged", status.uncharged(), "\u2588", "#", Tone::uncharged}};
}

/// Lists the bar's owners from the left, with their names in it.
std::vector<Part> owners_of(const TopSample &sample) {
    std::vector<Part> parts;

    for (const OwnerShare &each : sample.division.owners)
        parts.push_back({each.name.c_str(), each.total, parts.size() % 2 == 0 ? "\u2593" : "\u2592",
                         parts.size() % 2 == 0 ? "#" : "+"});
    parts.push_back({sample.division.whole ? "the rest" : "not visible to you",
                     sample.division.rest, "\u2591", ".", Tone::faint});
    return parts;
}

void draw_bar(Grid &grid, int row, const TopSample &sample, bool kinds) {
    static constexpr std::string_view title = "Memory [";
    const int width = grid.size().columns - static_cast<int>(title.size()) - 1;
    const auto place = [&](std::uint64_t bytes) {
        return sample.total == 0 ? 0
                                 : static_cast<int>(std::lround(
                                       static_cast<double>(std::min(bytes, sample.total)) * width /
                                       static_cast<double>(sample.total)));
    };
    std::uint64_t until = 0;
    int column = grid.put(row, 0, title);
    const int start = column;

    for (const Part &part : kinds ? parts_of(sample) : owners_of(sample)) {
        until += part.bytes;
        // A name that is cut says nothing.
        if (!kinds && width_of(part.name) < start + place(until) - column)
            column = grid.put(row, column, part.name, part.tone);
        while (column < start + place(until))
            column = grid.put(row, column, part.glyph(), part.tone);
    }
    // The reserve is the last of what is available.
    const int reserve = start + width - place(sample.status.reserve);
    for (; column < start + width; ++column) {
        if (column >= reserve)
            grid.put(row, column, reserve_glyph());
    }
    grid.put(row, column, "]");
}

using Item = DrawnItem;

std::vector<Item> legend(const TopSample &sample, bool kinds) {
    const Division &division = sample.division;
    const std::uint64_t reserve = sample.status.reserve;
    std::vector<Item> items{
        {available_text(division), division.is_short() ? Tone::refused : Tone::strong}};
    const std::vector<Part> parts = parts_of(sample);

    std::for_each(parts.rbegin(), parts.rend(), [&](const Part &part) {
        if (kinds)
            items.push_back(
                {fmt::format("{} {} {}", part.glyph(), part.name, format_short(part.bytes)),
                 part.bytes > 0 ? part.tone : Tone::plain});
    });
    items.push_back(reserve == 0
                        ? Item{"reserve " + reserve_text(sample.status, format_short)}
                        : Item{fmt::format("{} reserve {}", reserve_glyph(), format_short(reserve)),
                               sample.available < reserve ? Tone::refused : Tone::plain});
    return items;
}

// --- the table ----------------------------------------------------------------

constexpr int history_most = 60;

/// Drawn fields besides the columns of all lists.
constexpr std::string_view history_field = "history";
constexpr std::string_view bar_field = "bar";

bool is_drawn(std::string_view field) {
    return field == history_field || field == bar_field;
}

/// A column of the screen.
struct Field {
    std::string_view name;
    int wide;   ///< columns that it takes at least
    int narrow; ///< the same on a narrow screen
    int goes;   ///< the step at which it is left out; 0 for never

    int width(bool on_wide) const { return on_wide ? wide : narrow; }

    std::string title(Of of, bool on_wide) const {
        if (is_drawn(name))
            return name == bar_field ? "OF ALL" : "HISTORY";
        return name == "memory.current" && !on_wide ? "CURRENT"
                                                    : column(name, Of::both, "").title_of(of);
    }

    bool right() const { return !is_drawn(name) && column(name, Of::both, "").right(); }
};

/// Fields of a list, which narrow or vanish step by step on a small screen.
struct Choice {
    std::vector<Field> all;
    int narrows; ///< the step at which columns become as narrow as they can
    int steps;
};

const Choice &choice_of(Of of) {
    static const Choice of_accounts{{{"name", 24, 18, 0},
                                     {"total", 9, 9, 0},
                                     {"usage", 9, 9, 10},
                                     {"limit", 9, 9, 10},
                                     {"percent", 7, 7, 4},
                                     {"peak", 9, 9, 8},
                                     {"rate", 12, 12, 9},
                                     {"memory.current", 14, 9, 6},
                                     {"uncharged", 9, 9, 3},
                                     {"pressure", 9, 9, 4},
                                     {"state", 9, 9, 2},
                                     {bar_field, 16, 10, 1},
                                     {history_field, 10, 8, 7}},
                                    5,
                                    10};
    static const Choice of_processes{{{"pid", 7, 7, 8},
                                      {"name", 16, 16, 0},
                                      {"total", 9, 9, 0},
                                      {"usage", 9, 9, 8},
                                      {"limit", 9, 9, 4},
                                      {"percent", 7, 7, 2},
                                      {"peak", 9, 9, 5},
                                      {"rate", 12, 12, 7},
                                      {"memory.current", 14, 9, 4},
                                      {"uncharged", 9, 9, 2},
                                      {"state", 9, 9, 1},
                                      {history_field, 10, 8, 5},
                                      {"account", 16, 12, 6}},
                                     3,
                                     8};

    return of == Of::processes ? of_processes : of_accounts;
}

struct Placed {
    Field field;
    int width;
};

/// The fields of a screen, from its left.
struct Layout {
    std::vector<Placed> fields;
    bool wide = true;

    int gap() const { return wide ? 2 : 1; }

    int width() const {
        int width = -gap();

        for (const Placed &placed : fields)
            width += placed.width + gap();
        return width;
    }

    /// Gives the field what it can use of the room.
    void grow(std::string_view name, int most, int &room) {
        for (Placed &placed : fields) {
            if (placed.field.name != name)
                continue;
            const int more = std::clamp(most - placed.width, 0, room);

            placed.width += more;
            room -= more;
        }
    }
};

Layout layout_at(const Choice &choice, int step) {
    Layout layout{.fields = {}, .wide = step < choice.narrows};

    for (const Field &field : choice.all) {
        if (field.goes == 0 || field.goes > step)
            layout.fields.push_back({field, field.width(layout.wide)});
    }
    return layout;
}

std::string name_cell(const TopRow &row) {
    const char *marker = "  ";

    if (row.client != nullptr)
        return row.name;
    if (row.parent && row.open)
        marker = shows_unicode() ? "\u25BE " : "- ";
    else if (row.parent)
        marker = shows_unicode() ? "\u25B8 " : "+ ";
    return std::string(static_cast<std::size_t>(row.depth) * 2, ' ') + marker + row.name;
}

Layout layout_of(int columns, Of of, const std::vector<TopRow> &rows) {
    const Choice &choice = choice_of(of);
    int step = 0;
    int longest_name = 0;
    int longest_account = 0;

    for (const TopRow &row : rows) {
        longest_name = std::max(longest_name, width_of(name_cell(row)));
        longest_account = std::max(longest_account, width_of(row.place));
    }
    // The bars, which give way first, take nothing of a name.
    const int rest = of == Of::processes ? 0 : longest_name - choice.all.front().wide;
    if (layout_at(choice, step).width() + std::max(rest, 0) > columns)
        ++step;
    while (step < choice.steps && layout_at(choice, step).width() > columns)
        ++step;

    Layout layout = layout_at(choice, step);
    int room = columns - layout.width();
    // Names shrink on a screen that is too small even for two columns.
    if (room < 0) {
        layout.fields.front().width = std::max(layout.fields.front().width + room, 1);
        return layout;
    }
    layout.grow("name", longest_name, room);
    layout.grow("account", longest_account, room);
    layout.grow(history_field, history_most, room);
    return layout;
}

Item cell_of(const TopRow &row, std::string_view name, int width, std::uint64_t total) {
    const Tone state = row.refused       ? Tone::refused
                       : row.over_soft() ? Tone::over_soft
                                         : Tone::plain;

    if (name == "name")
        return {name_cell(row), state};
    if (name == "state" && row.refused)
        return {"refused", state};
    if (name == history_field)
        return {sparkline(row.history, width)};
    if (name == bar_field)
        return {usage_bar(*row.account, total, width)};

    const std::string text = column(name, Of::both, "").cell(row, Form::narrow);
    if (name == "state")
        return {text, state};
    if (name == "rate" && row.rate.value_or(0) == 0)
        return {text, Tone::faint};
    if (name == "usage" && row.over_soft())
        return {text, Tone::over_soft};
    if (name == "usage" || name == "uncharged")
        return {text,
                column("uncharged", Of::both, "").number(row) > 0 ? Tone::uncharged : Tone::plain};
    return {text};
}

/// item_of: what is in a field.
template <class ItemOf>
void draw_row(Grid &grid, int row, const Layout &layout, ItemOf item_of) {
    int column = 0;

    for (const Placed &placed : layout.fields) {
        const Item item = item_of(placed);
        const auto fit = placed.field.name == "account" ? fitted_end : fitted;
        const std::string text = fit(item.text, placed.width);
        const int shift = placed.field.right() ? placed.width - width_of(text) : 0;

        grid.put(row, column + shift, text, item.tone);
        column += placed.width + layout.gap();
    }
}

// --- help ---------------------------------------------------------------------

constexpr std::array help_of_keys{
    "Keys",
    "  up down PgUp PgDn Home End   choose a row",
    "  left right                   fold and unfold what is below it",
    "  Enter                        all about the chosen row's cgroup, and back",
    "  *                            unfold everything",
    "  p                            processes instead of cgroups, and back",
    "  a                            also cgroups that hold nothing",
    "  b                            the bar by kinds of memory instead of owners, and back",
    "  s                            sort by another column; r reverses",
    "  /                            show only names that contain a text",
    "  l                            set the hard limit of the chosen row's cgroup",
    "  f                            freeze that cgroup, or let it go on",
    "  K                            kill every process of it and below it",
    "  space                        pause, and go on",
    "  q                            quit",
    "",
    "Columns",
};

/// Help for the drawn fields, which are no columns of lists.
constexpr std::array help_of_drawn{
    "  OF ALL          usage as a part of the machine's memory; the marks are limits: the",
    "                  lowest hard one, and, broken, the soft one",
    "  HISTORY         usage at each refresh, the newest to the right, scaled to its highest;",
    "                  from before the start where umacctd recorded it and you may read that",
    "",
    "In the list of processes, LIMIT and MEMORY.CURRENT are those of the cgroup.",
    "On small screens, MEMORY.CURRENT is called CURRENT.",
};

const std::vector<std::string> &help_text() {
    static const std::vector<std::string> text = [] {
        std::vector<std::string> lines(help_of_keys.begin(), help_of_keys.end());

        for (const Field &field : choice_of(Of::accounts).all) {
            if (!is_drawn(field.name))
                lines.push_back(fmt::format("  {:<16}{}", field.title(Of::accounts, true),
                                            column(field.name, Of::accounts, "").help));
        }
        lines.insert(lines.end(), help_of_drawn.begin(), help_of_drawn.end());
        return lines;
    }();

    return text;
}

} // namespace

int draw_machine(Grid &grid, int row, int rows, const TopSample &sample, bool kinds) {
    if (rows <= 0)
        return 0;
    kinds |= sample.division.owners.empty(); // a subtree has no owners
    draw_bar(grid, row, sample, kinds);

    int used = 1 + draw_items(grid, row + 1, rows - 1, legend(sample, kinds));
    const std::vector<std::string> wrong = warnings(sample.status);
    if (!wrong.empty() && used < rows) {
        const std::string more =
            wrong.size() > 1 ? fmt::format(" (and {} more: 'umacct')", wrong.size() - 1) : "";

        grid.put(row + used, 0,
                 fitted("warning: " + wrong.front(),
                        grid.size().columns - static_cast<int>(more.size())) +
                     more,
                 Tone::over_soft);
        ++used;
    }
    return used;
}

void draw_table(Grid &grid, int row, int height, const TopModel &model,
                const std::vector<TopRow> &rows, std::size_t first, std::size_t selected) {
    const Of of = model.processes ? Of::processes : Of::accounts;
    const Layout layout = layout_of(grid.size().columns, of, rows);

    if (height < 2)
        return;
    grid.put(row, 0, std::string(static_cast<std::size_t>(grid.size().columns), ' '), Tone::head);
    draw_row(grid, row, layout, [&](const Placed &placed) {
        return Item{placed.field.title(of, layout.wide),
                    placed.field.name == model.sort->name ? Tone::head_strong : Tone::head};
    });
    for (std::size_t i = first; i < rows.size() && static_cast<int>(i - first) < height - 1; ++i) {
        const int at = row + 1 + static_cast<int>(i - first);

        draw_row(grid, at, layout, [&](const Placed &placed) {
            return cell_of(rows[i], placed.field.name, placed.width, model.sample()->total);
        });
        if (i == selected)
            grid.mark(at);
    }
}

void draw_help(Grid &grid, int first) {
    for (int line = first; line - first + 1 < grid.size().rows && line < help_lines(); ++line) {
        const std::string &text = help_text().at(static_cast<std::size_t>(line));

        grid.put(line - first, 0, fitted(text, grid.size().columns),
                 text.starts_with(' ') ? Tone::plain : Tone::strong);
    }
}

int help_lines() {
    return static_cast<int>(help_text().size());
}

std::string sparkline(const std::vector<std::uint64_t> &values, int width) {
    static constexpr std::array blocks{"\u2581", "\u2582", "\u2583", "\u2584",
                                       "\u2585", "\u2586", "\u2587", "\u2588"};
    static constexpr std::array ascii{"_", ".", ":", "-", "=", "+", "*", "#"};
    const std::size_t shown = std::min(values.size(), static_cast<std::size_t>(std::max(width, 0)));
    const std::vector<std::uint64_t> last(values.end() - static_cast<std::ptrdiff_t>(shown),
                                          values.end());
    const std::uint64_t most = last.empty() ? 0 : *std::max_element(last.begin(), last.end());
    std::string line(static_cast<std::size_t>(std::max(width, 0)) - shown, ' ');

    for (const std::uint64_t value : last) {
        const auto level = most == 0
                               ? 0
                               : static_cast<std::size_t>(std::lround(
                                     static_cast<double>(value) * 7 / static_cast<double>(most)));

        line += shows_unicode() ? blocks.at(level) : ascii.at(level);
    }
    return line;
}

} // namespace umacct::tool
