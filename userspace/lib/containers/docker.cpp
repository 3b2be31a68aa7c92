// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/containers/docker.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/json.h"

namespace umacct::containers {

namespace {

constexpr const char *own_name = "umacct";
constexpr const char *runtimes_key = "runtimes";
constexpr const char *default_runtime = "default-runtime";
constexpr const char *features = "features";
constexpr const char *path_key = "path";
constexpr const char *arguments = "runtimeArgs";
constexpr const char *own_options = "--umacct-";
constexpr const char *real_runtime = "--umacct-runtime=";

/// The indentation of its first member, or that of Docker's own examples.
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

std::optional<std::string> path_of(const Json &entry) {
    const auto path = entry.is_object() ? entry.find(path_key) : entry.end();

    return path != entry.end() && path->is_string() ? std::optional(path->get<std::string>())
                                                    : std::nullopt;
}

/// Wherever it is installed.
bool is_run_by_ours(const Json &entry) {
    const auto path = path_of(entry);

    return path && std::filesystem::path(*path).filename() == "umacct-runtime";
}

/// The runtime wrapped by umacct's: its program comes before its own arguments.
Json wrapped(Json entry, const std::string &path, const std::string &runtime) {
    if (!is_run_by_ours(entry)) {
        Json words = Json::array({fmt::format("{}{}", real_runtime, path)});

        if (const auto own = entry.find(arguments); own != entry.end())
            words.insert(words.end(), own->begin(), own->end());
        entry[arguments] = std::move(words);
    }
    entry[path_key] = runtime;
    return entry;
}

/// Unwraps it; had: whether it had arguments before.
Json unwrapped(Json entry, bool had) {
    Json words = Json::array();

    for (const Json &word : entry[arguments]) {
        const std::string text = word.is_string() ? word.get<std::string>() : "";

        if (text.starts_with(real_runtime))
            entry[path_key] = text.substr(std::string_view(real_runtime).size());
        else if (!text.starts_with(own_options))
            words.push_back(word);
    }
    if (words.empty() && !had)
        entry.erase(arguments);
    else
        entry[arguments] = std::move(words);
    return entry;
}

/// The runtime of that name; null where there is none.
Json entry_of(const Json &settings, const std::string &key) {
    const auto known = settings.find(runtimes_key);

    return known != settings.end() && known->contains(key) ? known->at(key) : Json();
}

/// Its runtime umacct, which runs what was the default before.
Json default_of(const Json &settings, const std::string &runtime) {
    const auto which = settings.find(default_runtime);

    if (which == settings.end() || !which->is_string() || *which == "runc")
        return {{path_key, runtime}};
    const Json before = entry_of(settings, which->get<std::string>());
    const auto path = path_of(before);
    // An administrator who gave the runtime more arguments gave them there.
    if (*which == own_name)
        return path ? wrapped(before, *path, runtime) : Json{{path_key, runtime}};
    if (!path)
        throw Error(Failure::failed,
                    fmt::format("the default runtime '{}' has no path: umacct's can't run it",
                                which->get<std::string>()),
                    "give it one in 'runtimes', or have containers ask by CDI: umacct setup cdi");
    const Json all = wrapped(before, *path, runtime);
    Json ours{{path_key, all[path_key]}};
    if (all.contains(arguments))
        ours[arguments] = all[arguments];
    return ours;
}

/// Has no runtime run by umacct's any more, but for one that was before.
void unwrap_all(Json &known, const Json &before) {
    for (const auto &[each, entry] : known.items()) {
        const Json was = entry_of(before, each);

        if (each == own_name || !is_run_by_ours(entry))
            continue;
        if (is_run_by_ours(was))
            entry[path_key] = was[path_key];
        else
            entry = unwrapped(entry, was.is_object() && was.contains(arguments));
    }
}

} // namespace

Edit docker_settings(const std::filesystem::path &root, const std::string &runtime) {
    Edit edit{.file = root / "etc/docker/daemon.json", .before = {}, .after = {}, .shared = true};
    edit.before = read_text(edit.file);
    const std::string before = edit.before.value_or("");
    Json settings = parse(edit.file, before);
    const Json all = settings;

    const Json ours = default_of(settings, runtime);
    Json &known = object_in(settings, runtimes_key, edit.file);
    known[own_name] = ours;
    // Any of them may be asked for: docker run --runtime nvidia.
    for (const auto &[each, entry] : known.items()) {
        if (const auto path = path_of(entry); path && each != own_name)
            entry = wrapped(entry, *path, runtime);
    }
    settings[default_runtime] = own_name;
    // Docker 25 to 28 has CDI if asked; earlier ones ignore the key.
    Json &with_features = object_in(settings, features, edit.file);
    if (!with_features.contains("cdi"))
        with_features["cdi"] = true;
    edit.after = settings == all ? edit.before : text_of(settings, before);
    return edit;
}

std::optional<std::string> docker_without_umacct(const std::string &now, const Edit &made) {
    const Json all = parse(made.file, now);
    Json settings = all;
    const Json before = parse(made.file, made.before.value_or(""));
    // Removes what we added, and members that would be empty and were not there.
    const auto take_out = [&](const char *key, const char *member) {
        const auto found = settings.find(key);

        if (found == settings.end() || !found->is_object() ||
            (before.contains(key) && before[key].contains(member)))
            return;
        found->erase(member);
        if (found->empty() && !before.contains(key))
            settings.erase(key);
    };

    take_out(runtimes_key, own_name);
    if (settings.contains(runtimes_key))
        unwrap_all(settings[runtimes_key], before);
    if (settings.value(default_runtime, "") == own_name) {
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

std::vector<std::string> docker_runtimes_lost(const Edit &edit) {
    const Json before = parse(edit.file, edit.before.value_or(""));
    const Json after = parse(edit.file, edit.after.value_or(""));
    std::vector<std::string> lost;

    if (const auto known = before.find(runtimes_key); known != before.end() && known->is_object()) {
        for (const auto &[each, entry] : known->items()) {
            if (entry_of(after, each).is_null())
                lost.push_back(each);
        }
    }
    return lost;
}

} // namespace umacct::containers
