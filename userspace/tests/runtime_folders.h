// SPDX-License-Identifier: GPL-2.0-or-later
/// State folders as each container runtime makes them.
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/sandbox.h"

namespace umacct::test {

inline std::string id_of(char digit) {
    return std::string(63, digit) + '0';
}

inline const std::string pod_uid = "8d1e7b0c-3f5a-4c6e-9b2d-0123456789ab";
inline const std::string pod_slice =
    "/kubepods.slice/kubepods-burstable.slice/"
    "kubepods-burstable-pod8d1e7b0c_3f5a_4c6e_9b2d_0123456789ab.slice";

class RuntimeFolders {
public:
    explicit RuntimeFolders(const Sandbox &sandbox) : sandbox_(sandbox) {}

    std::filesystem::path root() const { return sandbox_.proc().parent_path(); }

    void write(const std::string &file, const std::string &text) const {
        sandbox_.write(file, text);
    }

    void add_docker(const std::string &id, const std::string &name,
                    const std::string &folder = "var/lib/docker") const {
        write(folder + "/containers/" + id + "/config.v2.json",
              R"({"ID":")" + id + R"(","Name":"/)" + name + R"("})");
    }

    void add_docker(const std::string &id, const std::string &name, const std::string &image,
                    const nlohmann::json &labels) const {
        const nlohmann::json config{{"Name", "/" + name},
                                    {"Config", {{"Image", image}, {"Labels", labels}}}};

        write("var/lib/docker/containers/" + id + "/config.v2.json", config.dump());
    }

    /// A pod's sandbox, as CRI-O stores it.
    void add_sandbox(const std::string &id, const nlohmann::json &labels) const {
        const std::string folder = "var/lib/containers/storage/overlay-containers/";
        const nlohmann::json spec{{"annotations",
                                   {{"io.kubernetes.cri-o.ContainerType", "sandbox"},
                                    {"io.kubernetes.cri-o.Labels", labels.dump()},
                                    {"io.kubernetes.pod.name", "llm-0"},
                                    {"io.kubernetes.pod.namespace", "prod"}}}};

        add_stored(id, "k8s_POD_llm-0_prod_" + pod_uid + "_0", folder + "containers.json");
        write(folder + id + "/userdata/config.json", spec.dump());
    }

    void add_stored(const std::string &id, const std::string &name, const std::string &file) const {
        write(file, R"([{"id":")" + id + R"(","names":[")" + name + R"("]}])");
    }

    void add_containerd(const std::string &name_space, const std::string &id,
                        const nlohmann::json &annotations, const std::string &cgroup = "") const {
        const nlohmann::json spec{{"annotations", annotations},
                                  {"linux", {{"cgroupsPath", cgroup}}}};

        write("run/containerd/io.containerd.runtime.v2.task/" + name_space + "/" + id +
                  "/config.json",
              spec.dump());
    }

    static nlohmann::json cri(const std::string &container) {
        return {{"io.kubernetes.cri.container-type", "container"},
                {"io.kubernetes.cri.container-name", container},
                {"io.kubernetes.cri.sandbox-name", "llm-0"},
                {"io.kubernetes.cri.sandbox-namespace", "prod"}};
    }

private:
    const Sandbox &sandbox_;
};

} // namespace umacct::test
