// SPDX-License-Identifier: GPL-2.0-or-later
/// Who cgroups are for, by the names that people gave: what the path tells, and what
/// the files of Docker, podman, CRI-O, containerd and the kubelet add to it. No
/// runtime is asked, none needs to run, and where its files can't be read the path
/// has to do.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

#include "lib/owners/names.h"
#include "lib/owners/state_files.h"

namespace umacct {

class Owners {
public:
    /// root: where /var, /run and /etc are. Nothing is read until something is asked,
    /// and then once.
    explicit Owners(std::filesystem::path root = "/") : root_(std::move(root)) {}

    /// The owner that the path's last component names; see owner_of().
    std::optional<Owner> of(std::string_view path) const;

    /// The nearest owner at or above the path.
    std::optional<Owner> nearest(std::string_view path) const;

    /// Forgets what was read, for who runs for long.
    void refresh() { known_ = {}; }

private:
    using Names = std::unordered_map<std::string, std::string>;
    using KubeNames = std::unordered_map<std::string, KubeName>;

    struct Known {
        std::unordered_map<std::string, std::optional<Owner>> owners; ///< by path
        std::unordered_map<std::string, Names> storages;              ///< by folder
        std::unordered_map<uid_t, std::filesystem::path> homes;
        std::optional<std::vector<std::filesystem::path>> docker_folders;
        std::optional<std::filesystem::path> graphroot;
        std::optional<std::vector<std::filesystem::path>> containerd_folders;
        std::optional<std::unordered_map<std::string, Owner>> containerd_paths;
        std::optional<KubeNames> pods;            ///< by uid
        std::optional<KubeNames> kube_containers; ///< by id
    };

    void name_container(Owner &owner, std::string_view path) const;
    void name_pod(Owner &owner) const;

    std::string docker_name(const std::string &id, std::optional<uid_t> user) const;
    std::string storage_name(const std::string &id, std::optional<uid_t> user) const;
    std::optional<RuntimeSpec> storage_spec(const std::string &id) const;
    std::optional<RuntimeSpec> containerd_spec(const std::string &id) const;
    std::optional<Owner> containerd_at(const std::string &path) const;

    std::filesystem::path below_root(const std::filesystem::path &path) const;
    const std::filesystem::path &home(uid_t user) const;
    const std::vector<std::filesystem::path> &docker_folders() const;
    const std::filesystem::path &graphroot() const;
    const Names &storage(const std::filesystem::path &folder, std::optional<uid_t> user) const;
    const std::vector<std::filesystem::path> &containerd_folders() const;
    const KubeNames &pods() const;
    const KubeNames &kube_containers() const;

    std::filesystem::path root_;
    mutable Known known_;
};

} // namespace umacct
