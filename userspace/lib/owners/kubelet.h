// SPDX-License-Identifier: GPL-2.0-or-later
/// Kubernetes: the names that the kubelet gives to logs, and to what it asks a runtime for.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "lib/owners/state_file.h"

namespace umacct {

/// A container that Kubernetes manages, or a pod.
struct KubeName {
    std::string name_space;
    std::string pod;
    std::string container; ///< empty for a pod
};

using KubeNames = std::unordered_map<std::string, KubeName>;

/// Of clean names; empty where one that is needed is missing.
std::optional<KubeName> make_kube_name(std::string_view name_space, std::string_view pod,
                                       std::string_view container);

/// "k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT", the name that runtimes give what the
/// kubelet asks for.
std::optional<KubeName> kube_name_of(std::string_view name);
/// The same of what holds a pod's namespaces and nothing else: the pod's uid.
std::optional<std::string> sandbox_of_pod(std::string_view name);
/// The folder of a pod's logs, "NAMESPACE_POD_UID": its name by its uid.
std::optional<std::pair<std::string, KubeName>> pod_of_log(std::string_view folder);
/// The link to a container's log, "POD_NAMESPACE_CONTAINER-ID.log": its name by its id.
std::optional<std::pair<std::string, KubeName>> container_of_log(std::string_view file);

/// By uid.
KubeNames kubelet_pods(StateFiles &files);
/// By id.
KubeNames kubelet_containers(StateFiles &files);

} // namespace umacct
