// SPDX-License-Identifier: GPL-2.0-or-later
/// Container runtimes' and the kubelet's files about containers. The read_...() functions turn a
/// file's text into an answer, in a child process: see state_file.h.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "lib/json_scan.h"
#include "lib/owners/owner.h"
#include "lib/owners/state_file.h"

namespace umacct {

// --- what they tell ---------------------------------------------------------------

/// A container's description in its runtime's files: name, image and labels.
struct Description {
    std::string name;
    std::string image;               ///< the runtime's spelling, mostly with a tag or a digest
    std::vector<std::string> labels; ///< "KEY=VALUE"

    /// One that is too long is left out: cut off, it would be another one.
    void add_label(std::string_view key, std::string_view value);

    /// Returns the answer of a child that read a runtime's file: the name, the image, the labels,
    /// in harmless characters. No lines if all are empty.
    std::string lines() const;

    /// The same, read.
    static Description of(std::span<const std::string> lines);
};

/// An image's name as one word of harmless characters; empty for one that is too long.
std::string clean_image(std::string_view image);

/// A container that Kubernetes manages, or a pod.
struct KubeName {
    std::string name_space;
    std::string pod;
    std::string container; ///< empty for a pod
};

using KubeNames = std::unordered_map<std::string, KubeName>;

/// Makes a name of clean parts; empty if a required one is missing.
std::optional<KubeName> make_kube_name(std::string_view name_space, std::string_view pod,
                                       std::string_view container);

// --- Kubernetes: the names that the kubelet gives to logs, and to what it asks for --------

/// "k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT", the name that runtimes give what the
/// kubelet asks for.
std::optional<KubeName> kube_name_of(std::string_view name);
/// The same of what holds a pod's namespaces and nothing else: the pod's uid.
std::optional<std::string> sandbox_of_pod(std::string_view name);
/// The folder of a pod's logs, "NAMESPACE_POD_UID": its name by its uid.
std::optional<std::pair<std::string, KubeName>> pod_of_log(std::string_view folder);
/// The link to a container's log, "POD_NAMESPACE_CONTAINER-ID.log": its name by its id.
std::optional<std::pair<std::string, KubeName>> container_of_log(std::string_view file);

/// The pods' names; the key is the uid.
KubeNames kubelet_pods(StateFiles &files);
/// The containers' names; the key is the id.
KubeNames kubelet_containers(StateFiles &files);

// --- containerd, and the config.json of an OCI runtime that CRI-O keeps as well -----------

/// The used parts of a config.json.
struct RuntimeSpec {
    std::string cgroups_path;
    std::optional<KubeName> kube_name;
    Description description; ///< the name that nerdctl gave
};

/// The lines of read_spec().
std::optional<RuntimeSpec> spec_of(std::span<const std::string> lines);
/// Empty where there is no such file.
std::optional<RuntimeSpec> ask_spec(StateFiles &files, const std::filesystem::path &file);
/// The same as lines: the path, the three of the Kubernetes name, the description's.
std::string read_spec(const std::string &text);

std::optional<RuntimeSpec> containerd_spec(StateFiles &files, const std::string &id);
/// The containers whose cgroup is at a path that doesn't say so: "/NAMESPACE/ID", or
/// whatever its maker asked for; by that path.
std::unordered_map<std::string, Owner> containerd_owners(StateFiles &files);

// --- Docker --------------------------------------------------------------------------

/// Empty where it isn't known. user: of a rootless Docker. folder: where root's may also keep what
/// it has.
Description docker_container(StateFiles &files, const std::string &id, std::optional<uid_t> user,
                             const std::optional<std::filesystem::path> &folder = {});

/// One of root's Docker, and the runtime that it was created with.
struct DockerContainer {
    std::string id;
    std::string name;                   ///< empty: not known
    std::optional<std::string> runtime; ///< empty: not known
};

/// All that there are, running or not; empty where no folder of them can be read. Where Docker's
/// settings name a folder, it is that one alone. Docker needn't run.
std::optional<std::vector<DockerContainer>> docker_containers(StateFiles &files);
/// A container's config.v2.json, as a description's lines.
std::string read_docker_config(const std::string &text);
/// The runtime of a container, from its hostconfig.json, as a line; no line where that is no JSON.
std::string read_docker_runtime(const std::string &text);
/// Returns the folder of containers from daemon.json.
std::string read_docker_settings(const std::string &text);

// --- Podman and CRI-O, which both keep their containers in containers/storage ---------------

/// Name and image, as they are stored for every program that uses that storage; empty where it
/// isn't known. user: of a rootless Podman.
Description stored_container(StateFiles &files, const std::string &id, std::optional<uid_t> user);
/// The same of the storage in that folder.
Description stored_container(StateFiles &files, const std::filesystem::path &storage,
                             const std::string &id, std::optional<uid_t> user);
/// The same of a container of Podman's, with its labels where its database can be read.
Description podman_container(StateFiles &files, const std::string &id, std::optional<uid_t> user);
Description podman_container(StateFiles &files, const std::filesystem::path &storage,
                             const std::string &id, std::optional<uid_t> user);

/// One of root's Podman.
struct PodmanContainer {
    std::string id;
    std::string name;        ///< empty: not known
    std::optional<bool> has; ///< empty: not known
};

/// All that there are, running or not, and whether their environment had a variable when they were
/// last started: one that never was may have it. Empty where their folder can't be read.
std::optional<std::vector<PodmanContainer>> podman_containers(StateFiles &files,
                                                              const std::string &variable);
/// Looks for a variable in a container's config.json: "yes" or "no", as a line; no line if it is no
/// JSON.
std::string read_environment(const std::string &text, const std::string &variable);

/// The ids of the containers that CRI-O keeps for pods as a whole, by the pod's uid.
std::unordered_map<std::string, std::string> crio_sandboxes(StateFiles &files);
/// Returns the parts of CRI-O's config.json of a container.
std::optional<RuntimeSpec> crio_spec(StateFiles &files, const std::string &id);

/// Sorted lines of "ID NAME" or "ID NAME IMAGE", from a containers.json.
std::string read_storage(const std::string &text);
/// Returns the folder of containers from storage.conf.
std::string read_storage_settings(const std::string &text);

/// Reads a container's description from Podman's database below a storage folder, which alone has
/// its labels: SQLite's since Podman 4.8; the older BoltDB isn't read. Empty if there is no
/// database, or no SQLite on the machine. A container that the database doesn't have yet has an
/// empty description. user: a rootless Podman's.
std::optional<Description> container_in_database(StateFiles &files,
                                                 const std::filesystem::path &storage,
                                                 const std::string &id, std::optional<uid_t> user);
/// An empty line, and lines of "ID WHAT", where WHAT is a line of a Description, sorted by ID;
/// empty if the text is no such database.
std::string read_podman_database(const std::string &text);

} // namespace umacct
