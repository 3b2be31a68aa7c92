// SPDX-License-Identifier: GPL-2.0-or-later
/// Podman and CRI-O, which both keep their containers in containers/storage.
#pragma once

#include <optional>
#include <string>

#include <sys/types.h>

#include "lib/owners/spec.h"
#include "lib/owners/state_file.h"

namespace umacct {

/// The container's name, empty where it isn't known. user: of a rootless Podman.
std::string storage_name(StateFiles &files, const std::string &id, std::optional<uid_t> user);

/// What CRI-O wrote down about a container.
std::optional<RuntimeSpec> crio_spec(StateFiles &files, const std::string &id);

/// Sorted lines of "ID NAME", from a containers.json.
std::string read_storage(const std::string &text);
/// Where storage.conf says that containers are kept.
std::string read_storage_settings(const std::string &text);

} // namespace umacct
