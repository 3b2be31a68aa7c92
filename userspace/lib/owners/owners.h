// SPDX-License-Identifier: GPL-2.0-or-later
/// The owners of cgroups, by the names that people gave them: those that umacct-hook kept with a
/// container's cgroup, else those from the path and from the files of Docker, podman, CRI-O,
/// containerd and the kubelet. No runtime is contacted and none needs to run; if its files can't be
/// read, the path alone is used.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "lib/host/cgroup.h"
#include "lib/owners/runtimes.h"

namespace umacct {

class Owners {
public:
    /// root: where /var, /run and /etc are. cgroups: whose attributes tell what the hook kept; none
    /// for the files alone. Nothing is read until something is asked.
    explicit Owners(std::filesystem::path root = "/", std::optional<Cgroups> cgroups = {})
        : cgroups_(std::move(cgroups)), files_(std::move(root)) {}

    /// The owner that the path's last component names; see owner_of().
    std::optional<Owner> of(std::string_view path) const;

    /// Whether umacct-hook said so: a runtime of root's made that cgroup for that container.
    bool is_kept(std::string_view path) const;

    /// The nearest owner at or above the path.
    std::optional<Owner> nearest(std::string_view path) const;

    /// Looks again for what has changed, for who runs for long.
    void refresh();

    /// Writes down for other programs what was read: see StateFiles::share().
    void share() { files_.share(); }

    const StateFiles &files() const { return files_; }

    const std::optional<Cgroups> &cgroups() const { return cgroups_; }

private:
    /// Finds what a view of a path names, too.
    struct HashPath : std::hash<std::string_view> {
        using is_transparent = void;
    };

    using ByPath = std::unordered_map<std::string, std::optional<Owner>, HashPath, std::equal_to<>>;

    void name_container(Owner &owner, std::string_view path) const;
    void name_pod(Owner &owner) const;

    std::optional<Cgroups> cgroups_;
    mutable StateFiles files_;
    mutable ByPath known_;
    mutable std::optional<std::unordered_map<std::string, Owner>> containerd_;      ///< the key is
                                                                                    ///< the path
    mutable std::optional<KubeNames> pods_;                                         ///< the key is
                                                                                    ///< the uid
    mutable std::optional<KubeNames> kube_containers_;                              ///< the key is
                                                                                    ///< the id
    mutable std::optional<std::unordered_map<std::string, std::string>> sandboxes_; ///< the key is
                                                                                    ///< the pod's
                                                                                    ///< uid
};

/// Whoever runs in a container, a service or a session can make cgroups in it, with any name.
bool is_made_inside(std::string_view path, const Owners &owners);

} // namespace umacct
