// SPDX-License-Identifier: GPL-2.0-or-later
/// Having the machine's firmware ask, at the next boot, whether the kernel may trust the key
/// that signs what DKMS builds.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace umacct::tool::secure_boot {

struct Queued {
    std::vector<std::string> files; ///< new files: a key and its certificate
    std::string then;               ///< next step, for people
};

/// Makes a key where there is none, and queues it where it is neither enrolled nor queued. The
/// password that the firmware will ask for is made up, and is in "then" alone. Throws Error.
Queued enroll(const std::filesystem::path &root);

/// Takes the request back; a key stays, as other modules may be signed with it. What was
/// taken back, if anything. Throws Error.
std::vector<std::string> revoke(const std::filesystem::path &root);

} // namespace umacct::tool::secure_boot
