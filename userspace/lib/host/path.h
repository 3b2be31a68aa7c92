// SPDX-License-Identifier: GPL-2.0-or-later
/// Paths of cgroups and of files, as texts: absolute, and without a slash at their end but for "/".
#pragma once

#include <string>
#include <string_view>

namespace umacct {

/// The last component of a path: "/" for the root.
std::string_view base_name(std::string_view path);

/// The path one level up; "/" for the root.
std::string parent_path(std::string_view path);

/// A name below a path.
std::string join_path(std::string_view path, std::string_view name);

/// Whether a path is below another, and not the same.
bool is_below(std::string_view path, std::string_view above);

} // namespace umacct
