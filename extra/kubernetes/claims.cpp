// SPDX-License-Identifier: GPL-2.0-or-later
#include "kubernetes/claims.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "kubernetes/devices.h"
#include "lib/containers/asking.h"
#include "lib/error.h"
#include "lib/text.h"

namespace umacct::kubernetes {

namespace {

/// No machine has more; up to here a double is exact.
constexpr double most_bytes = 1ULL << 53;

constexpr std::array suffixes{
    std::pair<std::string_view, double>("", 1),
    std::pair<std::string_view, double>("m", 1e-3),
    std::pair<std::string_view, double>("k", 1e3),
    std::pair<std::string_view, double>("M", 1e6),
    std::pair<std::string_view, double>("G", 1e9),
    std::pair<std::string_view, double>("T", 1e12),
    std::pair<std::string_view, double>("P", 1e15),
    std::pair<std::string_view, double>("Ki", 1ULL << 10),
    std::pair<std::string_view, double>("Mi", 1ULL << 20),
    std::pair<std::string_view, double>("Gi", 1ULL << 30),
    std::pair<std::string_view, double>("Ti", 1ULL << 40),
    std::pair<std::string_view, double>("Pi", 1ULL << 50),
};

/// A member, or an empty value of its kind.
const Json &member(const Json &of, const char *key) {
    static const Json none;

    if (!of.is_object())
        return none;
    const auto found = of.find(key);
    return found == of.end() ? none : *found;
}

std::string text_in(const Json &of, const char *key) {
    const Json &found = member(of, key);

    return found.is_string() ? found.get<std::string>() : std::string();
}

} // namespace

std::uint64_t parse_quantity(std::string_view text) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const std::string_view suffix(end, static_cast<std::size_t>(text.data() + text.size() - end));
    const auto *const unit =
        std::ranges::find(suffixes, suffix, &std::pair<std::string_view, double>::first);
    const bool begins_well =
        !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) != 0;

    if (!begins_well || error != std::errc() || unit == suffixes.end() ||
        number * unit->second > most_bytes)
        throw Error(Failure::usage, fmt::format("'{}' is no amount of memory", printable(text)));
    return static_cast<std::uint64_t>(std::floor(number * unit->second));
}

std::vector<Share> shares_of(const Json &claim, const std::string &node) {
    const Json &status = member(claim, "status");
    const Json &users = member(status, "reservedFor");
    std::vector<Share> shares;

    if (users.size() > 1)
        throw Error(Failure::usage, fmt::format("the claim is reserved for {} pods", users.size()),
                    "its memory is one container's limit: make a claim for each pod, by a "
                    "ResourceClaimTemplate");
    for (const Json &each : member(member(member(status, "allocation"), "devices"), "results")) {
        if (text_in(each, "driver") != driver_name || text_in(each, "pool") != node)
            continue;
        const Json &consumed = member(each, "consumedCapacity");
        std::string amount = text_in(consumed, capacity_name);
        // The name with its domain is the same one.
        if (amount.empty())
            amount = text_in(consumed, fmt::format("{}/{}", driver_name, capacity_name).c_str());
        if (amount.empty())
            throw Error(Failure::failed, "the claim's allocation doesn't say how much it has",
                        "it takes Kubernetes 1.36, or 1.34 with DRAConsumableCapacity");
        const std::uint64_t bytes = parse_quantity(amount);
        if (bytes == 0)
            throw Error(Failure::usage,
                        "the claim has no memory: a limit of nothing would be none");
        shares.push_back({.request = text_in(each, "request"), .bytes = bytes});
    }
    if (shares.empty())
        throw Error(Failure::failed, "the claim has no memory of this node");
    return shares;
}

std::size_t containers_with(const Json &pod, const std::string &claim) {
    const Json &spec = member(pod, "spec");
    std::set<std::string> names;
    std::size_t count = 0;

    for (const Json &each : member(spec, "resourceClaims")) {
        if (text_in(each, "resourceClaimName") == claim)
            names.insert(text_in(each, "name"));
    }
    for (const Json &each : member(member(pod, "status"), "resourceClaimStatuses")) {
        if (text_in(each, "resourceClaimName") == claim)
            names.insert(text_in(each, "name"));
    }
    for (const char *key : {"containers", "initContainers"}) {
        for (const Json &container : member(spec, key)) {
            // The others of that kind have ended before the next one starts.
            if (key == std::string_view("initContainers") &&
                text_in(container, "restartPolicy") != "Always")
                continue;
            const Json &claims = member(member(container, "resources"), "claims");
            const bool uses = std::any_of(claims.begin(), claims.end(), [&](const Json &each) {
                return names.contains(text_in(each, "name"));
            });
            count += uses ? 1 : 0;
        }
    }
    return count;
}

bool is_plain_name(std::string_view name) {
    return !name.empty() && name.size() <= 253 && name[0] != '.' &&
           std::ranges::all_of(
               name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '.'; });
}

std::string device_of(const std::string &uid, std::size_t share) {
    return fmt::format("{}-{}", uid, share);
}

Json specification(const std::string &uid, const std::vector<Share> &shares,
                   const std::string &hook) {
    Json devices = Json::array();

    for (std::size_t i = 0; i < shares.size(); ++i) {
        const std::uint64_t bytes = shares[i].bytes;
        const std::string size =
            bytes % mib == 0 ? fmt::format("{}m", bytes / mib) : fmt::format("{}", bytes);

        devices.push_back({{"name", device_of(uid, i)},
                           {"containerEdits", {{"env", {fmt::format("{}={}", cdi_hard, size)}}}}});
    }
    return {{"cdiVersion", "0.5.0"},
            {"kind", claim_kind},
            {"devices", devices},
            {"containerEdits",
             {{"hooks",
               {{{"hookName", "createRuntime"},
                 {"path", hook},
                 {"args", {"umacct-hook"}},
                 {"timeout", seconds_of_hook}}}}}}};
}

} // namespace umacct::kubernetes
