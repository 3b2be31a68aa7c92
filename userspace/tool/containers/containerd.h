// SPDX-License-Identifier: GPL-2.0-or-later
/// containerd's CRI plugin, which Kubernetes talks to: its containers are made of a specification
/// that has umacct-hook in it, and pods' annotations reach them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tool/containers/edit.h"

namespace umacct::containers {

/// hook: where umacct-hook is installed. What containerd's own specification is, its ctr says.
/// Throws Error where containerd isn't installed, or its configuration can't be understood.
std::vector<Edit> containerd_settings(const std::filesystem::path &root, const std::string &hook);

/// The same without the specifications: of the files alone that name them.
std::vector<Edit> containerd_files(const std::filesystem::path &root);

/// Where containerd answers, which makes its socket anew each time that it starts.
std::filesystem::path containerd_socket(const std::filesystem::path &root);

/// Of a file that was changed since; as it is where it has nothing of ours, empty where nothing is
/// left.
std::optional<std::string> containerd_without_umacct(const std::string &now, const Edit &made);

} // namespace umacct::containers
