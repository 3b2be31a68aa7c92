// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/owners/runtimes.h"

#include <map>
#include <vector>

#include <fmt/format.h>

namespace umacct {

namespace fs = std::filesystem;

namespace {

using Annotations = std::map<std::string, std::string>;

/// Kinds by the annotations of containerd, or CRI-O and podman.
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

/// Names by containerd's or CRI-O's annotations; nerdctl's have the name only.
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

/// One for each namespace.
std::vector<fs::path> folders(StateFiles &files) {
    std::vector<fs::path> found;

    for (const char *state : {"run/containerd", "run/k3s/containerd"}) {
        const fs::path tasks = files.below_root(state) / "io.containerd.runtime.v2.task";

        for (const std::string &name : files.entries(tasks))
            found.push_back(tasks / name);
    }
    return found;
}

} // namespace

std::optional<RuntimeSpec> spec_of(std::span<const std::string> lines) {
    if (lines.size() < 4)
        return std::nullopt;
    return RuntimeSpec{.cgroups_path = lines[0],
                       .kube_name = make_kube_name(lines[1], lines[2], lines[3]),
                       .description = Description::of(lines.subspan(4))};
}

std::optional<RuntimeSpec> ask_spec(StateFiles &files, const fs::path &file) {
    return spec_of(files.ask(file, read_spec));
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

std::optional<RuntimeSpec> containerd_spec(StateFiles &files, const std::string &id) {
    for (const fs::path &folder : folders(files)) {
        if (auto spec = ask_spec(files, folder / id / "config.json"))
            return spec;
    }
    return std::nullopt;
}

std::unordered_map<std::string, Owner> containerd_owners(StateFiles &files) {
    std::unordered_map<std::string, Owner> owners;

    for (const fs::path &folder : folders(files)) {
        // Those have thousands of cgroups, and paths with the id.
        if (folder.filename() == "k8s.io" || folder.filename() == "moby")
            continue;
        for (const std::string &id : files.entries(folder)) {
            const auto spec = ask_spec(files, folder / id / "config.json");

            if (!spec || !spec->cgroups_path.starts_with('/') || spec->cgroups_path == "/")
                continue;
            Owner &owner = owners[fs::path(spec->cgroups_path).lexically_normal().string()];
            owner.kind = OwnerKind::container;
            owner.runtime = "containerd";
            owner.id = id;
            const std::string &name = spec->description.name;
            owner.name = name.empty() && !is_container_id(id) ? clean_name(id) : name;
        }
    }
    return owners;
}

} // namespace umacct
