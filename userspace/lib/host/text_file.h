// SPDX-License-Identifier: GPL-2.0-or-later
/// Small files whose absence is an answer, as those of /proc and /sys.
#pragma once

#include <filesystem>
#include <string>

namespace umacct {

/// Empty where it can't be read.
std::string contents_of(const std::filesystem::path &file);
/// First line of it; empty where it can't be read.
std::string line_of(const std::filesystem::path &file);
/// Also false where it can't be seen.
bool is_there(const std::filesystem::path &path);

} // namespace umacct
