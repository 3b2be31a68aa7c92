// SPDX-License-Identifier: GPL-2.0-or-later
/// The state that an OCI runtime passes to a hook about the container that it creates. The runtime
/// wrote it, and tenants wrote many of its parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace umacct::oci_hook {

/// No runtime's state comes near.
constexpr std::size_t largest_state = 1U << 20;

struct ContainerState {
    std::string id;
    std::uint32_t pid = 0;
    std::filesystem::path bundle;
};

/// Throws Error (failed) where it is no such state.
ContainerState read_state(const std::string &json);

/// The text of the bundle's config.json. Throws Error (failed) where that is no regular file of a
/// sensible size.
std::string read_config(const std::filesystem::path &bundle);

} // namespace umacct::oci_hook
