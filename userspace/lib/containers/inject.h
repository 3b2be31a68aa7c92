// SPDX-License-Identifier: GPL-2.0-or-later
/// A container's config.json, or the specification that it is made of, with umacct-hook in it.
#pragma once

#include <optional>
#include <string>

namespace umacct::containers {

/// The text with the hook, before all others; empty where it is there already. Throws Error where
/// it is no configuration of a container.
/// instead_of_nvidia: NVIDIA's own hook sees no request, without which it does nothing; ours does.
std::optional<std::string> with_hook(const std::string &config, const std::string &hook,
                                     bool instead_of_nvidia);

} // namespace umacct::containers
