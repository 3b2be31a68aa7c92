// SPDX-License-Identifier: GPL-2.0-or-later
/// The files of container runtimes, which tenants fill.
#include <algorithm>
#include <string_view>

#include "lib/owners/docker.h"
#include "lib/owners/kubelet.h"
#include "lib/owners/podman.h"
#include "lib/owners/spec.h"
#include "tests/fuzz/fuzz.h"

using namespace umacct;

namespace {

bool is_clean(std::string_view name) {
    return std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

} // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    const std::string text = fuzz::text_of(data, size);

    fuzz::expect(is_clean(read_docker_config(text)), "Docker's name is clean");
    read_docker_settings(text);
    read_storage_settings(text);

    const std::string stored = read_storage(text);
    fuzz::expect(stored.empty() || (stored.size() > 65 && stored[64] == ' '), "an id and a name");
    const std::string spec = read_spec(text);
    fuzz::expect(spec.empty() || std::count(spec.begin(), spec.end(), '\n') == 5, "five lines");
    for (const auto &name :
         {kube_name_of(text),
          pod_of_log(text) ? std::optional(pod_of_log(text)->second) : std::nullopt,
          container_of_log(text) ? std::optional(container_of_log(text)->second) : std::nullopt})
        fuzz::expect(!name || (is_clean(name->name_space) && is_clean(name->pod) &&
                               is_clean(name->container)),
                     "Kubernetes' names are clean");
    return 0;
}
