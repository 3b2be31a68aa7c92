// SPDX-License-Identifier: GPL-2.0-or-later
/// Podman and CRI-O, which both keep their containers in containers/storage.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include <sys/types.h>

#include "lib/owners/description.h"
#include "lib/owners/spec.h"
#include "lib/owners/state_file.h"

namespace umacct {

/// Name and image, as they are stored for every program that uses that storage; empty where it
/// isn't known. user: of a rootless Podman.
Description stored_container(StateFiles &files, const std::string &id, std::optional<uid_t> user);

/// The same of a container of Podman's, with its labels where its database can be read.
Description podman_container(StateFiles &files, const std::string &id, std::optional<uid_t> user);

/// The ids of the containers that CRI-O keeps for pods as a whole, by the pod's uid.
std::unordered_map<std::string, std::string> crio_sandboxes(StateFiles &files);

/// What CRI-O wrote down about a container.
std::optional<RuntimeSpec> crio_spec(StateFiles &files, const std::string &id);

/// Sorted lines of "ID NAME" or "ID NAME IMAGE", from a containers.json.
std::string read_storage(const std::string &text);
/// Where storage.conf says that containers are kept.
std::string read_storage_settings(const std::string &text);

} // namespace umacct
