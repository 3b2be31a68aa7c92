// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/owners/owners.h"

#include <algorithm>
#include <functional>
#include <system_error>

#include <pwd.h>

#include "lib/host/cgroup.h"

namespace umacct {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t largest_config = 1U << 20;
constexpr std::size_t largest_storage = 8U << 20; ///< one file for all containers
constexpr std::size_t largest_settings = 256U << 10;
constexpr std::size_t most_entries = 16384; ///< of a folder

/// The graph drivers of containers/storage, each of which has its own folder.
constexpr const char *storage_drivers[] = {"overlay", "vfs", "btrfs", "zfs"};

/// The names of a folder's entries; none where it can't be read.
std::vector<std::string> entries(const fs::path &folder) {
    std::vector<std::string> names;
    std::error_code error;

    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
        if (names.size() == most_entries)
            break;
        names.push_back(at->path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
}

void take(Owner &owner, const KubeName &name) {
    owner.kube_namespace = name.name_space;
    owner.pod = name.pod;
    owner.container = name.container;
}

} // namespace

std::optional<Owner> Owners::of(std::string_view path) const {
    const std::string key(path);

    if (const auto known = known_.owners.find(key); known != known_.owners.end())
        return known->second;

    std::optional<Owner> owner = owner_of(path);
    if (!owner)
        owner = containerd_at(key);
    else if (owner->kind == OwnerKind::container)
        name_container(*owner, path);
    else if (owner->kind == OwnerKind::pod)
        name_pod(*owner);
    known_.owners.emplace(key, owner);
    return owner;
}

std::optional<Owner> Owners::nearest(std::string_view path) const {
    for (std::string at(path); at != "/"; at = parent_path(at)) {
        if (auto owner = of(at))
            return owner;
    }
    return std::nullopt;
}

void Owners::name_container(Owner &owner, std::string_view path) const {
    auto user = user_of(path);
    std::optional<RuntimeSpec> spec;

    if (user == 0U)
        user.reset();
    if (owner.runtime == "docker") {
        owner.name = docker_name(owner.id, user);
    } else if (owner.runtime == "podman") {
        owner.name = storage_name(owner.id, user);
    } else {
        // Below a pod the path may not tell the runtime.
        const bool of_crio = owner.runtime == "cri-o";

        spec = of_crio ? storage_spec(owner.id) : containerd_spec(owner.id);
        if (spec && !of_crio) {
            owner.runtime = "containerd";
            owner.name = clean_name(spec->annotation("nerdctl/name"));
        } else if (!spec) {
            owner.name = storage_name(owner.id, user);
        }
    }

    auto kube = spec ? spec->kube_name() : kube_name_of(owner.name);
    if (!kube && path.find("kubepods") != std::string_view::npos) {
        if (const auto found = kube_containers().find(owner.id); found != kube_containers().end())
            kube = found->second;
    }
    if (kube) {
        take(owner, *kube);
        owner.name.clear();
        return;
    }
    if (const auto parent = of(parent_path(path)); parent && parent->kind == OwnerKind::pod) {
        owner.kube_namespace = parent->kube_namespace;
        owner.pod = parent->pod;
    }
}

void Owners::name_pod(Owner &owner) const {
    if (const auto found = pods().find(owner.id); found != pods().end())
        take(owner, found->second);
}

std::string Owners::docker_name(const std::string &id, std::optional<uid_t> user) const {
    static constexpr const char *file = "config.v2.json";

    if (user) {
        const fs::path folder = home(*user) / ".local/share/docker/containers" / id;
        const auto text = read_state_file(folder / file, largest_config, user);

        return text ? umacct::docker_name(*text) : "";
    }
    for (const fs::path &folder : docker_folders()) {
        if (const auto text = read_state_file(folder / "containers" / id / file, largest_config))
            return umacct::docker_name(*text);
    }
    return "";
}

std::string Owners::storage_name(const std::string &id, std::optional<uid_t> user) const {
    const fs::path folder = user ? home(*user) / ".local/share/containers/storage" : graphroot();
    const Names &names = storage(folder, user);
    const auto found = names.find(id);

    return found == names.end() ? "" : found->second;
}

std::optional<RuntimeSpec> Owners::storage_spec(const std::string &id) const {
    for (const char *driver : storage_drivers) {
        const fs::path folder = graphroot() / (std::string(driver) + "-containers") / id;

        if (const auto text = read_state_file(folder / "userdata/config.json", largest_config))
            return runtime_spec(*text);
    }
    return std::nullopt;
}

std::optional<RuntimeSpec> Owners::containerd_spec(const std::string &id) const {
    for (const fs::path &folder : containerd_folders()) {
        if (const auto text = read_state_file(folder / id / "config.json", largest_config))
            return runtime_spec(*text);
    }
    return std::nullopt;
}

/// The container whose cgroup is at a path that doesn't say so: "/NAMESPACE/ID", or
/// whatever its maker asked for.
std::optional<Owner> Owners::containerd_at(const std::string &path) const {
    if (!known_.containerd_paths) {
        auto &paths = known_.containerd_paths.emplace();

        for (const fs::path &folder : containerd_folders()) {
            // These have thousands, and a path that tells.
            if (folder.filename() == "k8s.io" || folder.filename() == "moby")
                continue;
            for (const std::string &id : entries(folder)) {
                const auto text = read_state_file(folder / id / "config.json", largest_config);
                const auto spec = text ? runtime_spec(*text) : std::nullopt;

                if (!spec || !spec->cgroups_path.starts_with('/') || spec->cgroups_path == "/")
                    continue;
                Owner &owner = paths[fs::path(spec->cgroups_path).lexically_normal().string()];
                owner.kind = OwnerKind::container;
                owner.runtime = "containerd";
                owner.id = id;
                owner.name = clean_name(spec->annotation("nerdctl/name"));
                if (owner.name.empty() && !is_container_id(id))
                    owner.name = clean_name(id);
            }
        }
    }
    const auto found = known_.containerd_paths->find(path);
    return found == known_.containerd_paths->end() ? std::nullopt : std::optional(found->second);
}

/// Absolute paths are meant from the root, too.
fs::path Owners::below_root(const fs::path &path) const {
    return root_ / path.relative_path();
}

/// A path that can't be where it isn't known.
const fs::path &Owners::home(uid_t user) const {
    const auto [at, is_new] = known_.homes.try_emplace(user);

    if (!is_new)
        return at->second;
    const auto users = read_state_file(below_root("etc/passwd"), largest_storage);
    std::string home = users ? home_of(*users, user) : "";
    if (home.empty() && root_ == "/") {
        // Users may come from elsewhere, a directory service for one.
        if (const passwd *entry = getpwuid(user))
            home = entry->pw_dir;
    }
    at->second = home.empty() ? fs::path("/dev/null") : below_root(home);
    return at->second;
}

const std::vector<fs::path> &Owners::docker_folders() const {
    if (!known_.docker_folders) {
        auto &folders = known_.docker_folders.emplace();
        const auto settings =
            read_state_file(below_root("etc/docker/daemon.json"), largest_settings);

        if (const std::string moved = settings ? docker_data_root(*settings) : ""; !moved.empty())
            folders.push_back(below_root(moved));
        folders.push_back(below_root("var/lib/docker"));
        folders.push_back(below_root("var/snap/docker/common/var-lib-docker"));
    }
    return *known_.docker_folders;
}

const fs::path &Owners::graphroot() const {
    if (!known_.graphroot) {
        const auto settings =
            read_state_file(below_root("etc/containers/storage.conf"), largest_settings);
        const std::string moved = settings ? storage_graphroot(*settings) : "";

        known_.graphroot = below_root(moved.empty() ? "var/lib/containers/storage" : moved);
    }
    return *known_.graphroot;
}

const Owners::Names &Owners::storage(const fs::path &folder, std::optional<uid_t> user) const {
    const auto [at, is_new] = known_.storages.try_emplace(folder.string());

    if (!is_new)
        return at->second;
    for (const char *driver : storage_drivers) {
        // Containers that go when they end are in the second.
        for (const char *file : {"containers.json", "volatile-containers.json"}) {
            const fs::path place = folder / (std::string(driver) + "-containers") / file;

            if (const auto text = read_state_file(place, largest_storage, user))
                at->second.merge(storage_names(*text));
        }
    }
    return at->second;
}

/// One for each namespace.
const std::vector<fs::path> &Owners::containerd_folders() const {
    if (!known_.containerd_folders) {
        auto &folders = known_.containerd_folders.emplace();

        for (const char *state : {"run/containerd", "run/k3s/containerd"}) {
            const fs::path tasks = below_root(state) / "io.containerd.runtime.v2.task";

            for (const std::string &name : entries(tasks))
                folders.push_back(tasks / name);
        }
    }
    return *known_.containerd_folders;
}

const Owners::KubeNames &Owners::pods() const {
    if (!known_.pods) {
        auto &pods = known_.pods.emplace();

        for (const std::string &folder : entries(below_root("var/log/pods"))) {
            if (auto pod = pod_of_log(folder))
                pods.insert(std::move(*pod));
        }
    }
    return *known_.pods;
}

const Owners::KubeNames &Owners::kube_containers() const {
    if (!known_.kube_containers) {
        auto &containers = known_.kube_containers.emplace();

        for (const std::string &file : entries(below_root("var/log/containers"))) {
            if (auto container = container_of_log(file))
                containers.insert(std::move(*container));
        }
    }
    return *known_.kube_containers;
}

} // namespace umacct
