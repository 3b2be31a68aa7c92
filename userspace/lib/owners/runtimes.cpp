// SPDX-License-Identifier: GPL-2.0-or-later
/// Helpers that the readers of the runtimes' files share.
#include "lib/owners/runtimes.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "lib/text.h"

namespace umacct {

namespace {

constexpr std::size_t longest_text = 1024;
constexpr std::size_t most_labels = 128;

} // namespace

std::string clean_image(std::string_view image) {
    std::string clean = image.size() > longest_text ? "" : printable(image);

    std::replace(clean.begin(), clean.end(), ' ', '?');
    return clean;
}

void Description::add_label(std::string_view key, std::string_view value) {
    if (labels.size() < most_labels && key.size() + value.size() < longest_text)
        labels.push_back(printable(fmt::format("{}={}", key, value)));
}

std::string Description::lines() const {
    if (name.empty() && image.empty() && labels.empty())
        return "";

    std::string text = fmt::format("{}\n{}\n", clean_name(name), clean_image(image));
    for (const std::string &label : labels)
        text.append(label).append(1, '\n');
    return text;
}

Description Description::of(std::span<const std::string> lines) {
    Description found;

    if (lines.size() < 2)
        return found;
    found.name = clean_name(lines[0]);
    found.image = clean_image(lines[1]);
    for (const std::string &label : lines.subspan(2)) {
        const auto equals = label.find('=');

        if (equals != std::string::npos)
            found.add_label(label.substr(0, equals), label.substr(equals + 1));
    }
    return found;
}

} // namespace umacct
