// SPDX-License-Identifier: GPL-2.0-or-later
/// Who a cgroup is for, read from its path alone: no runtime is asked.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace umacct {

enum class OwnerKind { container, pod, unit };

struct Owner {
    OwnerKind kind = OwnerKind::unit;
    std::string runtime; ///< "docker", "podman", "containerd", "cri-o", "kubernetes", "systemd"
    std::string id;      ///< full container id, pod uid with dashes, or the unit's name

    /// For people: "docker 0123456789ab", "pod 1234…", "nginx.service".
    std::string label() const;
};

/// The owner that the path's last component names; empty for one that names none
/// (a plain cgroup, or a runtime's own helper such as conmon).
std::optional<Owner> owner_of(std::string_view path);

/// The nearest owner at or above the path.
std::optional<Owner> nearest_owner(std::string_view path);

} // namespace umacct
