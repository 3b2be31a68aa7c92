// SPDX-License-Identifier: GPL-2.0-or-later
/// A cgroup's owner, from its path alone. owners.h adds the names that runtimes gave.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace umacct {

enum class OwnerKind { container, pod, unit };

struct Owner {
    OwnerKind kind = OwnerKind::unit;
    std::string runtime; ///< "docker", "podman", "containerd", "cri-o", "kubernetes", "systemd"
    std::string id;      ///< full container id, pod uid with dashes, or the unit's name

    // Name of a container outside Kubernetes, from the runtime's files, or of the systemd-nspawn
    // machine of a unit; empty if not known.
    std::string name;
    std::string kube_namespace; ///< these three of one that it does, or of a pod
    std::string pod;
    std::string container;
    std::string image;               ///< a container's
    std::vector<std::string> labels; ///< "KEY=VALUE"; a container in a pod has the pod's, too

    /// Returns the name as TARGET: "vllm", "default/llm-0", "default/llm-0/vllm"; empty if not
    /// known.
    std::string full_name() const;

    /// Returns the name for people: "docker vllm", "docker 0123456789ab", "pod default/llm-0",
    /// "nginx.service".
    std::string label() const;
};

/// The name of the container that only holds a pod's namespaces.
constexpr const char *sandbox_name = "POD";

bool is_container_id(std::string_view text);

/// The owner that the path's last component names; empty for one that names none
/// (a plain cgroup, or a runtime's own helper such as conmon).
std::optional<Owner> owner_of(std::string_view path);

/// The user whose service manager the cgroup is below, as a rootless runtime's are.
std::optional<unsigned int> user_of(std::string_view path);

} // namespace umacct
