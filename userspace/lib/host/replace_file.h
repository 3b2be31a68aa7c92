// SPDX-License-Identifier: GPL-2.0-or-later
/// A file that is written anew as a whole: nobody ever sees half of it.
#pragma once

#include <filesystem>
#include <string>

namespace umacct {

/// Makes its folder, too. 0, or what is wrong with it as an errno; then the file is as it was.
int replace_file(const std::filesystem::path &file, const std::string &text);

/// The same for a file of somebody else's: the new one has the owner and the mode of the old one.
int replace_file_of_others(const std::filesystem::path &file, const std::string &text);

/// The same for one that only its owner may read, whatever the old one was.
int replace_private_file(const std::filesystem::path &file, const std::string &text);

} // namespace umacct
