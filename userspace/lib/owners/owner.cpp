// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/owners/owner.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "lib/host/cgroup.h"

namespace umacct {

namespace {

constexpr std::size_t container_id_length = 64;
constexpr std::size_t short_id_length = 12;
constexpr std::size_t pod_uid_length = 36;

struct ScopePrefix {
    std::string_view prefix;
    std::string_view runtime;
};

constexpr std::array scope_prefixes{
    ScopePrefix{"docker-", "docker"},
    ScopePrefix{"libpod-", "podman"},
    ScopePrefix{"cri-containerd-", "containerd"},
    ScopePrefix{"nerdctl-", "containerd"},
    ScopePrefix{"crio-", "cri-o"},
};

/// What podman's pods are called with systemd, after the name of the slice they are in.
constexpr std::string_view podman_pod = "-libpod_pod_";

constexpr std::array unit_suffixes{
    std::string_view{".service"}, std::string_view{".scope"},  std::string_view{".slice"},
    std::string_view{".mount"},   std::string_view{".socket"}, std::string_view{".swap"},
};

Owner make_owner(OwnerKind kind, std::string_view runtime, std::string_view id) {
    Owner owner;

    owner.kind = kind;
    owner.runtime = runtime;
    owner.id = id;
    return owner;
}

/// "kubepods-burstable-pod0a1b_…_.slice" or "pod0a1b-…" -> the uid, with dashes.
std::optional<std::string> pod_uid(std::string_view name, std::string_view path) {
    // With a prefix where Kubernetes itself runs in a container: "kubelet-kubepods".
    if (path.find("kubepods") == std::string_view::npos)
        return std::nullopt;
    if (name.ends_with(".slice"))
        name.remove_suffix(6);

    const auto at = name.rfind("pod");
    if (at == std::string_view::npos || (at > 0 && name[at - 1] != '-'))
        return std::nullopt;
    std::string uid(name.substr(at + 3));
    std::replace(uid.begin(), uid.end(), '_', '-');
    // A static pod's uid is the hash of its manifest: 32 digits without dashes.
    if ((uid.size() != pod_uid_length && uid.size() != 32) ||
        uid.find_first_not_of("0123456789abcdef-") != std::string::npos)
        return std::nullopt;
    return uid;
}

std::optional<Owner> container(std::string_view name, std::string_view path) {
    std::string_view id = name;

    if (id.ends_with(".scope"))
        id.remove_suffix(6);
    for (const auto &[prefix, runtime] : scope_prefixes) {
        if (id.starts_with(prefix) && is_container_id(id.substr(prefix.size())))
            return make_owner(OwnerKind::container, runtime, id.substr(prefix.size()));
    }
    if (!is_container_id(name))
        return std::nullopt;

    const std::string parent = parent_path(path);
    if (base_name(parent) == "docker")
        return make_owner(OwnerKind::container, "docker", name);
    // Below a pod any runtime may have made it.
    if (pod_uid(base_name(parent), parent))
        return make_owner(OwnerKind::container, "kubernetes", name);
    return std::nullopt;
}

std::optional<Owner> pod(std::string_view name, std::string_view path) {
    if (const auto uid = pod_uid(name, path))
        return make_owner(OwnerKind::pod, "kubernetes", *uid);

    std::string_view id = name;
    if (const auto at = name.find(podman_pod);
        at != std::string_view::npos && name.ends_with(".slice")) {
        id.remove_suffix(6);
        id.remove_prefix(at + podman_pod.size());
    } else if (base_name(parent_path(path)) != "libpod_parent") {
        return std::nullopt;
    }
    if (!is_container_id(id))
        return std::nullopt;
    return make_owner(OwnerKind::pod, "podman", id);
}

std::string short_id(const std::string &id) {
    return is_container_id(id) ? id.substr(0, short_id_length) : id;
}

} // namespace

bool is_container_id(std::string_view text) {
    return text.size() == container_id_length &&
           text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string Owner::full_name() const {
    if (kind == OwnerKind::unit)
        return id;
    if (pod.empty())
        return name;
    return container.empty() ? fmt::format("{}/{}", kube_namespace, pod)
                             : fmt::format("{}/{}/{}", kube_namespace, pod, container);
}

std::string Owner::label() const {
    if (kind == OwnerKind::unit)
        return id;
    // A container of which only the pod is known is still one of several there.
    const bool named = kind == OwnerKind::pod || pod.empty() || !container.empty();
    const std::string full = named ? full_name() : "";

    return fmt::format("{} {}", kind == OwnerKind::pod ? "pod" : runtime,
                       full.empty() ? short_id(id) : full);
}

std::optional<Owner> owner_of(std::string_view path) {
    const std::string_view name = base_name(path);

    if (auto found = container(name, path))
        return found;
    if (auto found = pod(name, path))
        return found;
    const bool is_unit =
        std::any_of(unit_suffixes.begin(), unit_suffixes.end(),
                    [&](std::string_view suffix) { return name.ends_with(suffix); });
    if (is_unit)
        return make_owner(OwnerKind::unit, "systemd", name);
    return std::nullopt;
}

std::optional<unsigned int> user_of(std::string_view path) {
    static constexpr std::string_view manager = "/user@";
    const auto at = path.find(manager);
    unsigned int user = 0;

    if (at == std::string_view::npos)
        return std::nullopt;
    const std::string_view rest = path.substr(at + manager.size());
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), user);
    if (error != std::errc() ||
        !rest.substr(static_cast<std::size_t>(end - rest.data())).starts_with(".service"))
        return std::nullopt;
    return user;
}

} // namespace umacct
