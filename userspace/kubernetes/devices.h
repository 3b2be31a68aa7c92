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

/// gRPC for Go, which kubelet is written with, takes no larger message unless it is told to, and
/// kubelet doesn't tell it.
constexpr std::size_t largest_message = 4 * mib;

struct Offer {
    std::uint64_t memory = 0; ///< bytes
    std::uint64_t unit = mib; ///< of a device; whole MiB
    std::string why_not;      ///< why no limit would hold now; empty where it does

    std::uint64_t devices() const { return memory / unit; }

    bool healthy() const { return why_not.empty(); }

    bool operator==(const Offer &other) const = default;
};

/// Throws Error (usage) where the list of devices would be too large a message, healthy or not.
void check_size(const Offer &offer);

v1beta1::ListAndWatchResponse list_of(const Offer &offer);

/// What the containers are to have. Throws Error: usage for devices that there aren't, or that are
/// named twice; failed where no limit would hold.
v1beta1::AllocateResponse allocate(const Offer &offer, const v1beta1::AllocateRequest &request);

} // namespace umacct::kubernetes
