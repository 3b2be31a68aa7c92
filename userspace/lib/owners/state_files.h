// SPDX-License-Identifier: GPL-2.0-or-later
/// What container runtimes write down about their containers, format by format. Any
/// of it may be missing, broken or written by somebody hostile: what can't be
/// understood is left out.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include <sys/types.h>

namespace umacct {

/// A container that Kubernetes manages, or a pod.
struct KubeName {
    std::string name_space;
    std::string pod;
    std::string container; ///< empty for a pod
};

/// What counts of an OCI runtime's config.json.
struct RuntimeSpec {
    std::string cgroups_path;
    std::map<std::string, std::string> annotations;

    /// Empty where there is no such annotation.
    std::string annotation(const std::string &key) const;
    /// As containerd's, or CRI-O's and podman's, annotations say.
    std::optional<KubeName> kube_name() const;
};

/// The file's text; empty unless it is a regular file of at most that size, no link,
/// and that user's, if one is given.
std::optional<std::string> read_state_file(const std::filesystem::path &file, std::size_t limit,
                                           std::optional<uid_t> user = {});

/// With the characters that no runtime allows in a name replaced, and of bounded length.
std::string clean_name(std::string_view name);

/// The name in Docker's config.v2.json.
std::string docker_name(const std::string &text);
/// Where Docker's daemon.json says that containers are kept.
std::string docker_data_root(const std::string &text);
/// Id to name, from the containers.json of containers/storage.
std::unordered_map<std::string, std::string> storage_names(const std::string &text);
/// Where storage.conf says that containers are kept.
std::string storage_graphroot(const std::string &text);
std::optional<RuntimeSpec> runtime_spec(const std::string &text);

/// "k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT", the name that runtimes give what the
/// kubelet asks for.
std::optional<KubeName> kube_name_of(std::string_view name);
/// The folder of a pod's logs, "NAMESPACE_POD_UID": its name by its uid.
std::optional<std::pair<std::string, KubeName>> pod_of_log(std::string_view folder);
/// The link to a container's log, "POD_NAMESPACE_CONTAINER-ID.log": its name by its id.
std::optional<std::pair<std::string, KubeName>> container_of_log(std::string_view file);

/// The user's home, from the text of a passwd file.
std::string home_of(const std::string &passwd, uid_t user);

} // namespace umacct
