// SPDX-License-Identifier: GPL-2.0-or-later
/// Docker: where its containers' files are, and the names in them.
#pragma once

#include <optional>
#include <string>

#include <sys/types.h>

#include "lib/owners/state_file.h"

namespace umacct {

/// The container's name, empty where it isn't known. user: of a rootless Docker.
std::string docker_name(StateFiles &files, const std::string &id, std::optional<uid_t> user);

/// The name in a container's config.v2.json.
std::string read_docker_config(const std::string &text);
/// Where daemon.json says that containers are kept.
std::string read_docker_settings(const std::string &text);

} // namespace umacct
