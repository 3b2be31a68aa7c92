// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/owners/runtimes.h"

#include <sstream>
#include <vector>

namespace umacct {

namespace {

std::vector<std::string> split(std::string_view text) {
    std::vector<std::string> parts;
    std::istringstream stream{std::string(text)};

    for (std::string part; std::getline(stream, part, '_');)
        parts.push_back(part);
    return parts;
}

template <class Parse>
KubeNames names_in(const StateFiles::Lines &entries, Parse parse) {
    KubeNames names;

    for (const std::string &entry : entries) {
        if (auto name = parse(entry))
            names.insert(std::move(*name));
    }
    return names;
}

} // namespace

std::optional<KubeName> make_kube_name(std::string_view name_space, std::string_view pod,
                                       std::string_view container) {
    if (name_space.empty() || pod.empty())
        return std::nullopt;
    return KubeName{.name_space = clean_name(name_space),
                    .pod = clean_name(pod),
                    .container = clean_name(container)};
}

std::optional<KubeName> kube_name_of(std::string_view name) {
    const std::vector<std::string> parts = split(name);

    if (parts.size() != 6 || parts[0] != "k8s")
        return std::nullopt;
    return make_kube_name(parts[3], parts[2], parts[1]);
}

std::optional<std::string> sandbox_of_pod(std::string_view name) {
    const std::vector<std::string> parts = split(name);

    if (parts.size() != 6 || parts[0] != "k8s" || parts[1] != sandbox_name)
        return std::nullopt;
    return parts[4];
}

std::optional<std::pair<std::string, KubeName>> pod_of_log(std::string_view folder) {
    const std::vector<std::string> parts = split(folder);

    if (parts.size() != 3)
        return std::nullopt;
    if (const auto name = make_kube_name(parts[0], parts[1], ""))
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
    const std::vector<std::string> parts = split(file.substr(0, dash));
    if (parts.size() != 3)
        return std::nullopt;
    if (const auto name = make_kube_name(parts[1], parts[0], parts[2]))
        return std::pair(std::string(file.substr(dash + 1)), *name);
    return std::nullopt;
}

KubeNames kubelet_pods(StateFiles &files) {
    return names_in(files.entries(files.below_root("var/log/pods")), pod_of_log);
}

KubeNames kubelet_containers(StateFiles &files) {
    return names_in(files.entries(files.below_root("var/log/containers")), container_of_log);
}

} // namespace umacct
