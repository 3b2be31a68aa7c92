// SPDX-License-Identifier: GPL-2.0-or-later
/// Folders in which the library with NVML's soname lies beside the real one, as links to both.
/// A program that looks for NVML there first gets umacct's answers. Nothing of NVIDIA's is touched.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace umacct::nvml {

/// The library that is installed with umacct. Throws Error (missing).
std::filesystem::path find_library(const std::filesystem::path &root);

/// The real one, as programs find it: where search says (as LD_LIBRARY_PATH does), or where
/// NVIDIA's packages put it. A name that stays when the driver is replaced, where there is one.
/// Throws Error (missing).
std::filesystem::path find_real(const std::filesystem::path &root, const std::string &search);

/// Returns the machine's folder: "umacct setup nvml" makes it.
std::filesystem::path machine_place(const std::filesystem::path &root);

/// Both of its links lead to a file.
bool is_whole(const std::filesystem::path &place);

/// Makes it, or makes it anew where a link leads elsewhere. Throws Error.
void make_place(const std::filesystem::path &place, const std::filesystem::path &library,
                const std::filesystem::path &real);

/// The names of its links: of our library, and of the real one.
std::vector<std::filesystem::path> links_of(const std::filesystem::path &place);

/// Returns the search path with the folder in front.
std::string search_path(const std::filesystem::path &place, const std::string &before);

} // namespace umacct::nvml
