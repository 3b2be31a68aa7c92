// SPDX-License-Identifier: GPL-2.0-or-later
#include "oci_hook/inject.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/json_scan.h"
#include "oci_hook/asked.h"

namespace umacct::oci_hook {

namespace {

using Json = nlohmann::ordered_json;

constexpr int seconds_of_hook = 10; ///< it takes milliseconds

/// Of runc and crun: before the command, those that have their value in the next word.
constexpr std::array options_with_value{
    std::string_view("--root"),           std::string_view("--log"),
    std::string_view("--log-format"),     std::string_view("--log-level"),
    std::string_view("--cgroup-manager"), std::string_view("--criu"),
    std::string_view("--rootless")};

/// The commands that make a container of a bundle.
constexpr std::array makers{std::string_view("create"), std::string_view("run"),
                            std::string_view("restore")};

/// The value of an option that is this word, "--log=FILE", or that the next one has.
std::optional<std::string> value_of(std::string_view option, const std::vector<std::string> &words,
                                    std::size_t at) {
    const std::string &word = words[at];

    if (word == option)
        return at + 1 < words.size() ? words[at + 1] : "";
    if (word.starts_with(option) && word[option.size()] == '=')
        return word.substr(option.size() + 1);
    return std::nullopt;
}

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
        // Of several, the last is what counts.
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

/// What is umacct-runtime's own, and the arguments for the runtime.
RuntimeCall split_words(const std::vector<std::string> &words) {
    constexpr std::string_view runtime = "--umacct-runtime=";
    constexpr std::string_view prefix = "--umacct-";
    RuntimeCall call;

    for (const std::string &word : words) {
        if (word.starts_with(runtime))
            call.runtime = word.substr(runtime.size());
        else if (word == "--umacct-instead-of-nvidia")
            call.instead_of_nvidia = true;
        else if (word.starts_with(prefix))
            throw Error(Failure::usage, fmt::format("there is no option {}", word));
        else
            call.arguments.push_back(word);
    }
    if (call.runtime.empty())
        throw Error(Failure::usage, fmt::format("{} names no runtime", runtime));
    return call;
}

/// The options before the runtime's command. Returns the command's place, or the end.
std::size_t read_log(RuntimeCall &call) {
    std::size_t i = 0;

    for (; i < call.arguments.size() && call.arguments[i].starts_with('-'); ++i) {
        if (auto log = value_of("--log", call.arguments, i))
            call.log = std::move(*log);
        if (std::ranges::find(options_with_value, call.arguments[i]) != options_with_value.end())
            ++i;
    }
    return i;
}

} // namespace

RuntimeCall read_call(const std::vector<std::string> &words) {
    RuntimeCall call = split_words(words);
    const std::size_t command = read_log(call);

    if (command >= call.arguments.size() ||
        std::ranges::find(makers, call.arguments[command]) == makers.end())
        return call;
    call.bundle = std::filesystem::current_path();
    for (std::size_t i = command + 1; i < call.arguments.size(); ++i) {
        for (const char *option : {"--bundle", "-b"}) {
            if (auto bundle = value_of(option, call.arguments, i))
                call.bundle = std::filesystem::absolute(*bundle);
        }
    }
    return call;
}

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

} // namespace umacct::oci_hook
