// SPDX-License-Identifier: GPL-2.0-or-later
/// Pieces of the text output that more than one verb prints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "lib/machine.h"

namespace umacct::tool {

/// A cgroup for people: its path, from its container or pod where it names one:
/// "docker vllm/init", "docker 0123456789ab/init".
std::string display_path(const Owners &owners, std::string_view path);

/// The same with its path behind it, for what is changed: a name alone may be another's.
/// "docker vllm (/system.slice/docker-0123....scope)".
std::string name_and_path(const Owners &owners, std::string_view path);

/// Puts a cgroup's name in place of its path in a sentence of umacctd's.
std::string with_name(std::string text, std::string_view path, std::string_view name);

/// Returns display_path() without the part above its last component, for a list that shows that
/// part.
std::string short_name(const Owners &owners, std::string_view path);

/// "1 process", "2 processes".
std::string counted(std::uint64_t count, const char *one, const char *many);

/// Printable: a user by its name, or by its number where it has none here.
std::string name_of_user(uid_t uid);

/// A size or limit that may be unknown: "-" then.
std::string format_known(const std::optional<std::uint64_t> &bytes);

/// The same in a sentence: "unknown" then.
std::string size_or_unknown(const std::optional<std::uint64_t> &bytes);

/// "8.00 GiB", "off", or that the caller may not see it.
std::string reserve_text(const Status &status, std::string (*size)(std::uint64_t bytes));

} // namespace umacct::tool
