// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/owners/spec.h"

#include <map>

#include <fmt/format.h>

#include "lib/owners/json_strings.h"
#include "lib/owners/owner.h"

namespace umacct {

namespace {

using Annotations = std::map<std::string, std::string>;

/// As containerd's, or CRI-O's and podman's, annotations say.
KubeName kube_name_of(Annotations &annotations) {
    const bool is_sandbox = annotations["io.kubernetes.cri.container-type"] == "sandbox" ||
                            annotations["io.kubernetes.cri-o.ContainerType"] == "sandbox";
    const auto name = [&](const char *name_space, const char *pod, const char *container) {
        return make_kube_name(annotations[name_space], annotations[pod],
                              is_sandbox ? sandbox_name : annotations[container]);
    };

    if (const auto containerd =
            name("io.kubernetes.cri.sandbox-namespace", "io.kubernetes.cri.sandbox-name",
                 "io.kubernetes.cri.container-name"))
        return *containerd;
    return name("io.kubernetes.pod.namespace", "io.kubernetes.pod.name",
                "io.kubernetes.container.name")
        .value_or(KubeName());
}

/// As containerd's or CRI-O's say; nerdctl's have the name alone.
Description description_of(Annotations &annotations) {
    const std::string &image = annotations["io.kubernetes.cri.image-name"];
    Description found;

    found.name = annotations["nerdctl/name"];
    found.image = image.empty() ? annotations["io.kubernetes.cri-o.ImageName"] : image;
    for_each_json_string(annotations["io.kubernetes.cri-o.Labels"],
                         [&](auto keys, const std::string &value) {
                             if (keys.size() == 1)
                                 found.add_label(keys[0], value);
                         });
    return found;
}

} // namespace

std::optional<RuntimeSpec> ask_spec(StateFiles &files, const std::filesystem::path &file) {
    const StateFiles::Lines &lines = files.ask(file, read_spec);

    if (lines.size() < 4)
        return std::nullopt;
    return RuntimeSpec{.cgroups_path = lines[0],
                       .kube_name = make_kube_name(lines[1], lines[2], lines[3]),
                       .description = Description::of(std::span(lines).subspan(4))};
}

std::string read_spec(const std::string &text) {
    Annotations annotations;
    std::string path;
    const bool is_json = for_each_json_string(text, [&](auto keys, const std::string &value) {
        if (keys.size() == 2 && keys[0] == "linux" && keys[1] == "cgroupsPath")
            path = value;
        else if (keys.size() == 2 && keys[0] == "annotations")
            annotations[keys[1]] = value;
    });

    if (!is_json || path.find('\n') != std::string::npos)
        return "";
    const KubeName kube = kube_name_of(annotations);
    return fmt::format("{}\n{}\n{}\n{}\n{}", path, kube.name_space, kube.pod, kube.container,
                       description_of(annotations).lines());
}

} // namespace umacct
