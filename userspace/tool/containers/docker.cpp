// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/containers/docker.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/json.h"

namespace umacct::containers {

namespace {

constexpr const char *name = "umacct";
constexpr const char *runtimes = "runtimes";
constexpr const char *default_runtime = "default-runtime";
constexpr const char *features = "features";

/// Of its first member; as Docker's own examples are where there is none.
int indentation_of(const std::string &text) {
    const auto newline = text.find('\n');
    const auto first =
        newline == std::string::npos ? newline : text.find_first_not_of(' ', newline + 1);

    return first == std::string::npos || first == newline + 1
               ? 2
               : static_cast<int>(std::min<std::size_t>(first - newline - 1, 8));
}

Json parse(const std::filesystem::path &file, const std::string &text) {
    // Docker takes an empty file for none.
    if (text.find_first_not_of(" \t\r\n") == std::string::npos)
        return Json::object();
    try {
        Json settings = Json::parse(text);

        if (settings.is_object())
            return settings;
    } catch (const Json::exception &error) {
        throw Error(Failure::failed, fmt::format("{} is not JSON: {}", file.string(), error.what()),
                    "Docker would not start with it: mend it first");
    }
    throw Error(Failure::failed, fmt::format("{} is not a JSON object", file.string()));
}

/// A member that is an object; made where there is none.
Json &object_in(Json &settings, const char *key, const std::filesystem::path &file) {
    Json &member = settings[key];

    if (member.is_null())
        member = Json::object();
    if (!member.is_object())
        throw Error(Failure::failed, fmt::format("{}: {} is not an object", file.string(), key),
                    "Docker would not start with it: mend it first");
    return member;
}

std::string text_of(const Json &settings, const std::string &before) {
    return settings.dump(indentation_of(before)) +
           (before.empty() || before.ends_with('\n') ? "\n" : "");
}

/// What umacct-runtime runs: what was run before.
Json runtime_of(const Json &settings, const std::string &runtime) {
    const auto which = settings.find(default_runtime);
    const auto known = settings.find(runtimes);
    Json ours{{"path", runtime}};

    if (which == settings.end() || !which->is_string() || *which == "runc" || *which == name)
        return ours;
    if (known == settings.end() || !known->is_object() || !known->contains(*which) ||
        !known->at(which->get<std::string>()).contains("path"))
        throw Error(Failure::failed,
                    fmt::format("the default runtime '{}' has no path: umacct's can't run it",
                                which->get<std::string>()),
                    "give it one in 'runtimes', or have containers ask by CDI: umacct setup cdi");
    const Json &before = known->at(which->get<std::string>());
    ours["runtimeArgs"] = {fmt::format("--umacct-runtime={}", before["path"].get<std::string>())};
    if (const auto arguments = before.find("runtimeArgs"); arguments != before.end())
        ours["runtimeArgs"].insert(ours["runtimeArgs"].end(), arguments->begin(), arguments->end());
    return ours;
}

} // namespace

Edit docker_settings(const std::filesystem::path &root, const std::string &runtime) {
    Edit edit{.file = root / "etc/docker/daemon.json", .before = {}, .after = {}, .shared = true};
    edit.before = read_text(edit.file);
    const std::string before = edit.before.value_or("");
    Json settings = parse(edit.file, before);

    if (settings.value(default_runtime, "") == name && settings.contains(runtimes) &&
        settings[runtimes].contains(name)) {
        edit.after = edit.before;
        return edit;
    }
    const Json ours = runtime_of(settings, runtime);
    object_in(settings, runtimes, edit.file)[name] = ours;
    settings[default_runtime] = name;
    // From 25 to 28 Docker has CDI where it is asked to; before, the word says nothing to it.
    Json &with_features = object_in(settings, features, edit.file);
    if (!with_features.contains("cdi"))
        with_features["cdi"] = true;
    edit.after = text_of(settings, before);
    return edit;
}

std::optional<std::string> docker_without_umacct(const std::string &now, const Edit &made) {
    const Json all = parse(made.file, now);
    Json settings = all;
    const Json before = parse(made.file, made.before.value_or(""));
    // What we added goes, and with it what would be empty and wasn't there.
    const auto take_out = [&](const char *key, const char *member) {
        const auto found = settings.find(key);

        if (found == settings.end() || !found->is_object() ||
            (before.contains(key) && before[key].contains(member)))
            return;
        found->erase(member);
        if (found->empty() && !before.contains(key))
            settings.erase(key);
    };

    take_out(runtimes, name);
    if (settings.value(default_runtime, "") == name) {
        if (before.contains(default_runtime))
            settings[default_runtime] = before[default_runtime];
        else
            settings.erase(default_runtime);
    }
    take_out(features, "cdi");
    if (settings == all)
        return now;
    if (settings.empty() && !made.before)
        return std::nullopt;
    return text_of(settings, now);
}

} // namespace umacct::containers
