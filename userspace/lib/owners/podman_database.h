// SPDX-License-Identifier: GPL-2.0-or-later
/// Podman's database, which alone has the labels of its containers: SQLite's since Podman 4.8.
/// What an older Podman keeps in BoltDB isn't read.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <sys/types.h>

#include "lib/owners/description.h"
#include "lib/owners/state_file.h"

namespace umacct {

/// What the database below a storage folder says of a container; nothing where there is no
/// database, or no SQLite on the machine. A container that it doesn't have yet has an empty one.
/// user: of a rootless Podman.
std::optional<Description> container_in_database(StateFiles &files,
                                                 const std::filesystem::path &storage,
                                                 const std::string &id, std::optional<uid_t> user);

/// An empty line, and lines of "ID WHAT", where WHAT is a line of a Description, sorted by ID;
/// empty if the text is no such database.
std::string read_podman_database(const std::string &text);

} // namespace umacct
