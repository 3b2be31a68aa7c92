// SPDX-License-Identifier: GPL-2.0-or-later
/// containerd's CRI plugin, which Kubernetes talks to: its containers are made of a specification
/// that has umacct-hook in it, and pods' annotations reach them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lib/containers/edit.h"

namespace umacct::containers {

/// hook: where umacct-hook is installed. What containerd's own specification is, its ctr says.
/// Throws Error where containerd isn't installed, or its configuration can't be understood.
std::vector<Edit> containerd_settings(const std::filesystem::path &root, const std::string &hook);

/// The same without the specifications: of the files alone that name them.
std::vector<Edit> containerd_files(const std::filesystem::path &root);

/// Returns containerd's socket, which it makes anew at each start.
std::filesystem::path containerd_socket(const std::filesystem::path &root);

/// A distribution of Kubernetes that has a containerd of its own. It writes the settings anew at
/// each start; they import a folder beside them.
struct Distribution {
    const char *name;
    const char *folder;           ///< folder of containerd's settings, below the root
    std::vector<std::string> ctr; ///< program below the root, and its first arguments
};

extern const Distribution k3s;
extern const Distribution rke2;

/// Returns a file in that folder, for the runtimes of the current settings, and the specifications
/// that it names. Throws Error if there are no settings yet, or they import no such file.
std::vector<Edit> distribution_settings(const std::filesystem::path &root, const std::string &hook,
                                        const Distribution &of);

/// The same without the specifications.
std::vector<Edit> distribution_files(const std::filesystem::path &root, const Distribution &of);

std::filesystem::path distribution_socket(const std::filesystem::path &root,
                                          const Distribution &of);

/// Removes our part from a file that was changed since; unchanged if there is none, empty if
/// nothing else is left.
std::optional<std::string> containerd_without_umacct(const std::string &now, const Edit &made);

} // namespace umacct::containers
