// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/audit/svg.h"

#include <algorithm>

#include <fmt/ostream.h>

#include "lib/units.h"

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

std::string escaped(const std::string &text) {
    std::string result;

    for (const char c : text) {
        switch (c) {
        case '<':
            result += "&lt;";
            break;
        case '>':
            result += "&gt;";
            break;
        case '&':
            result += "&amp;";
            break;
        case '"':
            result += "&quot;";
            break;
        default:
            result += c;
        }
    }
    return result;
}

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

/// Returns where it ends.
double print_legend(std::ostream &out, double y, const std::vector<Segment> &segments) {
    std::size_t column = 0;

    for (const Segment &segment : segments) {
        const double x =
            margin + static_cast<double>(column) * (width - 2 * margin) / legend_columns;

        fmt::print(out,
                   "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"12\" fill=\"{}\"/>\n", x,
                   y - 11, segment.colour);
        print_text(out, x + 18, y, segment.label + "  " + format_size(segment.bytes));
        if (++column == legend_columns) {
            column = 0;
            y += line_height;
        }
    }
    return column == 0 ? y : y + line_height;
}

std::vector<Segment> segments_of(const Statement &machine) {
    std::vector<Segment> segments;

    for (std::size_t i = 0; i < part_count; ++i) {
        const Part part{static_cast<std::uint8_t>(i)};

        if (machine[part] > 0)
            segments.push_back({std::string(form_of(part).name),
                                static_cast<std::uint64_t>(machine[part]), form_of(part).colour});
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
    std::uint64_t sum = 0;

    for (const Segment &segment : segments)
        sum += segment.bytes;
    return sum;
}

} // namespace

void print_svg(std::ostream &out, const Statement &machine,
               const std::vector<std::pair<std::string, CgroupStatement>> &cgroups) {
    const std::vector<Segment> parts = segments_of(machine);
    const std::size_t legend_lines = (parts.size() + legend_columns - 1) / legend_columns;
    const double height = 3 * margin + 2 * line_height + bar_height +
                          static_cast<double>(legend_lines) * line_height +
                          static_cast<double>(cgroups.size()) * (bar_height + 2 * line_height);
    std::uint64_t scale = 1;
    double y = margin + line_height;

    for (const auto &[name, cgroup] : cgroups)
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
    for (const auto &[name, cgroup] : cgroups) {
        y += line_height;
        print_text(out, margin, y,
                   fmt::format("{}: {}; memory.current {}, driver {}, not seen {}", name,
                               name_of(cgroup.verdict),
                               cgroup.current ? format_size(*cgroup.current) : "-",
                               format_size(cgroup.usage), format_size(cgroup.unseen)));
        y += line_height / 2;
        print_bar(out, y, scale, segments_of(cgroup));
        y += bar_height;
    }
    fmt::print(out, "</svg>\n");
}

} // namespace umacct::tool
