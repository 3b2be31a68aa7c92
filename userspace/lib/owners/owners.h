// SPDX-License-Identifier: GPL-2.0-or-later
/// Who cgroups are for, by the names that people gave: what the path tells, and what
/// the files of Docker, podman, CRI-O, containerd and the kubelet add to it. No
/// runtime is asked, none needs to run, and where its files can't be read the path
/// has to do.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "lib/owners/runtimes.h"

namespace umacct {

class Owners {
public:
    /// root: where /var, /run and /etc are. Nothing is read until something is asked.
    explicit Owners(std::filesystem::path root = "/") : files_(std::move(root)) {}

    /// The owner that the path's last component names; see owner_of().
    std::optional<Owner> of(std::string_view path) const;

    /// The nearest owner at or above the path.
    std::optional<Owner> nearest(std::string_view path) const;

    /// Looks again for what has changed, for who runs for long.
    void refresh();

    /// Writes down for other programs what was read: see StateFiles::share().
    void share() { files_.share(); }

    const StateFiles &files() const { return files_; }

private:
    /// Finds what a view of a path names, too.
    struct HashPath : std::hash<std::string_view> {
        using is_transparent = void;
    };

    using ByPath = std::unordered_map<std::string, std::optional<Owner>, HashPath, std::equal_to<>>;

    void name_container(Owner &owner, std::string_view path) const;
    void name_pod(Owner &owner) const;

    mutable StateFiles files_;
    mutable ByPath known_;
    mutable std::optional<std::unordered_map<std::string, Owner>> containerd_;      ///< by path
    mutable std::optional<KubeNames> pods_;                                         ///< by uid
    mutable std::optional<KubeNames> kube_containers_;                              ///< by id
    mutable std::optional<std::unordered_map<std::string, std::string>> sandboxes_; ///< by pod
};

/// Whoever runs in a container, a service or a session can make cgroups in it, with any name.
bool is_made_inside(std::string_view path, const Owners &owners);

} // namespace umacct
