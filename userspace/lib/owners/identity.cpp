// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/owners/identity.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <sstream>
#include <vector>

#include <sys/xattr.h>

#include "lib/json_scan.h"
#include "lib/owners/runtimes.h"
#include "lib/text.h"

namespace umacct {

namespace fs = std::filesystem;

namespace {

constexpr const char *attribute = "trusted.umacct.owner";
/// The kernel takes 64 KiB.
constexpr std::size_t longest_attribute = 60'000;
/// Limits on the lines that precede the labels.
constexpr std::size_t longest_line = 1024;
constexpr std::size_t lines_before_labels = 7;

std::vector<std::string> lines_of(const std::string &text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);

    for (std::string line; std::getline(stream, line);)
        lines.push_back(line);
    return lines;
}

/// The folder in which Docker keeps what it has: that of the files which it puts into each of its
/// containers. Empty for a container that isn't Docker's.
std::optional<fs::path> docker_folder_in(const std::string &config) {
    constexpr std::array files{std::string_view("hostname"), std::string_view("hosts"),
                               std::string_view("resolv.conf")};
    std::optional<fs::path> folder;
    std::string source;
    std::string place;

    for_each_json_string(config, [&](auto keys, const std::string &value) {
        if (keys.size() != 3 || keys[0] != "mounts" ||
            (keys[2] != "source" && keys[2] != "destination"))
            return;
        if (keys[1] != place) {
            place = keys[1];
            source.clear();
        }
        // The other of the two is to come, or came.
        if (source.empty()) {
            source = value;
            return;
        }
        const fs::path a = source;
        const fs::path b = value;
        for (const auto &[from, to] : {std::pair(a, b), std::pair(b, a)}) {
            const std::string name = to.filename();

            if (to.parent_path() == "/etc" && std::ranges::find(files, name) != files.end() &&
                from.filename() == name &&
                is_container_id(from.parent_path().filename().string()) &&
                from.parent_path().parent_path().filename() == "containers")
                folder = from.parent_path().parent_path().parent_path();
        }
    });
    return folder;
}

/// The storage of Podman's or CRI-O's that a bundle is in:
/// "STORAGE/overlay-containers/ID/userdata".
std::optional<fs::path> storage_of(const fs::path &bundle, const std::string &id) {
    const fs::path container = bundle.parent_path();
    const std::string list = container.parent_path().filename();

    if (bundle.filename() != "userdata" || container.filename() != id ||
        !list.ends_with("-containers"))
        return std::nullopt;
    return container.parent_path().parent_path();
}

void describe(Owner &owner, const Description &description) {
    owner.name = description.name;
    owner.image = description.image;
    owner.labels = description.labels;
}

} // namespace

Identity identify(StateFiles &files, const std::string &id, const fs::path &bundle,
                  const std::string &config, std::string_view path) {
    const auto by_path = owner_of(path);
    const auto spec = spec_of(lines_of(read_spec(config)));
    const auto docker = docker_folder_in(config);
    const auto storage = storage_of(bundle, id);
    Identity found;
    Owner &owner = found.owner;

    if (by_path && by_path->kind == OwnerKind::container)
        owner = *by_path;
    owner.kind = OwnerKind::container;
    owner.id = clean_name(id);
    if (storage) {
        owner.runtime = spec && spec->kube_name ? "cri-o" : "podman";
        describe(owner, podman_container(files, *storage, id, {}));
        found.complete = !owner.name.empty();
    } else if (docker || owner.runtime == "docker" || bundle.parent_path().filename() == "moby") {
        owner.runtime = "docker";
        describe(owner, docker_container(files, id, {}, docker));
        found.complete = !owner.name.empty();
    } else if (spec && (spec->kube_name || !spec->description.name.empty())) {
        owner.runtime = "containerd";
        found.complete = true;
    } else if (bundle.parent_path().parent_path().filename() == "io.containerd.runtime.v2.task") {
        // Containers of "ctr" have no name besides their id.
        owner.runtime = "containerd";
        owner.name = is_container_id(id) ? "" : clean_name(id);
        found.complete = true;
    }
    if (spec && owner.runtime != "docker" && owner.runtime != "podman" &&
        !spec->description.lines().empty())
        describe(owner, spec->description);
    const auto kube = spec && spec->kube_name ? spec->kube_name : kube_name_of(owner.name);
    if (kube) {
        owner.kube_namespace = kube->name_space;
        owner.pod = kube->pod;
        owner.container = kube->container;
        owner.name.clear();
        found.complete = true;
    }
    return found;
}

bool has_kept_owner(const Cgroups &cgroups, std::string_view path) {
    const auto directory = cgroups.directory(path);

    return directory && getxattr(directory->c_str(), attribute, nullptr, 0) > 0;
}

std::optional<Owner> kept_owner(const Cgroups &cgroups, std::string_view path) {
    const auto directory = cgroups.directory(path);
    std::string text;

    if (!directory)
        return std::nullopt;
    const ssize_t size = getxattr(directory->c_str(), attribute, nullptr, 0);
    if (size <= 0)
        return std::nullopt;
    text.resize(static_cast<std::size_t>(size));
    if (getxattr(directory->c_str(), attribute, text.data(), text.size()) != size)
        return std::nullopt;

    std::vector<std::string> lines = lines_of(text);
    if (lines.size() < lines_before_labels)
        return std::nullopt;
    Owner owner;
    owner.kind = OwnerKind::container;
    owner.runtime = lines[0];
    owner.id = lines[1];
    owner.name = lines[2];
    owner.kube_namespace = lines[3];
    owner.pod = lines[4];
    owner.container = lines[5];
    owner.image = lines[6];
    owner.labels.assign(lines.begin() + lines_before_labels, lines.end());
    return owner;
}

int keep_owner(const Cgroups &cgroups, std::string_view path, const Owner &owner) {
    const auto directory = cgroups.directory(path);
    std::string text;

    if (!directory)
        return ENOENT;
    for (const std::string &line : {owner.runtime, owner.id, owner.name, owner.kube_namespace,
                                    owner.pod, owner.container, owner.image})
        text += (line.size() > longest_line ? "" : printable(line)) + '\n';
    for (const std::string &label : owner.labels) {
        const std::string line = printable(label) + '\n';

        if (text.size() + line.size() <= longest_attribute)
            text += line;
    }
    return setxattr(directory->c_str(), attribute, text.data(), text.size(), 0) == 0 ? 0 : errno;
}

} // namespace umacct
