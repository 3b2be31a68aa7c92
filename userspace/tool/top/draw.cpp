// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/top/draw.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "lib/module/health.h"
#include "lib/units.h"

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

    const char *glyph(const Grid &grid) const { return grid.unicode() ? unicode : ascii; }
};

/// From the left of the bar; what remains is available.
std::vector<Part> parts_of(const TopSample &sample) {
    const Status &status = sample.status;
    const std::uint64_t used = sample.total - std::min(sample.available, sample.total);
    const std::uint64_t driver = status.usage + status.driver_usage;

    return {{"other", used - std::min(driver, used), "\u2591", "."},
            {"charged", status.charged, "\u2592", "+"},
            {"driver's own", status.driver_usage, "\u2593", "%", Tone::uncharged},
            {"uncharged", status.uncharged(), "\u2588", "#", Tone::uncharged}};
}

void draw_bar(Grid &grid, int row, const TopSample &sample) {
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

    for (const Part &part : parts_of(sample)) {
        until += part.bytes;
        while (column < start + place(until))
            column = grid.put(row, column, part.glyph(grid), part.tone);
    }
    // The reserve is the last of what is available.
    const int reserve = start + width - place(sample.status.reserve);
    for (; column < start + width; ++column) {
        if (column >= reserve)
            grid.put(row, column, grid.unicode() ? "\u254C" : "-");
    }
    grid.put(row, column, "]");
}

struct Item {
    std::string text;
    Tone tone = Tone::plain;
};

std::vector<Item> legend(const Grid &grid, const TopSample &sample) {
    const std::uint64_t reserve = sample.status.reserve;
    std::vector<Item> items{{fmt::format("available {} of {}", format_short(sample.available),
                                         format_short(sample.total)),
                             Tone::strong}};
    std::vector<Part> parts = parts_of(sample);

    std::reverse(parts.begin(), parts.end());
    for (const Part &part : parts)
        items.push_back(
            {fmt::format("{} {} {}", part.glyph(grid), part.name, format_short(part.bytes)),
             part.bytes > 0 ? part.tone : Tone::plain});
    items.push_back(reserve == 0
                        ? Item{"reserve off"}
                        : Item{fmt::format("{} reserve {}", grid.unicode() ? "\u254C" : "-",
                                           format_short(reserve)),
                               sample.available < reserve ? Tone::refused : Tone::plain});
    return items;
}

/// Side by side, on as many rows as it takes; returns how many.
int draw_items(Grid &grid, int row, int rows, const std::vector<Item> &items) {
    int column = 0;
    int used = 0;

    for (const Item &item : items) {
        const int width = width_of(item.text, grid.unicode());

        if (used == 0 || (column > 0 && column + width > grid.size().columns)) {
            if (used == rows)
                break;
            ++used;
            column = 0;
        }
        column = grid.put(row + used - 1, column,
                          fitted(item.text, grid.size().columns, grid.unicode()), item.tone) +
                 3;
    }
    return used;
}

// --- the table ----------------------------------------------------------------

constexpr int history_most = 60;

/// What is drawn beside the columns that all lists have.
constexpr std::string_view history_field = "history";

/// How wide a column is, on a wide screen and on a narrow one.
int width_of(std::string_view name, bool processes, bool wide) {
    struct Width {
        std::string_view name;
        int wide, narrow;
    };

    static constexpr std::array widths{Width{"account", 16, 12}, Width{history_field, 10, 8},
                                       Width{"pid", 7, 7}, Width{"rate", 12, 12},
                                       Width{"memory.current", 14, 9}};
    static constexpr int of_a_size = 9;

    if (name == "name") {
        static constexpr Width of_account{"", 24, 18};

        return processes ? 16 : wide ? of_account.wide : of_account.narrow;
    }
    const auto *const found =
        std::ranges::find_if(widths, [&](const Width &each) { return each.name == name; });
    if (found == widths.end())
        return of_a_size;
    return wide ? found->wide : found->narrow;
}

/// A column as this screen has it.
struct Field {
    std::string_view name;
    std::string title = "HISTORY";
    int width;
    bool right = false;

    Field(std::string_view of, bool processes, bool wide)
        : name(of), width(width_of(of, processes, wide)) {
        if (name == history_field)
            return;
        const Column &known = column(name, Of::both, "");
        right = known.right();
        title = name == "memory.current" && !wide
                    ? "CURRENT"
                    : known.title_of(processes ? Of::processes : Of::accounts);
    }
};

struct Placed {
    Field field;
    int column;
};

/// All columns, and what gives way one after the other where a screen has no room for
/// them. Nothing at all stands for what columns are wider than they must be.
struct Choice {
    std::vector<std::string_view> all;
    std::vector<std::vector<std::string_view>> give_way;
};

const Choice &choice_of(bool processes) {
    static const Choice of_accounts{{"name", "usage", "limit", "peak", "rate", "memory.current",
                                     "uncharged", "pressure", "state", "history"},
                                    {{"state"},
                                     {"uncharged"},
                                     {"pressure"},
                                     {},
                                     {"history"},
                                     {"peak"},
                                     {"memory.current"},
                                     {"rate"},
                                     {"limit"}}};
    static const Choice of_processes{{"pid", "name", "usage", "limit", "peak", "rate",
                                      "memory.current", "uncharged", "state", "history", "account"},
                                     {{"state"},
                                      {"uncharged"},
                                      {},
                                      {"limit", "memory.current"},
                                      {"peak", "history"},
                                      {"account"},
                                      {"rate"},
                                      {"pid"}}};

    return processes ? of_processes : of_accounts;
}

std::vector<Field> fields_of(const std::vector<std::string_view> &names, bool processes,
                             bool wide) {
    std::vector<Field> fields;

    fields.reserve(names.size());
    for (const std::string_view name : names)
        fields.emplace_back(name, processes, wide);
    return fields;
}

int width_of(const std::vector<Field> &fields, int gap) {
    int width = -gap;

    for (const Field &field : fields)
        width += field.width + gap;
    return width;
}

std::string name_cell(const TopRow &row, bool processes, bool unicode) {
    const char *marker = "  ";

    if (processes)
        return row.name;
    if (row.parent && row.open)
        marker = unicode ? "\u25BE " : "- ";
    else if (row.parent)
        marker = unicode ? "\u25B8 " : "+ ";
    return std::string(static_cast<std::size_t>(row.depth) * 2, ' ') + marker + row.name;
}

/// Names get what room they need, then the history what it can use.
void share_room(std::vector<Field> &fields, int room, int longest_name, int longest_account) {
    const auto grow = [&](std::string_view name, int most) {
        for (Field &field : fields) {
            if (field.name != name)
                continue;
            const int more = std::clamp(most - field.width, 0, room);

            field.width += more;
            room -= more;
        }
    };

    grow("name", longest_name);
    grow("account", longest_account);
    grow(history_field, history_most);
}

std::vector<Placed> layout(const Grid &grid, bool processes, const std::vector<TopRow> &rows) {
    const int columns = grid.size().columns;
    const Choice &choice = choice_of(processes);
    std::vector<std::string_view> names = choice.all;
    bool wide = true;
    std::vector<Placed> placed;
    int longest_name = 0;
    int longest_account = 0;

    for (const TopRow &row : rows) {
        longest_name =
            std::max(longest_name,
                     tool::width_of(name_cell(row, processes, grid.unicode()), grid.unicode()));
        longest_account = std::max(longest_account, tool::width_of(row.place, grid.unicode()));
    }
    for (const auto &step : choice.give_way) {
        if (width_of(fields_of(names, processes, wide), wide ? 2 : 1) <= columns)
            break;
        wide = wide && !step.empty();
        std::erase_if(names, [&](std::string_view name) {
            return std::ranges::find(step, name) != step.end();
        });
    }

    const int gap = wide ? 2 : 1;
    std::vector<Field> fields = fields_of(names, processes, wide);
    int column = 0;

    // On a screen that is too small even for two columns, names shrink.
    const int room = columns - width_of(fields, gap);
    if (room < 0)
        fields.front().width = std::max(fields.front().width + room, 1);
    else
        share_room(fields, room, longest_name, longest_account);
    for (const Field &field : fields) {
        placed.push_back({field, column});
        column += field.width + gap;
    }
    return placed;
}

Item cell_of(const TopRow &row, const Field &at, bool processes, bool unicode) {
    const Tone state = row.refused       ? Tone::refused
                       : row.over_soft() ? Tone::over_soft
                                         : Tone::plain;
    const bool uncharged =
        (row.client != nullptr ? row.client->uncharged() : row.account->uncharged()) > 0;

    if (at.name == "name")
        return {name_cell(row, processes, unicode), state};
    if (at.name == "state" && row.refused)
        return {"refused", state};
    if (at.name == history_field)
        return {sparkline(row.history, at.width, unicode)};

    const std::string text = column(at.name, Of::both, "").cell(row, true);
    if (at.name == "rate")
        return {text, row.rate.value_or(0) != 0 ? Tone::plain : Tone::faint};
    if (at.name == "state" || (at.name == "usage" && row.over_soft()))
        return {text, at.name == "state" ? state : Tone::over_soft};
    return {text, uncharged && (at.name == "usage" || at.name == "uncharged") ? Tone::uncharged
                                                                              : Tone::plain};
}

void draw_cell(Grid &grid, int row, const Placed &at, const Item &item) {
    const Field &field = at.field;
    const auto fit = field.name == "account" ? fitted_end : fitted;
    const std::string text = fit(item.text, field.width, grid.unicode());
    const int shift = field.right ? field.width - tool::width_of(text, grid.unicode()) : 0;

    grid.put(row, at.column + shift, text, item.tone);
}

// --- help ---------------------------------------------------------------------

constexpr std::array help_text{
    "Keys",
    "  up down PgUp PgDn Home End   choose a row",
    "  left right                   fold and unfold what is below it; Enter does either",
    "  *                            unfold everything",
    "  p                            processes instead of cgroups, and back",
    "  a                            also cgroups that hold nothing",
    "  s                            sort by another column; r reverses",
    "  /                            show only names that contain a text",
    "  l                            set the hard limit of the chosen row's cgroup",
    "  space                        pause, and go on",
    "  q                            quit",
    "",
    "Columns",
    "  USAGE           memory taken through the driver, of the cgroup and all below it",
    "  LIMIT           the lowest hard limit from the cgroup to the root",
    "  PEAK            the highest usage so far",
    "  RATE            how fast usage changes, between the last two refreshes",
    "  MEMORY.CURRENT  what the kernel's own controller sees (CURRENT on small screens)",
    "  UNCHARGED       the part of USAGE that it doesn't see: the blind spot, coloured",
    "  HISTORY         usage at each refresh, the newest to the right",
    "",
    "In the list of processes, LIMIT and MEMORY.CURRENT are those of the cgroup.",
};

} // namespace

int draw_machine(Grid &grid, int row, int rows, const TopSample &sample) {
    if (rows <= 0)
        return 0;
    draw_bar(grid, row, sample);

    int used = 1 + draw_items(grid, row + 1, rows - 1, legend(grid, sample));
    const std::vector<std::string> wrong = warnings(sample.status);
    if (!wrong.empty() && used < rows) {
        const std::string more =
            wrong.size() > 1 ? fmt::format(" (and {} more: 'umacct')", wrong.size() - 1) : "";

        grid.put(row + used, 0,
                 fitted("warning: " + wrong.front(),
                        grid.size().columns - static_cast<int>(more.size()), grid.unicode()) +
                     more,
                 Tone::over_soft);
        ++used;
    }
    return used;
}

void draw_table(Grid &grid, int row, int height, const TopModel &model,
                const std::vector<TopRow> &rows, std::size_t first, std::size_t selected) {
    const std::vector<Placed> fields = layout(grid, model.processes, rows);

    if (height < 2)
        return;
    grid.put(row, 0, std::string(static_cast<std::size_t>(grid.size().columns), ' '), Tone::head);
    for (const Placed &at : fields)
        draw_cell(
            grid, row, at,
            {at.field.title, at.field.name == model.sort->name ? Tone::head_strong : Tone::head});
    for (std::size_t i = first; i < rows.size() && static_cast<int>(i - first) < height - 1; ++i) {
        const int at = row + 1 + static_cast<int>(i - first);

        for (const Placed &field : fields)
            draw_cell(grid, at, field,
                      cell_of(rows[i], field.field, model.processes, grid.unicode()));
        if (i == selected)
            grid.mark(at);
    }
}

void draw_help(Grid &grid, int first) {
    for (int line = first; line - first + 1 < grid.size().rows && line < help_lines(); ++line) {
        const char *text = help_text.at(static_cast<std::size_t>(line));

        grid.put(line - first, 0, fitted(text, grid.size().columns, grid.unicode()),
                 *text == ' ' ? Tone::plain : Tone::strong);
    }
}

int help_lines() {
    return static_cast<int>(help_text.size());
}

std::string sparkline(const std::vector<std::uint64_t> &values, int width, bool unicode) {
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

        line += unicode ? blocks.at(level) : ascii.at(level);
    }
    return line;
}

} // namespace umacct::tool
