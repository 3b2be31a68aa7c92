// SPDX-License-Identifier: GPL-2.0-or-later
/// How a container asks for settings, in its config.json: for umacct-hook, and for what writes it.
#pragma once

namespace umacct {

/// Prefix of annotations: "org.umacct.hard".
constexpr const char *annotation_prefix = "org.umacct.";

/// NVIDIA's own, in whole MiB, which its container toolkit knows, too.
constexpr const char *nvidia_request = "NVIDIA_GPU_MEMORY_REQUEST";
constexpr const char *nvidia_limit = "NVIDIA_GPU_MEMORY_LIMIT";

/// Variable that the devices of "umacct setup cdi" add to a container's environment.
constexpr const char *cdi_hard = "UMACCT_CDI_HARD";

/// Settings by umacct-device-plugin: an annotation of the container's, which kubelet alone writes,
/// and a CDI device with this value, which says that there has to be one.
constexpr const char *allocated_annotation = "umacct.io/allocated";
constexpr const char *cdi_allocated = "allocated";

/// A runtime's time limit for the hook, which takes milliseconds.
constexpr int seconds_of_hook = 10;

} // namespace umacct
