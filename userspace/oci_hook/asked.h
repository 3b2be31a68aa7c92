// SPDX-License-Identifier: GPL-2.0-or-later
/// What a container was asked to be started with, as its config.json says it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/contract.h"
#include "lib/settings.h"

namespace umacct::oci_hook {

/// What names of annotations begin with: "org.umacct.hard".
constexpr const char *annotation_prefix = "org.umacct.";

/// NVIDIA's own, in whole MiB, which its container toolkit knows, too.
constexpr const char *nvidia_request = "NVIDIA_GPU_MEMORY_REQUEST";
constexpr const char *nvidia_limit = "NVIDIA_GPU_MEMORY_LIMIT";

/// What the devices of "umacct setup cdi" put into a container's environment.
constexpr const char *cdi_hard = "UMACCT_CDI_HARD";

/// What umacct-device-plugin gives a container: an annotation of the container's, which kubelet
/// alone writes, and a CDI device with this value, which says that there has to be one.
constexpr const char *allocated_annotation = "umacct.io/allocated";
constexpr const char *allocated = "allocated";

struct Asked {
    WrittenSettings settings; ///< by annotations
    /// The lowest of NVIDIA's variable, a CDI device and what kubelet allocated.
    std::optional<std::uint64_t> hard;
    std::optional<std::uint64_t> soft; ///< by NVIDIA's variable
    std::optional<std::uint64_t> memory_limit;

    /// Somebody asked for something that is umacct's to give.
    bool is_for_umacct() const;

    bool has_shares() const { return settings.has_shares(); }

    /// On a machine with so much memory. Of a limit that is asked for in several ways, the lowest
    /// counts: not all of them need be the same person's.
    Contract contract(std::uint64_t total, bool from_memory_limit) const;
};

/// Throws Error (usage) that names what can't be understood.
Asked read_asked(const std::string &config);

} // namespace umacct::oci_hook
