// SPDX-License-Identifier: GPL-2.0-or-later
/// Claims to this node's memory: what the scheduler allocated to them, and the CDI devices by which
/// their containers get it as their limit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/json.h"

namespace umacct::kubernetes {

constexpr const char *driver_name = "umacct.io";
constexpr const char *device_name = "memory";
constexpr const char *capacity_name = "memory";

/// Parses an amount as Kubernetes writes it: "40Gi", "1500M", "1e9". Returns whole bytes. Throws
/// Error (usage) on anything else, and on a negative amount.
std::uint64_t parse_quantity(std::string_view text);

/// A share of the node's memory that a request of a claim was given.
struct Share {
    std::string request;
    std::uint64_t bytes = 0;

    bool operator==(const Share &other) const = default;
};

/// Returns what a ResourceClaim has on this node. Throws Error where that is nothing, or not for
/// one pod alone.
std::vector<Share> shares_of(const Json &claim, const std::string &node);

/// Counts the containers of a pod that use the claim at the same time.
std::size_t containers_with(const Json &pod, const std::string &claim);

/// Whether it may be part of a path or an address: letters, digits, dashes and dots.
bool is_plain_name(std::string_view name);

/// Returns the name of the CDI device for a share, without its kind.
std::string device_of(const std::string &uid, std::size_t share);

constexpr const char *claim_kind = "umacct.io/claim";

/// Returns a CDI specification with a device for each share. hook: umacct-hook's path on the node.
Json specification(const std::string &uid, const std::vector<Share> &shares,
                   const std::string &hook);

} // namespace umacct::kubernetes
