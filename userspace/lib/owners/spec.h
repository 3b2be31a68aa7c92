// SPDX-License-Identifier: GPL-2.0-or-later
/// An OCI runtime's config.json, which containerd and CRI-O keep for each container.
#pragma once

#include <optional>
#include <string>

#include "lib/owners/kubelet.h"
#include "lib/owners/state_file.h"

namespace umacct {

/// What counts of it.
struct RuntimeSpec {
    std::string cgroups_path;
    std::string name; ///< that nerdctl gave
    std::optional<KubeName> kube_name;
};

/// Empty where there is no such file.
std::optional<RuntimeSpec> ask_spec(StateFiles &files, const std::filesystem::path &file);

/// The same as lines: the path and the name, and the three of the Kubernetes name.
std::string read_spec(const std::string &text);

} // namespace umacct
