// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/report/page.h"

#include <algorithm>
#include <cstdlib>

#include "lib/units.h"
#include "tool/print/text.h"

namespace umacct::tool {

namespace {

using history::Figure;
using history::Happening;
using history::Holding;

constexpr std::size_t accounts_shown = 50;
constexpr std::size_t events_shown = 100;

void add_style(Markup &markup) {
    markup.add("<style>\n"
               ":root{color-scheme:light dark;--ground:#fff;--ink:#222;--faint:#595959;"
               "--line:#ddd;--box:#f6f5f1;--bad:#a8001d;--warn:#8a4b00;--well:#1b6e3c}\n"
               "@media (prefers-color-scheme:dark){:root{--ground:#161613;--ink:#eee;"
               "--faint:#b5b3ab;--line:#3a3933;--box:#22211d;--bad:#ff8a9a;--warn:#ffb066;"
               "--well:#7bd69d}}\n"
               "*{box-sizing:border-box}\n"
               "body{margin:0 auto;max-width:70rem;padding:1rem;background:var(--ground);"
               "color:var(--ink);font:1rem/1.45 system-ui,sans-serif;overflow-wrap:anywhere}\n"
               "h1{font-size:1.4rem}h2{font-size:1.1rem;margin:2rem 0 .5rem}\n"
               "p.told,p.remark{background:var(--box);padding:.75rem 1rem;"
               "border-left:.25rem solid var(--line)}\n"
               ".faint{color:var(--faint)}\n"
               ".scroll{overflow-x:auto;overflow-wrap:break-word}\n"
               "table{border-collapse:collapse;font-size:.9rem}\n"
               "th,td{text-align:left;vertical-align:top;padding:.25rem .75rem .25rem 0;"
               "border-bottom:1px solid var(--line)}\n"
               "th.n,td.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}\n"
               "td.who{min-width:9rem;overflow-wrap:anywhere}\n"
               "svg{display:block;width:100%}\n"
               "svg.swatch{display:inline-block;width:.8rem;height:.8rem;margin-right:.4rem;"
               "outline:1px solid var(--line)}\n"
               "svg.held{width:8rem;height:.9rem;background:var(--box)}\n"
               "svg.bar{height:2.2rem}\n"
               ".plot{position:relative;margin:.5rem 0 1.6rem 4.5rem}\n"
               ".plot>svg{height:18rem}\n"
               ".plot>span{position:absolute;font-size:.75rem;color:var(--faint);"
               "white-space:nowrap}\n"
               ".plot>.y{right:100%;margin-right:.4rem;transform:translateY(50%)}\n"
               ".plot>.x{top:100%;transform:translateX(-50%)}\n"
               ".fail{color:var(--bad);font-weight:600}.warn{color:var(--warn);font-weight:600}"
               ".ok{color:var(--well)}\n"
               "@media (max-width:40rem){.plot>.x:nth-of-type(even){display:none}"
               ".plot>svg{height:12rem}}\n"
               "@media print{body{max-width:none}}\n");
    add_plot_style(markup);
    markup.add("</style>\n");
}

void add_swatch(Markup &markup, const Band &band) {
    markup.format("<svg class=\"swatch\" viewBox=\"0 0 1 1\" aria-hidden=\"true\">"
                  "<rect class=\"{}\" width=\"1\" height=\"1\"/></svg>",
                  band.style);
}

/// A table that scrolls by itself where the screen is narrow.
void begin_table(Markup &markup, const char *label) {
    markup.format(
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{}\">\n<table>\n",
        label);
}

void end_table(Markup &markup) {
    markup.add("</table>\n</div>\n");
}

void print_versions(Markup &markup, const Report &report) {
    markup.add("<section>\n<h2>Versions</h2>\n");
    begin_table(markup, "versions");
    for (const auto &[what, version] : report.versions)
        markup.format("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", what, version);
    end_table(markup);
    markup.add("</section>\n");
}

void print_now(Markup &markup, const Plot &plot) {
    std::uint64_t sum = 0;
    std::vector<const Band *> rows;

    // Owners first, the largest at the top.
    for (const Band &band : plot.bands)
        rows.push_back(&band);
    std::ranges::stable_sort(rows, [](const Band *a, const Band *b) {
        return !a->path.empty() && (b->path.empty() || a->bytes.back() > b->bytes.back());
    });
    markup.add("<section>\n<h2>Where the memory is</h2>\n");
    markup.format("<p class=\"faint\">At {}</p>\n", history::clock_text(plot.times.back()));
    markup.format("<svg class=\"bar\" role=\"img\" aria-label=\"A bar of the parts in the table "
                  "below\" viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\">\n",
                  plot_width, bar_height);
    draw_bar(markup, plot);
    markup.add("</svg>\n");
    begin_table(markup, "where the memory is");
    markup.add("<thead><tr><th scope=\"col\">Part</th><th scope=\"col\" class=\"n\">Size</th>"
               "<th scope=\"col\" class=\"n\">Share</th></tr></thead>\n<tbody>\n");
    for (const Band *band : rows) {
        const std::uint64_t bytes = band->bytes.back();

        sum += bytes;
        markup.add("<tr><td>");
        add_swatch(markup, *band);
        markup.format("{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n", band->name,
                      format_size(bytes),
                      format_percent(plot.total > 0 ? 100 * static_cast<double>(bytes) /
                                                          static_cast<double>(plot.total)
                                                    : 0));
    }
    markup.format("</tbody>\n<tfoot><tr><th scope=\"row\">MemTotal</th><td class=\"n\">{}</td>"
                  "<td></td></tr></tfoot>\n",
                  format_size(sum));
    end_table(markup);
    markup.add("</section>\n");
}

void print_course(Markup &markup, const Plot &plot) {
    markup.add("<section>\n<h2>How it went</h2>\n");
    markup.format("<p class=\"faint\">{}. A vertical line is an event of the list below{}.</p>\n",
                  plot_title(plot),
                  std::ranges::any_of(plot.reserve, [](std::uint64_t each) { return each > 0; })
                      ? ", the dashed one the reserve"
                      : "");
    markup.format("<div class=\"plot\">\n<svg role=\"img\" aria-label=\"{}: the parts of the table "
                  "above, over the time\" viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\">\n",
                  plot_title(plot), plot_width, plot_height);
    draw_bands(markup, plot);
    markup.add("</svg>\n");
    for (const Tick &tick : size_ticks(plot.total))
        markup.format("<span class=\"y\" style=\"bottom:{:.2f}%\">{}</span>\n", tick.at * 100,
                      tick.text);
    for (const Tick &tick : time_ticks(plot))
        markup.format("<span class=\"x\" style=\"left:{:.2f}%\">{}</span>\n", tick.at * 100,
                      tick.text);
    markup.add("</div>\n</section>\n");
}

/// Adds the memory of a holder as a share of the machine's, with its limit as a line.
void add_held(Markup &markup, const history::Holdings &holdings, std::uint64_t total) {
    const auto share = [&](std::uint64_t bytes) {
        return total > 0
                   ? 100 * static_cast<double>(std::min(bytes, total)) / static_cast<double>(total)
                   : 0;
    };
    const std::uint64_t hard = holdings[Holding::hard];

    markup.format(
        "<svg class=\"held\" aria-hidden=\"true\" viewBox=\"0 0 100 10\" "
        "preserveAspectRatio=\"none\"><rect class=\"a0\" width=\"{:.2f}\" height=\"10\"/>",
        share(history::total(holdings)));
    if (hard != UMACCT_UNLIMITED)
        markup.format("<path class=\"mark bad\" d=\"M{:.2f} 0v10\" stroke-width=\"2\" "
                      "vector-effect=\"non-scaling-stroke\"/>",
                      share(hard));
    markup.add("</svg>");
}

void print_accounts(Markup &markup, const Report &report, const NameAccount &name) {
    const Period &period = report.period;
    const std::uint64_t total = period.last->state.machine[Figure::total];

    markup.add(
        "<section>\n<h2>Accounts</h2>\n<p class=\"faint\">With what is below each. The bar is "
        "of the machine's memory, the line in it the hard limit.</p>\n");
    begin_table(markup, "accounts");
    markup.add("<thead><tr><th scope=\"col\">Account</th><th scope=\"col\" class=\"n\">TOTAL</th>"
               "<th scope=\"col\">Of all</th>");
    for (const char *head : {"Grew", "Most", "Driver", "Page cache", "Swap", "Fastest",
                             "Hard limit", "Refused", "Failed"})
        markup.format(R"(<th scope="col" class="n">{}</th>)", head);
    markup.add("</tr></thead>\n<tbody>\n");
    for (std::size_t i = 0; i < std::min(period.rows.size(), accounts_shown); ++i) {
        const AccountPeriod &row = period.rows[i];
        const std::uint64_t hard = row.last[Holding::hard];

        markup.format(R"(<tr><td class="who">{}</td><td class="n">{}</td><td>)", name(row.named),
                      format_size(history::total(row.last)));
        add_held(markup, row.last, total);
        markup.format("</td><td class=\"n\">{}{}</td>", row.total_grown() < 0 ? "-" : "+",
                      format_size(static_cast<std::uint64_t>(std::abs(row.total_grown()))));
        for (const std::string &cell :
             {format_size(row.most_total), format_size(row.last[Holding::driver]),
              format_size(row.last[Holding::cache]), format_size(row.last[Holding::swap]),
              format_rate(row.fastest),
              format_limit(hard == UMACCT_UNLIMITED ? Limit() : Limit(hard)),
              std::to_string(row.rose(Holding::refusals)),
              std::to_string(row.rose(Holding::failures))})
            markup.format("<td class=\"n\">{}</td>", cell);
        markup.add("</tr>\n");
    }
    markup.add("</tbody>\n");
    end_table(markup);
    if (period.rows.size() > accounts_shown)
        markup.format("<p class=\"faint\">and {} more</p>\n", period.rows.size() - accounts_shown);
    for (const history::Leak &leak : period.leaks)
        markup.format("<p class=\"told\">{} grows and does not fall: {} in {}, {}/h, {}.</p>\n",
                      name(leak.named), format_size(leak.grown),
                      history::span_text(leak.until_ms - leak.since_ms),
                      format_size(static_cast<std::uint64_t>(leak.bytes_per_hour)),
                      leak.driver ? "through the driver" : "its programs' own memory");
    markup.add("</section>\n");
}

void print_events(Markup &markup, const Report &report, const NameAccount &name) {
    const auto &all = report.period.happenings;
    const std::size_t skipped = all.size() - std::min(all.size(), events_shown);

    const auto by_path = [&](const std::string &path) { return name({.path = path}); };

    markup.add("<section>\n<h2>Events</h2>\n");
    if (skipped > 0)
        markup.format("<p class=\"faint\">{} events before these</p>\n", skipped);
    begin_table(markup, "events");
    markup.add("<thead><tr><th scope=\"col\">Time</th><th scope=\"col\">Event</th>"
               "<th scope=\"col\">Account</th><th scope=\"col\">Process</th>"
               "<th scope=\"col\">What</th></tr></thead>\n<tbody>\n");
    for (std::size_t i = skipped; i < all.size(); ++i) {
        const Happening &each = all[i];

        markup.format(
            "<tr><td>{}</td><td>{}</td><td class=\"who\">{}</td><td>{}</td><td>{}{}</td></tr>\n",
            history::clock_text(each.time_ms), each.type,
            each.path.empty() ? "the machine" : name({.path = each.path}),
            each.pid == 0 ? "" : fmt::format("{} ({})", each.comm, each.pid),
            describe(each, by_path),
            each.count > 1 ? fmt::format(", the last of {}", each.count) : "");
    }
    markup.add("</tbody>\n");
    end_table(markup);
    markup.add("</section>\n");
}

void print_findings(Markup &markup, const doctor::Findings &findings) {
    markup.add("<section>\n<h2>What the doctor says</h2>\n");
    markup.format("<p>{}: {} failed, {}</p>\n",
                  findings.count(doctor::Health::fail) == 0 ? "Healthy" : "Not healthy",
                  findings.count(doctor::Health::fail),
                  counted(findings.count(doctor::Health::warn), "warning", "warnings"));
    begin_table(markup, "checks");
    markup.add("<thead><tr><th scope=\"col\">State</th><th scope=\"col\">Check</th>"
               "<th scope=\"col\">Found</th></tr></thead>\n<tbody>\n");
    for (const doctor::Found &found : findings.all)
        markup.format("<tr><td class=\"{0}\">{0}</td><td>{1}</td><td>{2}{3}</td></tr>\n",
                      doctor::word_of(found.health), found.check, found.text,
                      found.hint.empty() ? "" : ". Hint: " + found.hint);
    markup.add("</tbody>\n");
    end_table(markup);
    markup.add("</section>\n");
}

} // namespace

std::string plot_title(const Plot &plot) {
    return plot.is_still()
               ? fmt::format("The machine's memory at {}", history::clock_text(plot.since_ms))
               : fmt::format("The machine's memory, {} to {}", history::clock_text(plot.since_ms),
                             history::clock_text(plot.until_ms, plot.since_ms));
}

void print_page(std::ostream &out, const Report &report, const NameAccount &name) {
    Markup markup(out);

    markup.add("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
               "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
               "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
               "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
               "<meta name=\"referrer\" content=\"no-referrer\">\n<title>umacct report</title>\n");
    add_style(markup);
    markup.add("</head>\n<body>\n<main>\n<h1>umacct report</h1>\n");
    markup.format("<p class=\"faint\">Made at {}.{}</p>\n", report.made,
                  report.redacted ? " Names and paths are pseudonyms." : "");
    if (report.end)
        markup.format("<p class=\"told\">{}</p>\n", history::paragraph(*report.end));
    for (const std::string &remark : report.remarks)
        markup.format("<p class=\"remark\">{}</p>\n", remark);
    if (report.plot) {
        print_now(markup, *report.plot);
        if (!report.plot->is_still())
            print_course(markup, *report.plot);
        print_accounts(markup, report, name);
    }
    if (!report.period.happenings.empty())
        print_events(markup, report, name);
    print_findings(markup, report.findings);
    print_versions(markup, report);
    markup.add("</main>\n</body>\n</html>\n");
}

} // namespace umacct::tool
