// SPDX-License-Identifier: GPL-2.0-or-later
/// An OCI runtime's config.json, which containerd and CRI-O keep for each container.
#pragma once

#include <optional>
#include <string>

#include "lib/owners/description.h"
#include "lib/owners/kubelet.h"
#include "lib/owners/state_file.h"

namespace umacct {

/// What counts of it.
struct RuntimeSpec {
    std::string cgroups_path;
    std::optional<KubeName> kube_name;
    Description description; ///< the name that nerdctl gave
};

/// Empty where there is no such file.
std::optional<RuntimeSpec> ask_spec(StateFiles &files, const std::filesystem::path &file);

/// The same as lines: the path, the three of the Kubernetes name, the description's.
std::string read_spec(const std::string &text);

} // namespace umacct
