// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/top/detail.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "lib/text.h"
#include "lib/units.h"
#include "tool/top/draw.h"

namespace umacct::tool {

namespace {

constexpr int history_height = 8;
constexpr std::size_t processes_shown = 10;

/// Returns the columns of a part, out of that many.
int place(std::uint64_t bytes, std::uint64_t total, int width) {
    return total == 0 ? 0
                      : static_cast<int>(std::lround(static_cast<double>(std::min(bytes, total)) *
                                                     width / static_cast<double>(total)));
}

/// Returns the position of a limit's mark; -1 for none.
int mark_of(const Limit &limit, std::uint64_t total, int width) {
    return limit && *limit <= total ? std::min(place(*limit, total, width), width - 1) : -1;
}

std::vector<DrawnItem> figures_of(const TopModel &model, const TopRow &row) {
    const Account &account = *row.account;
    const TopSample &sample = *model.sample();
    const MemoryController &memory = row.memory;
    const auto size = [](const std::optional<std::uint64_t> &bytes) {
        return !bytes                       ? std::string("-")
               : *bytes == UMACCT_UNLIMITED ? std::string("max")
                                            : format_short(*bytes);
    };
    const auto with_share = [&](std::uint64_t bytes) {
        return fmt::format("{}, {} of all", format_short(bytes),
                           format_percent(sample.total == 0
                                              ? 0
                                              : 100 * static_cast<double>(bytes) /
                                                    static_cast<double>(sample.total)));
    };
    const auto count = [](std::uint64_t times, const char *what) {
        return times == 0 ? std::string() : fmt::format(", {} {} times", what, times);
    };

    return {
        {"total " + (memory.total ? with_share(*memory.total) : "-"), Tone::strong},
        {fmt::format("page cache {}", size(memory.cache))},
        {fmt::format("swap {}", size(memory.swap))},
        {fmt::format("usage {}", format_short(account.usage))},
        {fmt::format("itself {}", format_short(account.local))},
        {fmt::format("peak {}", format_short(account.peak))},
        {fmt::format("rate {}", row.rate ? format_rate(*row.rate) : "-")},
        {fmt::format("charged {}", format_short(account.charged))},
        {fmt::format("uncharged {}", format_short(account.uncharged())),
         account.uncharged() > 0 ? Tone::uncharged : Tone::plain},
        {fmt::format("managed {}", format_short(account.managed))},
        {fmt::format("metadata {}, pinned {}", format_short(account.metadata),
                     format_short(account.pinned))},
        {fmt::format("memory.current {}", size(memory.current))},
        {fmt::format("memory.max {}", size(memory.max))},
        {fmt::format("pressure {}",
                     memory.pressure ? format_percent(memory.pressure->some.avg10) : "-")},
        {fmt::format("hard limit {}{}", size(account.hard.value_or(UMACCT_UNLIMITED)),
                     count(account.hard_count, "refused")),
         row.refused ? Tone::refused : Tone::plain},
        {fmt::format("soft limit {}{}", size(account.soft.value_or(UMACCT_UNLIMITED)),
                     count(account.soft_count, "crossed")),
         row.over_soft() ? Tone::over_soft : Tone::plain},
        {fmt::format("lowest hard limit {}{}", size(account.effective.value_or(UMACCT_UNLIMITED)),
                     row.bound_by.empty() ? "" : ", of " + row.bound_by)},
        {fmt::format("view {}", account.view ? "on" : "off")},
        {fmt::format("charging {}", name_of(account.charge_effective))},
        {fmt::format("allocations {}, {} refused, {} failed in the driver", account.allocs,
                     account.refusals, account.failures),
         account.refusals + account.failures > 0 ? Tone::over_soft : Tone::plain},
    };
}

/// The largest of it and below it.
std::vector<std::string> processes_of(const TopModel &model, const Account &account) {
    const std::string below = account.path == "/" ? "/" : account.path + '/';
    std::vector<const Client *> clients;
    std::vector<std::string> lines;

    for (const Client &client : model.sample()->clients) {
        if (client.account_id == account.id || client.path.starts_with(below))
            clients.push_back(&client);
    }
    std::ranges::stable_sort(clients,
                             [](const Client *a, const Client *b) { return a->usage > b->usage; });
    for (std::size_t i = 0; i < std::min(clients.size(), processes_shown); ++i)
        lines.push_back(fmt::format("{:>7}  {:>9}  {}", clients[i]->pid,
                                    format_short(clients[i]->usage), printable(clients[i]->comm)));
    if (clients.size() > processes_shown)
        lines.push_back(fmt::format("and {} more", clients.size() - processes_shown));
    return lines;
}

} // namespace

std::string usage_bar(const Account &account, std::uint64_t total, int width) {
    const int used = place(account.usage, total, width);
    const int hard = mark_of(account.effective, total, width);
    const int soft = mark_of(account.soft, total, width);
    const bool unicode = shows_unicode();
    std::string bar;

    for (int column = 0; column < width; ++column) {
        if (column == hard)
            bar += unicode ? "\u2503" : "|";
        else if (column == soft)
            bar += unicode ? "\u2506" : ":";
        else if (column < used)
            bar += unicode ? "\u2588" : "#";
        else
            bar += unicode ? "\u2591" : ".";
    }
    return bar;
}

std::vector<std::string> history_lines(const std::vector<std::uint64_t> &values,
                                       std::uint64_t limit, int width, int height) {
    static constexpr std::array eighths{" ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                        "\u2585", "\u2586", "\u2587", "\u2588"};
    const std::size_t shown = std::min(values.size(), static_cast<std::size_t>(std::max(width, 0)));
    const std::vector<std::uint64_t> last(values.end() - static_cast<std::ptrdiff_t>(shown),
                                          values.end());
    std::uint64_t most = last.empty() ? 0 : *std::ranges::max_element(last);
    std::vector<std::string> lines;

    // A limit that is far away would leave nothing to be seen of the rest.
    const bool has_limit = limit > 0 && limit / 3 <= most;
    if (has_limit)
        most = std::max(most, limit);
    const int steps = height * 8;
    const auto level = [&](std::uint64_t value) { return place(value, most, steps); };
    for (int line = height - 1; line >= 0; --line) {
        const bool at_limit = has_limit && std::max(level(limit) - 1, 0) / 8 == line;
        const char *empty = !at_limit ? " " : shows_unicode() ? "\u254C" : "-";
        std::string text;

        for (std::size_t i = shown; i < static_cast<std::size_t>(std::max(width, 0)); ++i)
            text += empty;
        for (const std::uint64_t value : last) {
            const int filled = std::clamp(level(value) - line * 8, 0, 8);

            if (filled == 0)
                text += empty;
            else if (shows_unicode())
                text += eighths.at(static_cast<std::size_t>(filled));
            else
                text += filled > 4 ? "#" : ".";
        }
        lines.push_back(std::move(text));
    }
    return lines;
}

void draw_detail(Grid &grid, int row, int height, const TopModel &model, const TopRow &chosen) {
    const Account &account = *chosen.account;
    const int columns = grid.size().columns;
    const int end = row + height;
    const std::string shown = model.shown(account.path);
    const std::string path = printable(account.path);
    const std::uint64_t total = model.sample()->total;
    const auto put = [&](const std::string &text, Tone tone = Tone::plain) {
        if (row < end)
            grid.put(row++, 0, fitted(text, columns), tone);
    };

    put(shown == path ? path : fmt::format("{}  {}", shown, path), Tone::strong);
    put(fmt::format("[{}]", usage_bar(account, total, std::max(columns - 2, 0))),
        account.uncharged() > 0 ? Tone::uncharged : Tone::plain);
    row += draw_items(grid, row, end - row, figures_of(model, chosen));

    // The history and the processes share the remaining rows.
    const std::vector<std::string> processes = processes_of(model, account);
    const int left = end - row - 1;
    const int list = std::min(static_cast<int>(processes.size()), left / 2);
    const int chart = std::clamp(left - list - 1, 0, history_height);
    if (chart >= 2) {
        put(fmt::format("HISTORY of usage, up to {}",
                        format_short(chosen.history.empty()
                                         ? 0
                                         : *std::ranges::max_element(chosen.history))),
            Tone::head);
        for (const std::string &line :
             history_lines(chosen.history, account.effective.value_or(0), columns, chart))
            put(line);
    }
    if (processes.empty() || end - row < 2)
        return;
    put("    PID      USAGE  PROCESS", Tone::head);
    for (const std::string &line : processes)
        put(line);
}

} // namespace umacct::tool
