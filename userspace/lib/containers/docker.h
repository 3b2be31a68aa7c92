// SPDX-License-Identifier: GPL-2.0-or-later
/// Docker's daemon.json: a runtime of umacct's, which runs the one that was the default, and is
/// the default. It runs each other one that the file has a program for, too.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lib/containers/edit.h"

namespace umacct::containers {

/// runtime: where umacct-runtime is installed. Throws Error where the file is no JSON object.
Edit docker_settings(const std::filesystem::path &root, const std::string &runtime);

/// Removes our part from a file that was changed since; unchanged if there is none, empty if
/// nothing else is left.
std::optional<std::string> docker_without_umacct(const std::string &now, const Edit &made);

/// The names of runtimes that Docker knows before the edit of its settings, and not after it.
std::vector<std::string> docker_runtimes_lost(const Edit &edit);

} // namespace umacct::containers
