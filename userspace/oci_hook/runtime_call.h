// SPDX-License-Identifier: GPL-2.0-or-later
/// umacct-runtime's command line, which is that of the runtime that it runs.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace umacct::oci_hook {

/// How umacct-runtime was called: as the runtime that it runs, with options of its own.
struct RuntimeCall {
    std::string runtime = "runc";
    /// NVIDIA's own hook sees no request, without which it does nothing; ours does.
    bool instead_of_nvidia = false;
    std::vector<std::string> arguments; ///< the runtime's
    /// Bundle of a container that is about to be created; empty for any other command.
    std::optional<std::filesystem::path> bundle;
    std::optional<std::filesystem::path> log; ///< file in which a JSON message is expected
};

/// words: without the program's name. Throws Error (usage).
RuntimeCall read_call(const std::vector<std::string> &words);

} // namespace umacct::oci_hook
