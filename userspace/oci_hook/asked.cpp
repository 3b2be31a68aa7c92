// SPDX-License-Identifier: GPL-2.0-or-later
#include "oci_hook/asked.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/containers/asking.h"
#include "lib/error.h"
#include "lib/json_scan.h"
#include "lib/text.h"

namespace umacct::oci_hook {

namespace {

constexpr std::uint64_t mib = 1ULL << 20;

/// A throttle is the administrator's alone.
constexpr std::array settings_of_containers{std::string_view("hard"), std::string_view("soft"),
                                            std::string_view("keep"), std::string_view("view"),
                                            std::string_view("charge")};

using Texts = std::map<std::string, std::string, std::less<>>;

/// The relevant parts of a config.json.
struct Found {
    Texts annotations; ///< umacct's, without their prefix
    Texts variables;   ///< NVIDIA's and ours
    std::optional<std::string> allocated;
    std::optional<std::int64_t> memory_limit;
};

/// The lowest of several devices counts: an image may name one, too. What can't be understood comes
/// before all, and is refused.
bool comes_before(const std::string &device, const std::string &other) {
    const auto size_of = [](const std::string &text) -> std::uint64_t {
        try {
            return parse_size(text);
        } catch (const Error &) {
            return 0;
        }
    };

    return size_of(device) < size_of(other);
}

void take_variable(Found &found, const std::string &text) {
    for (const std::string_view name : {nvidia_request, nvidia_limit, cdi_hard}) {
        if (text.size() <= name.size() || !text.starts_with(name) || text[name.size()] != '=')
            continue;
        const std::string value = text.substr(name.size() + 1);
        const auto [before, is_first] = found.variables.try_emplace(std::string(name), value);

        // The last of NVIDIA's variables counts, as for programs and runtimes.
        if (!is_first && (name != cdi_hard || comes_before(value, before->second)))
            before->second = value;
    }
}

Found find(const std::string &config) {
    constexpr std::string_view prefix = annotation_prefix;
    Found found;
    std::string wrong;

    const bool is_json = for_each_json_scalar(config, [&](JsonKeys keys, const JsonScalar &value) {
        if (keys.size() >= 2 && keys[0] == "annotations" && keys[1].starts_with(prefix)) {
            if (keys.size() > 2 || value.text == nullptr)
                wrong = keys[1];
            else
                found.annotations[keys[1].substr(prefix.size())] = *value.text;
        } else if (keys.size() >= 2 && keys[0] == "annotations" &&
                   keys[1] == allocated_annotation) {
            if (keys.size() > 2 || value.text == nullptr)
                wrong = keys[1];
            else
                found.allocated = *value.text;
        } else if (keys.size() == 3 && keys[0] == "process" && keys[1] == "env" &&
                   value.text != nullptr) {
            take_variable(found, *value.text);
        } else if (keys.size() == 4 && keys[0] == "linux" && keys[1] == "resources" &&
                   keys[2] == "memory" && keys[3] == "limit") {
            found.memory_limit = value.number;
        }
    });

    if (!is_json)
        throw Error(Failure::failed, "cannot read the bundle's config.json: it is not JSON");
    if (!wrong.empty())
        throw Error(Failure::usage,
                    fmt::format("the annotation {} is not a text", printable(wrong)));
    return found;
}

/// Adds what is being read to what is wrong with it.
template <class Read>
auto reading(std::string_view what, std::string_view value, Read read) {
    try {
        return read();
    } catch (const Error &error) {
        throw Error(error.failure(),
                    fmt::format("{}={}: {}", what, printable(value), printable(error.what())),
                    error.hint());
    }
}

// clang 14 misses the call in the lambda below.
[[maybe_unused]] bool parse_switch(const std::string &text) {
    if (text == "on" || text == "true")
        return true;
    if (text == "off" || text == "false")
        return false;
    throw Error(Failure::usage, "neither 'on' nor 'off'");
}

void read_annotation(const std::string &key, const std::string &value, WrittenSettings &to) {
    if (std::ranges::find(settings_of_containers, key) == settings_of_containers.end())
        throw Error(Failure::usage, "there is no such annotation",
                    fmt::format("after {} comes one of {}", annotation_prefix,
                                fmt::join(settings_of_containers, ", ")));
    for_each_setting([&]<class Change, class Value, class Neutral>(
                         const Setting<Change, Value, Neutral> &setting) {
        if (setting.policy != key)
            return;
        if constexpr (std::is_same_v<Value, bool>)
            to.exact.*setting.change = parse_switch(value);
        else
            to.read(setting, value);
    });
}

std::uint64_t parse_mib(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);

    if (error != std::errc() || end != text.data() + text.size() || value == 0 ||
        value > std::numeric_limits<std::int64_t>::max() / mib)
        throw Error(Failure::usage, "not a whole number of MiB above 0");
    return value * mib;
}

std::optional<std::uint64_t> read_mib(const Found &found, std::string_view name) {
    const auto variable = found.variables.find(name);

    if (variable == found.variables.end())
        return std::nullopt;
    return reading(name, variable->second, [&] { return parse_mib(variable->second); });
}

/// The lower of both counts: a pod's own variable may be the last.
std::optional<std::uint64_t> read_device(const Found &found) {
    const auto size_of = [](std::string_view what, const std::string &text) {
        return reading(what, text, [&] { return parse_size(text); });
    };
    const auto variable = found.variables.find(cdi_hard);
    std::optional<std::uint64_t> device;

    if (found.allocated)
        device = size_of(allocated_annotation, *found.allocated);
    if (variable == found.variables.end())
        return device;
    if (variable->second != cdi_allocated) {
        const std::uint64_t size = size_of(cdi_hard, variable->second);

        return std::min(device.value_or(size), size);
    }
    if (!device)
        throw Error(
            Failure::failed,
            fmt::format("its runtime keeps the annotation {} from it", allocated_annotation),
            "'umacct setup containerd', or crio, k3s or rke2, on this node has it passed on");
    return device;
}

} // namespace

bool Asked::is_for_umacct() const {
    return !settings.exact.empty() || !settings.amounts.empty() || hard || soft;
}

Order Asked::order(std::uint64_t total, bool from_memory_limit) const {
    Order order;

    order.asked = settings.on(total);
    order.asked.hard = lower_limit(order.asked.hard, hard);
    order.asked.soft = lower_limit(order.asked.soft, soft);
    if (from_memory_limit)
        order.memory_limit = memory_limit;
    return order;
}

Asked read_asked(const std::string &config) {
    const Found found = find(config);
    Asked asked;

    for (const auto &[key, value] : found.annotations)
        reading(annotation_prefix + key, value,
                [&, &name = key, &text = value] { read_annotation(name, text, asked.settings); });

    const auto request = read_mib(found, nvidia_request);
    const auto limit = read_mib(found, nvidia_limit);
    if (request && limit && *request > *limit)
        throw Error(Failure::usage, fmt::format("{} is above {}", nvidia_request, nvidia_limit));
    asked.hard = lower_limit(limit, read_device(found));
    asked.soft = request;
    // The kernel's -1, and Kubernetes' 0, are none.
    if (found.memory_limit && *found.memory_limit > 0)
        asked.memory_limit = static_cast<std::uint64_t>(*found.memory_limit);
    return asked;
}

} // namespace umacct::oci_hook
