// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/names.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "lib/cgroup.h"

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

/// Folders in which a runtime without systemd keeps a cgroup named by the bare id.
constexpr std::array parent_names{
    ScopePrefix{"docker", "docker"},
    ScopePrefix{"libpod_parent", "podman"},
};

constexpr std::array unit_suffixes{
    std::string_view{".service"}, std::string_view{".scope"},  std::string_view{".slice"},
    std::string_view{".mount"},   std::string_view{".socket"}, std::string_view{".swap"},
};

bool is_container_id(std::string_view text) {
    return text.size() == container_id_length &&
           text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// "kubepods-burstable-pod0a1b_…_.slice" or "pod0a1b-…" -> the uid, with dashes.
std::optional<std::string> pod_uid(std::string_view name, std::string_view path) {
    if (path.find("/kubepods") == std::string_view::npos)
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
            return Owner{OwnerKind::container, std::string(runtime),
                         std::string(id.substr(prefix.size()))};
    }
    if (!is_container_id(name))
        return std::nullopt;

    const std::string parent = parent_path(path);
    for (const auto &[folder, runtime] : parent_names) {
        if (base_name(parent) == folder)
            return Owner{OwnerKind::container, std::string(runtime), std::string(name)};
    }
    // Below a pod any runtime may have made it.
    if (pod_uid(base_name(parent), parent))
        return Owner{OwnerKind::container, "kubernetes", std::string(name)};
    return std::nullopt;
}

} // namespace

std::string Owner::label() const {
    switch (kind) {
    case OwnerKind::container:
        return fmt::format("{} {}", runtime, id.substr(0, short_id_length));
    case OwnerKind::pod:
        return fmt::format("pod {}", id);
    case OwnerKind::unit:
        break;
    }
    return id;
}

std::optional<Owner> owner_of(std::string_view path) {
    const std::string_view name = base_name(path);

    if (auto found = container(name, path))
        return found;
    if (auto uid = pod_uid(name, path))
        return Owner{OwnerKind::pod, "kubernetes", *uid};
    const bool is_unit =
        std::any_of(unit_suffixes.begin(), unit_suffixes.end(),
                    [&](std::string_view suffix) { return name.ends_with(suffix); });
    if (is_unit)
        return Owner{OwnerKind::unit, "systemd", std::string(name)};
    return std::nullopt;
}

std::optional<Owner> nearest_owner(std::string_view path) {
    std::string at(path);

    while (at != "/") {
        if (auto owner = owner_of(at))
            return owner;
        at = parent_path(at);
    }
    return std::nullopt;
}

} // namespace umacct
