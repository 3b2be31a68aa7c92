// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/owners/owner.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

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

/// Names of podman's pods with systemd, after the name of their slice.
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

/// Takes the first name off a path: "a" of "/a/b", which is "/b" then.
std::string_view take_name(std::string_view &path) {
    const std::size_t end = std::min(path.find('/', 1), path.size());
    const std::string_view name = path.substr(std::min<std::size_t>(1, end), end - 1);

    path.remove_prefix(end);
    return name;
}

/// Whether a cgroup is what systemd on this machine makes: the root, or a slice of its own or of
/// a user's manager, "a-b.slice" in "a.slice" in the root. What is called so elsewhere, as in an
/// LXC container that has a systemd of its own, was made by another manager.
bool is_place_of_units(std::string_view path) {
    constexpr std::string_view suffix = ".slice";
    std::string_view stem; // name of the slice that was reached
    std::string_view user; // user whose manager it is in
    std::size_t depth = 0;

    if (path == "/")
        return true;
    for (; !path.empty(); ++depth) {
        const std::string_view name = take_name(path);

        if (name.ends_with(suffix) && name.size() > suffix.size()) {
            const std::string_view next = name.substr(0, name.size() - suffix.size());
            const std::size_t dash = next.rfind('-');

            // "lxc.payload.x.slice" is LXC's cgroup of a container named "x.slice".
            if (next.starts_with('-') || next.starts_with("lxc.") ||
                stem != next.substr(0, dash == std::string_view::npos ? 0 : dash))
                return false;
            stem = next;
        } else if (depth == 2 && stem.starts_with("user-") && user.empty() &&
                   name == fmt::format("user@{}.service", stem.substr(5))) {
            user = name;
            stem = {};
        } else {
            return false;
        }
    }
    return true;
}

/// Decodes a name in a unit's name: "\\x2d" is a dash.
std::string unescape(std::string_view text) {
    std::string plain;

    for (std::size_t i = 0; i < text.size(); ++i) {
        unsigned int code = 0;
        const char *digits = text.data() + i + 2;

        if (text.substr(i).starts_with("\\x") && i + 4 <= text.size() &&
            std::from_chars(digits, digits + 2, code, 16).ptr == digits + 2) {
            plain += static_cast<char>(code);
            i += 3;
        } else {
            plain += text[i];
        }
    }
    return plain;
}

/// The machine of systemd-nspawn's that a unit is; empty for any other.
std::string machine_of(std::string_view unit, std::string_view parent) {
    constexpr std::array around{
        std::pair(std::string_view("systemd-nspawn@"), std::string_view(".service")),
        std::pair(std::string_view("machine-"), std::string_view(".scope"))};

    for (const auto &[before, after] : around) {
        if (parent == "/machine.slice" && unit.starts_with(before) && unit.ends_with(after) &&
            unit.size() > before.size() + after.size())
            return unescape(unit.substr(before.size(), unit.size() - before.size() - after.size()));
    }
    return "";
}

/// A container of LXC's, LXD's or Incus's. Its tree is that of another system.
std::optional<Owner> lxc_container(std::string_view name, std::string_view path) {
    constexpr std::string_view payload = "lxc.payload.";
    const std::string parent = parent_path(path);

    if (parent == "/" && name.starts_with(payload) && name.size() > payload.size())
        name.remove_prefix(payload.size());
    else if (name.empty() || (parent != "/lxc" && parent != "/lxc.payload"))
        return std::nullopt;
    Owner owner = make_owner(OwnerKind::container, "lxc", name);
    owner.name = name;
    return owner;
}

/// "kubepods-burstable-pod0a1b_…_.slice" or "pod0a1b-…" -> the uid, with dashes.
std::optional<std::string> pod_uid(std::string_view name, std::string_view path) {
    // A prefix is possible if the kubelet has one: "kubelet-kubepods". A tenant can make a folder
    // of that name in its own, not beside it.
    if (!path.starts_with("/kube") || path.find("kubepods") == std::string_view::npos)
        return std::nullopt;
    if (name.ends_with(".slice"))
        name.remove_suffix(6);

    const auto at = name.rfind("pod");
    if (at == std::string_view::npos || (at > 0 && name[at - 1] != '-'))
        return std::nullopt;
    const std::string_view rest = name.substr(at + 3);
    // A static pod's uid is the hash of its manifest: 32 digits without dashes.
    if ((rest.size() != pod_uid_length && rest.size() != 32) ||
        rest.find_first_not_of("0123456789abcdef-_") != std::string_view::npos)
        return std::nullopt;
    std::string uid(rest);
    std::replace(uid.begin(), uid.end(), '_', '-');
    return uid;
}

std::optional<Owner> container(std::string_view name, std::string_view path) {
    std::string_view id = name;

    if (auto found = lxc_container(name, path))
        return found;
    // Scopes are systemd's.
    if (id.ends_with(".scope")) {
        if (!is_place_of_units(parent_path(path)))
            return std::nullopt;
        id.remove_suffix(6);
    }
    for (const auto &[prefix, runtime] : scope_prefixes) {
        if (id.starts_with(prefix) && is_container_id(id.substr(prefix.size())))
            return make_owner(OwnerKind::container, runtime, id.substr(prefix.size()));
    }
    if (!is_container_id(name))
        return std::nullopt;

    const std::string parent = parent_path(path);
    if (base_name(parent) == "docker")
        return make_owner(OwnerKind::container, "docker", name);
    // Any runtime may have made it below a pod.
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
    if (is_unit &&
        is_place_of_units(name.ends_with(".slice") ? std::string(path) : parent_path(path))) {
        Owner unit = make_owner(OwnerKind::unit, "systemd", name);

        unit.name = machine_of(name, parent_path(path));
        return unit;
    }
    return std::nullopt;
}

std::optional<unsigned int> user_of(std::string_view path) {
    static constexpr std::string_view slice = "/user.slice/user-";
    unsigned int user = 0;

    if (!path.starts_with(slice))
        return std::nullopt;
    const std::string_view rest = path.substr(slice.size());
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), user);
    if (error != std::errc() || !rest.substr(static_cast<std::size_t>(end - rest.data()))
                                     .starts_with(fmt::format(".slice/user@{}.service", user)))
        return std::nullopt;
    return user;
}

} // namespace umacct
