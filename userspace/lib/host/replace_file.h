// SPDX-License-Identifier: GPL-2.0-or-later
/// Replacing a file as a whole: no reader ever sees half of it, and neither does one
/// starts the machine after a power cut.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace umacct {

/// Makes its folder, too. 0, or what is wrong with it as an errno; then the file is as it was.
int replace_file(const std::filesystem::path &file, const std::string &text);

/// The same for another program's file: the new one has the owner and the mode of the old one.
int replace_file_of_others(const std::filesystem::path &file, const std::string &text);

/// The same for one that only its owner may read, whatever the old one was.
int replace_private_file(const std::filesystem::path &file, const std::string &text);

/// Has a path have another name in its folder, after a power cut, too. 0, or an errno.
int rename_path(const std::filesystem::path &from, const std::filesystem::path &to);

/// Waits until what a file or a folder has is on the disk. 0, or an errno.
int sync_path(const std::filesystem::path &path);

/// Test hook: called before each of the steps above, with its name and its file.
using OnFileStep = std::function<void(const char *step, const std::filesystem::path &path)>;
void on_file_step(OnFileStep call);

} // namespace umacct
