// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/owners/state_files.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <vector>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/host/file_descriptor.h"
#include "lib/owners/names.h"

namespace umacct {

namespace {

using nlohmann::json;

constexpr std::size_t longest_name = 253; ///< a pod's; others are shorter

/// The document, or null, with only those members of the objects so deep. What is
/// big in these files are other members.
template <std::size_t Count>
json parse(const std::string &text, int depth, const std::array<std::string_view, Count> &members) {
    json document = json::parse(
        text,
        [&](int at, json::parse_event_t event, json &value) {
            return event != json::parse_event_t::key || at != depth ||
                   std::find(members.begin(), members.end(),
                             value.get_ref<const std::string &>()) != members.end();
        },
        false);

    return document.is_discarded() ? json() : document;
}

std::string text_member(const json &object, const char *key) {
    const auto found = object.is_object() ? object.find(key) : object.end();

    return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    std::istringstream stream{std::string(text)};

    for (std::string part; std::getline(stream, part, separator);)
        parts.push_back(part);
    return parts;
}

std::optional<KubeName> complete(const std::string &name_space, const std::string &pod,
                                 const std::string &container) {
    if (name_space.empty() || pod.empty())
        return std::nullopt;
    return KubeName{.name_space = clean_name(name_space),
                    .pod = clean_name(pod),
                    .container = clean_name(container)};
}

} // namespace

std::string RuntimeSpec::annotation(const std::string &key) const {
    const auto found = annotations.find(key);

    return found == annotations.end() ? "" : found->second;
}

std::optional<KubeName> RuntimeSpec::kube_name() const {
    const bool is_sandbox = annotation("io.kubernetes.cri.container-type") == "sandbox" ||
                            annotation("io.kubernetes.cri-o.ContainerType") == "sandbox";
    const auto container = [&](const char *key) {
        return is_sandbox ? sandbox_name : annotation(key);
    };

    if (auto name = complete(annotation("io.kubernetes.cri.sandbox-namespace"),
                             annotation("io.kubernetes.cri.sandbox-name"),
                             container("io.kubernetes.cri.container-name")))
        return name;
    return complete(annotation("io.kubernetes.pod.namespace"), annotation("io.kubernetes.pod.name"),
                    container("io.kubernetes.container.name"));
}

std::optional<std::string> read_state_file(const std::filesystem::path &file, std::size_t limit,
                                           std::optional<uid_t> user) {
    // Without O_NONBLOCK a FIFO would wait for its writer.
    const FileDescriptor fd(
        open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));

    struct stat info {};

    if (fd.get() < 0 || fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode) ||
        (user && info.st_uid != *user) || static_cast<std::size_t>(info.st_size) > limit)
        return std::nullopt;

    std::string text(static_cast<std::size_t>(info.st_size), '\0');
    std::size_t done = 0;
    while (done < text.size()) {
        const ssize_t got = read(fd.get(), text.data() + done, text.size() - done);

        if (got < 0)
            return std::nullopt;
        if (got == 0)
            break;
        done += static_cast<std::size_t>(got);
    }
    text.resize(done);
    return text;
}

std::string clean_name(std::string_view name) {
    static constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyz"
                                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                "0123456789_.-";
    std::string clean(name.substr(0, longest_name));

    std::replace_if(
        clean.begin(), clean.end(),
        [](char c) { return allowed.find(c) == std::string_view::npos; }, '?');
    return clean;
}

std::string docker_name(const std::string &text) {
    std::string name = text_member(parse(text, 1, std::array<std::string_view, 1>{"Name"}), "Name");

    if (name.starts_with('/'))
        name.erase(0, 1);
    return clean_name(name);
}

std::string docker_data_root(const std::string &text) {
    return text_member(parse(text, 1, std::array<std::string_view, 1>{"data-root"}), "data-root");
}

std::unordered_map<std::string, std::string> storage_names(const std::string &text) {
    std::unordered_map<std::string, std::string> names;

    for (const json &container : parse(text, 2, std::array<std::string_view, 2>{"id", "names"})) {
        const std::string id = text_member(container, "id");

        if (is_container_id(id) && container.contains("names") && container["names"].is_array() &&
            !container["names"].empty() && container["names"].front().is_string())
            names[id] = clean_name(container["names"].front().get<std::string>());
    }
    return names;
}

std::string storage_graphroot(const std::string &text) {
    std::istringstream lines(text);

    // graphroot = "/path"; what else TOML allows nobody writes.
    for (std::string line; std::getline(lines, line);) {
        const auto first = line.find_first_not_of(" \t");
        const auto open = line.find_first_of("\"'");

        if (first == std::string::npos || open == std::string::npos ||
            line.compare(first, 9, "graphroot") != 0 ||
            line.find_first_not_of(" \t=", first + 9) != open)
            continue;
        const auto close = line.find(line[open], open + 1);
        if (close != std::string::npos)
            return line.substr(open + 1, close - open - 1);
    }
    return "";
}

std::optional<RuntimeSpec> runtime_spec(const std::string &text) {
    const json document = parse(text, 1, std::array<std::string_view, 2>{"annotations", "linux"});
    RuntimeSpec spec;

    if (!document.is_object())
        return std::nullopt;
    if (document.contains("linux"))
        spec.cgroups_path = text_member(document["linux"], "cgroupsPath");
    if (document.contains("annotations") && document["annotations"].is_object()) {
        for (const auto &[key, value] : document["annotations"].items()) {
            if (value.is_string())
                spec.annotations[key] = value.get<std::string>();
        }
    }
    return spec;
}

std::optional<KubeName> kube_name_of(std::string_view name) {
    const std::vector<std::string> parts = split(name, '_');

    if (parts.size() != 6 || parts[0] != "k8s")
        return std::nullopt;
    return complete(parts[3], parts[2], parts[1]);
}

std::optional<std::pair<std::string, KubeName>> pod_of_log(std::string_view folder) {
    const std::vector<std::string> parts = split(folder, '_');

    if (parts.size() != 3)
        return std::nullopt;
    if (const auto name = complete(parts[0], parts[1], ""))
        return std::pair(parts[2], *name);
    return std::nullopt;
}

std::optional<std::pair<std::string, KubeName>> container_of_log(std::string_view file) {
    if (!file.ends_with(".log"))
        return std::nullopt;
    file.remove_suffix(4);

    const auto dash = file.rfind('-');
    if (dash == std::string_view::npos || !is_container_id(file.substr(dash + 1)))
        return std::nullopt;
    const std::vector<std::string> parts = split(file.substr(0, dash), '_');
    if (parts.size() != 3)
        return std::nullopt;
    if (const auto name = complete(parts[1], parts[0], parts[2]))
        return std::pair(std::string(file.substr(dash + 1)), *name);
    return std::nullopt;
}

std::string home_of(const std::string &passwd, uid_t user) {
    std::istringstream lines(passwd);

    for (std::string line; std::getline(lines, line);) {
        const std::vector<std::string> fields = split(line, ':');

        if (fields.size() >= 6 && fields[2] == std::to_string(user))
            return fields[5];
    }
    return "";
}

} // namespace umacct
