// SPDX-License-Identifier: GPL-2.0-or-later
/// The machine's memory as devices of Kubernetes', each of one unit: as many as a container asks
/// for of umacct.io/memory are its hard limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <deviceplugin.pb.h>

namespace umacct::kubernetes {

constexpr const char *resource_name = "umacct.io/memory";

constexpr std::uint64_t mib = 1ULL << 20;

/// The largest message that gRPC for Go accepts by default. Kubelet leaves the default for its
/// plugins, and so do clients of kubelet's PodResources service, such as NVIDIA's dcgm-exporter.
constexpr std::size_t largest_message = 4 * mib;

/// Bytes that an allocated device adds to the answer of kubelet's PodResources service, from
/// Kubernetes 1.21 on: its name and an empty topology. Measured with 131,072 devices.
constexpr std::size_t listed_device = 28;

struct Offer {
    std::uint64_t memory = 0; ///< bytes
    std::uint64_t unit = mib; ///< memory of a device; whole MiB
    std::string why_not;      ///< why no limit would hold now; empty where it does

    std::uint64_t devices() const { return memory / unit; }

    bool healthy() const { return why_not.empty(); }

    bool operator==(const Offer &other) const = default;
};

/// Throws Error (usage) if a list of all devices would be too large a message: the plugin's, or the
/// one of PodResources once every device is allocated.
void check_size(const Offer &offer);

v1beta1::ListAndWatchResponse list_of(const Offer &offer);

/// Returns the containers' annotations and devices. Throws Error: usage for devices that don't
/// exist, or are named twice; failed if no limit would hold.
v1beta1::AllocateResponse allocate(const Offer &offer, const v1beta1::AllocateRequest &request);

} // namespace umacct::kubernetes
