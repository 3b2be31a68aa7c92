// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/containers/inject.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lib/containers/asking.h"
#include "lib/error.h"
#include "lib/json_scan.h"

namespace umacct::containers {

namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void throw_config(const char *what) {
    throw Error(Failure::failed, fmt::format("cannot change the bundle's config.json: {}", what));
}

/// A member of that type; made where there is none.
Json &member(Json &of, const char *key, Json::value_t type) {
    Json &found = of[key];

    if (found.is_null())
        found = Json(type);
    if (found.type() != type)
        throw_config(fmt::format("{} is not what it has to be", key).c_str());
    return found;
}

bool is_variable(const Json &each, std::string_view name) {
    return each.is_string() &&
           each.get_ref<const std::string &>().starts_with(fmt::format("{}=", name));
}

/// NVIDIA's hook does nothing unless both of its variables are there.
bool hide_request(Json &config) {
    const Json env =
        member(member(config, "process", Json::value_t::object), "env", Json::value_t::array);
    Json rest = Json::array();
    std::optional<std::string> request;
    bool has_limit = false;

    for (const Json &each : env) {
        has_limit |= is_variable(each, nvidia_limit);
        // The last of several counts.
        if (is_variable(each, nvidia_request))
            request = each.get<std::string>().substr(std::string_view(nvidia_request).size() + 1);
        else
            rest.push_back(each);
    }
    if (!request || !has_limit)
        return false;
    config["process"]["env"] = std::move(rest);
    member(config, "annotations", Json::value_t::object)
        .emplace(fmt::format("{}soft", annotation_prefix), *request + "m");
    return true;
}

} // namespace

std::optional<std::string> with_hook(const std::string &config, const std::string &hook,
                                     bool instead_of_nvidia) {
    // How deep it may be is looked at without building it.
    if (!for_each_json_scalar(config, [](JsonKeys /*keys*/, const JsonScalar & /*value*/) {}))
        throw_config("it is not JSON");

    Json all = Json::parse(config);
    if (!all.is_object())
        throw_config("it is not an object");
    const bool hidden = instead_of_nvidia && hide_request(all);
    Json &list =
        member(member(all, "hooks", Json::value_t::object), "createRuntime", Json::value_t::array);
    const bool is_there = std::any_of(list.begin(), list.end(), [&](const Json &each) {
        return each.is_object() && each.value("path", Json()) == Json(hook);
    });
    if (is_there && !hidden)
        return std::nullopt;
    if (!is_there)
        list.insert(list.begin(),
                    Json{{"path", hook}, {"args", {"umacct-hook"}}, {"timeout", seconds_of_hook}});
    return all.dump();
}

} // namespace umacct::containers
