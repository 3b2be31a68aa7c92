// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/audit/svg.h"

#include <algorithm>
#include <numeric>

#include <fmt/ostream.h>

#include "lib/units.h"
#include "tool/print/markup.h"
#include "tool/print/text.h"

namespace umacct::tool {

namespace {

constexpr double width = 960;
constexpr double margin = 20;
constexpr double bar_height = 28;
constexpr double line_height = 20;
constexpr std::size_t legend_columns = 3;

struct Segment {
    std::string label;
    std::uint64_t bytes;
    const char *colour;
};

void print_text(std::ostream &out, double x, double y, const std::string &text) {
    fmt::print(out, "<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", x, y, escaped(text));
}

void print_bar(std::ostream &out, double y, std::uint64_t scale,
               const std::vector<Segment> &segments) {
    double x = margin;

    for (const Segment &segment : segments) {
        const double wide =
            static_cast<double>(segment.bytes) / static_cast<double>(scale) * (width - 2 * margin);

        fmt::print(out,
                   "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.0f}\" "
                   "fill=\"{}\"><title>{} {}</title></rect>\n",
                   x, y, wide, bar_height, segment.colour, escaped(segment.label),
                   format_size(segment.bytes));
        x += wide;
    }
}

double legend_height(const std::vector<Segment> &segments) {
    const std::size_t lines = (segments.size() + legend_columns - 1) / legend_columns;

    return static_cast<double>(lines) * line_height;
}

/// As many lines as it takes; returns where they end.
double print_legend(std::ostream &out, double y, const std::vector<Segment> &segments) {
    for (std::size_t i = 0; i < segments.size(); ++i) {
        const std::size_t line = i / legend_columns;
        const double x = margin + static_cast<double>(i % legend_columns) * (width - 2 * margin) /
                                      legend_columns;
        const double at = y + static_cast<double>(line) * line_height;

        fmt::print(out,
                   "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"12\" fill=\"{}\"/>\n", x,
                   at - 11, segments[i].colour);
        print_text(out, x + 18, at, segments[i].label + "  " + format_size(segments[i].bytes));
    }
    return y + legend_height(segments);
}

std::vector<Segment> segments_of(const Statement &machine) {
    std::vector<Segment> segments;

    for (const PartForm &form : part_forms()) {
        if (machine[form.part] > 0)
            segments.push_back({std::string(form.name),
                                static_cast<std::uint64_t>(machine[form.part]), form.colour});
    }
    return segments;
}

/// What the kernel has charged, then what it doesn't see.
std::vector<Segment> segments_of(const CgroupStatement &cgroup) {
    const std::uint64_t seen = cgroup.once + 2 * cgroup.twice;
    const std::uint64_t kernel = cgroup.kernel > seen ? cgroup.kernel - seen : 0;

    return {{"anonymous", cgroup.anonymous, form_of(Part::anonymous).colour},
            {"file", cgroup.file, form_of(Part::page_cache).colour},
            {"kernel's own", kernel, form_of(Part::slab).colour},
            {"driver, charged", seen, form_of(Part::driver_charged).colour},
            {"driver, not seen by memory.current", cgroup.unseen,
             form_of(Part::driver_uncharged).colour}};
}

std::uint64_t sum_of(const std::vector<Segment> &segments) {
    return std::accumulate(
        segments.begin(), segments.end(), std::uint64_t{0},
        [](std::uint64_t sum, const Segment &segment) { return sum + segment.bytes; });
}

} // namespace

void print_svg(std::ostream &out, const Owners &owners, const Statement &machine,
               const std::vector<CgroupStatement> &cgroups) {
    const std::vector<Segment> parts = segments_of(machine);
    const double height = 3 * margin + 2 * line_height + bar_height + legend_height(parts) +
                          static_cast<double>(cgroups.size()) * (bar_height + 2 * line_height);
    std::uint64_t scale = 1;
    double y = margin + line_height;

    for (const CgroupStatement &cgroup : cgroups)
        scale = std::max(scale, sum_of(segments_of(cgroup)));
    fmt::print(out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
               "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"13\">\n"
               "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
               width, height);
    print_text(out, margin, y, "Where the memory is: MemTotal " + format_size(machine.total));
    y += line_height / 2;
    print_bar(out, y, std::max(sum_of(parts), std::uint64_t{1}), parts);
    y = print_legend(out, y + bar_height + line_height, parts);
    for (const CgroupStatement &cgroup : cgroups) {
        y += line_height;
        print_text(out, margin, y,
                   fmt::format("{}: {}; memory.current {}, driver {}, not seen {}",
                               display_path(owners, cgroup.account.path), name_of(cgroup.verdict),
                               format_known(cgroup.current), format_size(cgroup.account.usage),
                               format_size(cgroup.unseen)));
        y += line_height / 2;
        print_bar(out, y, scale, segments_of(cgroup));
        y += bar_height;
    }
    fmt::print(out, "</svg>\n");
}

} // namespace umacct::tool
