// SPDX-License-Identifier: GPL-2.0-or-later
/// umacct-runtime's work: a container's config.json, with umacct-hook in it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace umacct::oci_hook {

/// How umacct-runtime was called: as the runtime that it runs, with options of its own.
struct RuntimeCall {
    std::string runtime = "runc";
    /// NVIDIA's own hook sees no request, without which it does nothing; ours does.
    bool instead_of_nvidia = false;
    std::vector<std::string> arguments; ///< for that runtime
    /// Of a container that is about to be made; empty for any other command.
    std::optional<std::filesystem::path> bundle;
    std::optional<std::filesystem::path> log; ///< where a message in JSON is looked for
};

/// words: without the program's name. Throws Error (usage).
RuntimeCall read_call(const std::vector<std::string> &words);

/// The text with the hook, before all others; empty where it is there already. Throws Error where
/// it is no configuration of a container.
std::optional<std::string> with_hook(const std::string &config, const std::string &hook,
                                     bool instead_of_nvidia);

} // namespace umacct::oci_hook
