// SPDX-License-Identifier: GPL-2.0-or-later
/// This node's offer to Kubernetes: its memory, as far as limits hold on it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "kubernetes/devices.h"
#include "lib/machine.h"
#include "lib/module/module.h"

namespace umacct::kubernetes {

/// Why a container that is made on the node now may not run umacct-hook; empty where each does.
/// root: where the node's /etc, /run and /var are.
std::string why_no_hook(const std::filesystem::path &root);

class Node {
public:
    /// unit: of a device, in bytes.
    Node(Connection &connection, const Machine &machine, std::uint64_t unit)
        : connection_(connection), machine_(machine), unit_(unit) {}

    /// The machine's memory without its reserve. Throws Error where that can't be read.
    Offer look();

    /// The same, whether or not the node's runtime has the hook for every container.
    Offer look_at_module();

private:
    Connection &connection_;
    const Machine &machine_;
    std::uint64_t unit_;
};

} // namespace umacct::kubernetes
