// SPDX-License-Identifier: GPL-2.0-or-later
/// What the readers of the runtimes' files share.
#include "lib/owners/runtimes.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lib/text.h"

namespace umacct {

namespace {

constexpr std::size_t longest_text = 1024;
constexpr std::size_t most_labels = 128;

using nlohmann::json;
using Visit = std::function<void(std::span<const std::string>, const std::string &)>;

constexpr std::size_t deepest = 64; ///< no runtime's file comes near
constexpr std::size_t levels_kept = 4;

/// The member functions are those that json::sax_parse() calls.
class Strings {
public:
    explicit Strings(const Visit &visit) : visit_(visit) {}

    bool null() { return next(); }

    bool boolean(bool /*value*/) { return next(); }

    bool number_integer(json::number_integer_t /*value*/) { return next(); }

    bool number_unsigned(json::number_unsigned_t /*value*/) { return next(); }

    bool number_float(json::number_float_t /*value*/, const std::string & /*text*/) {
        return next();
    }

    bool binary(json::binary_t & /*value*/) { return next(); }

    bool string(const std::string &value) {
        next();
        if (depth_ <= levels_kept)
            visit_(std::span(keys_).first(depth_), value);
        return true;
    }

    bool key(const std::string &name) {
        if (depth_ <= levels_kept)
            keys_[depth_ - 1] = name;
        return true;
    }

    bool start_object(std::size_t /*size*/) { return start({}); }

    bool start_array(std::size_t /*size*/) { return start(0); }

    bool end_object() { return end(); }

    bool end_array() { return end(); }

    static bool parse_error(std::size_t /*at*/, const std::string & /*token*/,
                            const json::exception & /*error*/) {
        return false;
    }

private:
    /// Before each value.
    bool next() {
        if (depth_ > 0 && depth_ <= levels_kept && elements_[depth_ - 1])
            keys_[depth_ - 1] = std::to_string((*elements_[depth_ - 1])++);
        return true;
    }

    bool start(std::optional<std::size_t> element) {
        next();
        if (depth_ < levels_kept)
            elements_[depth_] = element;
        return ++depth_ <= deepest;
    }

    bool end() {
        --depth_;
        return true;
    }

    const Visit &visit_;
    std::size_t depth_ = 0;
    std::vector<std::string> keys_ = std::vector<std::string>(levels_kept);
    /// Of an array, the number of its next element.
    std::vector<std::optional<std::size_t>> elements_ =
        std::vector<std::optional<std::size_t>>(levels_kept);
};

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

bool for_each_json_string(const std::string &text, const Visit &visit) {
    Strings strings(visit);

    return json::sax_parse(text, &strings);
}

} // namespace umacct
