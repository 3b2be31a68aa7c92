// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/owners/containerd.h"

#include <vector>

namespace umacct {

namespace fs = std::filesystem;

namespace {

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
        // These have thousands, and a path that tells.
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
