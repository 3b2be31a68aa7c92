// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/owners/owners.h"

#include "lib/host/cgroup.h"
#include "lib/owners/identity.h"
#include "lib/owners/tenant.h"

namespace umacct {

namespace {

/// Longer paths are looked up each time: no runtime makes them, and of many thousands that a tenant
/// makes they would be 60 MiB.
constexpr std::size_t longest_known = 512;

void take(Owner &owner, Description description) {
    owner.name = std::move(description.name);
    owner.image = std::move(description.image);
    owner.labels = std::move(description.labels);
}

void take(Owner &owner, const KubeName &name) {
    owner.kube_namespace = name.name_space;
    owner.pod = name.pod;
    owner.container = name.container;
}

/// The user whose own runtimes made what is there; root's manager is root's.
std::optional<unsigned int> rootless_user_of(std::string_view path) {
    const auto user = user_of(path);

    return user == 0U ? std::nullopt : user;
}

/// Whether a runtime may have written down who that container is, a user's or root's. Elsewhere a
/// tenant may have called a cgroup as if it were another's.
bool has_files(std::string_view path, const Owners &owners) {
    return user_of(path).has_value() || !is_made_inside(path, owners);
}

/// Looks up in a table that is made when first needed; null for nothing.
template <class Table, class Make>
const typename Table::mapped_type *look_up(std::optional<Table> &table, const std::string &key,
                                           Make make) {
    if (!table)
        table = make();
    const auto found = table->find(key);
    return found == table->end() ? nullptr : &found->second;
}

} // namespace

std::optional<Owner> Owners::of(std::string_view path) const {
    if (const auto known = known_.find(path); known != known_.end())
        return known->second;

    const std::string key(path);
    std::optional<Owner> owner = cgroups_ ? kept_owner(*cgroups_, path) : std::nullopt;
    const bool is_kept = owner && !owner->full_name().empty();
    if (!owner)
        owner = owner_of(path);
    if (is_kept) {
        // The hook knew all of it.
    } else if (!owner) {
        if (const Owner *found =
                look_up(containerd_, key, [this] { return containerd_owners(files_); }))
            owner = *found;
    } else if (owner->kind == OwnerKind::container) {
        name_container(*owner, path);
    } else if (owner->kind == OwnerKind::pod) {
        if (!user_of(path) && !is_made_inside(path, *this))
            name_pod(*owner);
    }
    if (key.size() <= longest_known)
        known_.emplace(key, owner);
    return owner;
}

bool Owners::is_kept(std::string_view path) const {
    return cgroups_ && has_kept_owner(*cgroups_, path);
}

std::optional<Owner> Owners::nearest(std::string_view path) const {
    while (path.size() > 1) {
        if (auto owner = of(path))
            return owner;
        const auto slash = path.rfind('/');
        path = path.substr(0, slash == std::string_view::npos ? 0 : slash);
    }
    return std::nullopt;
}

void Owners::refresh() {
    files_.refresh();
    known_.clear();
    containerd_.reset();
    pods_.reset();
    kube_containers_.reset();
    sandboxes_.reset();
}

void Owners::name_container(Owner &owner, std::string_view path) const {
    const auto user = rootless_user_of(path);
    std::optional<RuntimeSpec> spec;

    if (owner.runtime == "lxc" || !has_files(path, *this))
        return;
    if (owner.runtime == "docker") {
        take(owner, docker_container(files_, owner.id, user));
    } else if (owner.runtime == "podman") {
        take(owner, podman_container(files_, owner.id, user));
    } else if (user) {
        take(owner, stored_container(files_, owner.id, user));
    } else {
        // The path of a container in a pod may lack the runtime.
        const bool of_crio = owner.runtime == "cri-o";

        spec = of_crio ? crio_spec(files_, owner.id) : containerd_spec(files_, owner.id);
        if (spec && !of_crio)
            owner.runtime = "containerd";
        take(owner, spec ? spec->description : stored_container(files_, owner.id, {}));
    }
    // No user has a kubelet, but may call a container as that does.
    if (user)
        return;

    auto kube = spec ? spec->kube_name : kube_name_of(owner.name);
    if (!kube && path.find("kubepods") != std::string_view::npos) {
        if (const KubeName *found =
                look_up(kube_containers_, owner.id, [this] { return kubelet_containers(files_); }))
            kube = *found;
    }
    if (kube) {
        take(owner, *kube);
        owner.name.clear();
    }
    if (const auto parent = of(parent_path(path)); parent && parent->kind == OwnerKind::pod) {
        owner.labels.insert(owner.labels.end(), parent->labels.begin(), parent->labels.end());
        if (!kube) {
            owner.kube_namespace = parent->kube_namespace;
            owner.pod = parent->pod;
        }
    }
}

void Owners::name_pod(Owner &owner) const {
    if (const KubeName *found = look_up(pods_, owner.id, [this] { return kubelet_pods(files_); }))
        take(owner, *found);
    if (const std::string *sandbox =
            look_up(sandboxes_, owner.id, [this] { return crio_sandboxes(files_); })) {
        if (auto spec = crio_spec(files_, *sandbox))
            owner.labels = std::move(spec->description.labels);
    }
}

bool is_made_inside(std::string_view path, const Owners &owners) {
    if (owners.is_kept(path))
        return false;
    if (owners.cgroups() && is_tenants(*owners.cgroups(), parent_path(path)))
        return true;
    for (std::string at = parent_path(path); at != "/"; at = parent_path(at)) {
        const auto owner = owners.of(at);

        // Nested systems, wherever their tree is.
        if (base_name(at).starts_with("lxc.payload") || base_name(at).starts_with("lxc.monitor"))
            return true;
        if (owner && (owner->kind == OwnerKind::container ||
                      (owner->kind == OwnerKind::unit && !owner->id.ends_with(".slice"))))
            return true;
    }
    return false;
}

} // namespace umacct
