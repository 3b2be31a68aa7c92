// SPDX-License-Identifier: GPL-2.0-or-later
/// The files of container runtimes, which tenants fill.
#include <algorithm>
#include <string_view>

#include "lib/owners/runtimes.h"
#include "tests/fuzz/fuzz.h"

using namespace umacct;

namespace {

bool is_clean(std::string_view name) {
    return std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

} // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    const std::string text = fuzz::text_of(data, size);

    const std::string docker = read_docker_config(text);
    fuzz::expect(is_clean(docker.substr(0, docker.find('\n'))), "Docker's name is clean");
    fuzz::expect(docker.size() < 256U << 10, "what a container is called is bounded");
    const std::string runtime = read_docker_runtime(text);
    fuzz::expect(runtime.empty() ||
                     (runtime.ends_with('\n') && is_clean(runtime.substr(0, runtime.size() - 1))),
                 "a runtime's name is clean");
    read_docker_settings(text);
    read_storage_settings(text);

    const std::string stored = read_storage(text);
    fuzz::expect(stored.empty() || (stored.size() > 65 && stored[64] == ' '), "an id and a name");
    const std::string database = read_podman_database(text);
    fuzz::expect(database.empty() || database.size() == 1 ||
                     (database[0] == '\n' && database.size() > 66 && database[65] == ' '),
                 "an empty line, then ids");
    const std::string has = read_environment(text, "UMACCT_CDI_HARD");
    fuzz::expect(has.empty() || has == "yes\n" || has == "no\n", "a word on the environment");
    const std::string spec = read_spec(text);
    const auto lines = std::count(spec.begin(), spec.end(), '\n');
    fuzz::expect(spec.empty() || (lines >= 4 && lines <= 6 + 128), "four lines, or some more");
    for (const auto &name :
         {kube_name_of(text),
          pod_of_log(text) ? std::optional(pod_of_log(text)->second) : std::nullopt,
          container_of_log(text) ? std::optional(container_of_log(text)->second) : std::nullopt})
        fuzz::expect(!name || (is_clean(name->name_space) && is_clean(name->pod) &&
                               is_clean(name->container)),
                     "Kubernetes' names are clean");
    return 0;
}
