// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/json_scan.h"

#include <cstddef>
#include <limits>
#include <vector>

#include <nlohmann/json.hpp>

namespace umacct {

namespace {

using nlohmann::json;
using Visit = std::function<void(JsonKeys, const JsonScalar &)>;

constexpr std::size_t deepest = 64; ///< no runtime's file comes near
constexpr std::size_t levels_kept = 4;

/// The member functions are those that json::sax_parse() calls.
class Scalars {
public:
    explicit Scalars(const Visit &visit) : visit_(visit) {}

    bool null() { return scalar({}); }

    bool boolean(bool /*value*/) { return scalar({}); }

    bool number_integer(json::number_integer_t value) {
        return scalar({.text = nullptr, .number = value});
    }

    bool number_unsigned(json::number_unsigned_t value) {
        return value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())
                   ? scalar({})
                   : scalar({.text = nullptr, .number = static_cast<std::int64_t>(value)});
    }

    bool number_float(json::number_float_t /*value*/, const std::string & /*text*/) {
        return scalar({});
    }

    bool binary(json::binary_t & /*value*/) { return scalar({}); }

    bool string(const std::string &value) { return scalar({.text = &value, .number = {}}); }

    bool key(const std::string &name) {
        if (depth_ <= levels_kept)
            keys_[depth_ - 1] = name;
        return true;
    }

    bool start_object(std::size_t /*size*/) { return start({}); }

    bool start_array(std::size_t /*size*/) { return start(0); }

    bool end_object() { return end(); }

    bool end_array() { return end(); }

    static bool parse_error(std::size_t /*offset*/, const std::string & /*token*/,
                            const json::exception & /*error*/) {
        return false;
    }

private:
    /// Called before each value.
    void next() {
        if (depth_ > 0 && depth_ <= levels_kept && elements_[depth_ - 1])
            keys_[depth_ - 1] = std::to_string((*elements_[depth_ - 1])++);
    }

    bool scalar(const JsonScalar &value) {
        next();
        if (depth_ <= levels_kept)
            visit_(std::span(keys_).first(depth_), value);
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
    /// The number of an array's next element.
    std::vector<std::optional<std::size_t>> elements_ =
        std::vector<std::optional<std::size_t>>(levels_kept);
};

} // namespace

bool for_each_json_scalar(const std::string &text, const Visit &visit) {
    Scalars scalars(visit);

    return json::sax_parse(text, &scalars);
}

bool for_each_json_string(
    const std::string &text,
    const std::function<void(JsonKeys keys, const std::string &value)> &visit) {
    return for_each_json_scalar(text, [&visit](JsonKeys keys, const JsonScalar &value) {
        if (value.text != nullptr)
            visit(keys, *value.text);
    });
}

} // namespace umacct
