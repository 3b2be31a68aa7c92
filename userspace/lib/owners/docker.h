// SPDX-License-Identifier: GPL-2.0-or-later
/// Docker: where its containers' files are, and what they tell.
#pragma once

#include <optional>
#include <string>

#include <sys/types.h>

#include "lib/owners/description.h"
#include "lib/owners/state_file.h"

namespace umacct {

/// Empty where it isn't known. user: of a rootless Docker.
Description docker_container(StateFiles &files, const std::string &id, std::optional<uid_t> user);

/// A container's config.v2.json, as a description's lines.
std::string read_docker_config(const std::string &text);
/// Where daemon.json says that containers are kept.
std::string read_docker_settings(const std::string &text);

} // namespace umacct
