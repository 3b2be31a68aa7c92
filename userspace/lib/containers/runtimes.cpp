// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/containers/runtimes.h"

#include <algorithm>
#include <array>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "lib/containers/asking.h"
#include "lib/containers/containerd.h"
#include "lib/containers/docker.h"
#include "lib/error.h"
#include "lib/json.h"
#include "lib/owners/runtimes.h"

namespace umacct::containers {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t gib = 1ULL << 30;
constexpr std::uint64_t most_sizes = 1024;
constexpr const char *devices_file = "etc/cdi/umacct-memory.json";

/// The path of a program when a container starts.
std::string installed(const fs::path &root, const char *program) {
    for (const char *folder : {"usr/lib/umacct", "usr/local/lib/umacct"}) {
        std::error_code ignored;

        if (fs::is_regular_file(root / folder / program, ignored))
            return "/" + (fs::path(folder) / program).string();
    }
    throw Error(Failure::missing, fmt::format("{} is not installed", program),
                "it is in /usr/lib/umacct, and comes with the tool's package");
}

Edit whole(const fs::path &file, const Json &json) {
    return {.file = file, .before = read_text(file), .after = json.dump(2) + "\n"};
}

/// The hook's file for podman and CRI-O.
Edit hooks_folder(const Place &place) {
    return whole(place.root / "etc/containers/oci/hooks.d/umacct.json",
                 {{"version", "1.0.0"},
                  {"hook",
                   {{"path", installed_hook(place.root)},
                    {"args", {"umacct-hook"}},
                    {"timeout", seconds_of_hook}}},
                  {"when", {{"always", true}}},
                  {"stages", {"createRuntime"}}});
}

Json device(const std::string &size) {
    return {{"name", size}, {"containerEdits", {{"env", {fmt::format("{}={}", cdi_hard, size)}}}}};
}

/// The specification of the devices of a list.
Json cdi_of(const Json &list) {
    return {{"cdiVersion", "0.5.0"}, {"kind", "umacct.io/memory"}, {"devices", list}};
}

/// A device for each GiB that the machine has, and some for less.
Edit devices(const Place &place) {
    Json list = Json::array();
    const auto add = [&](const std::string &size) { list.push_back(device(size)); };

    for (const char *size : {"64m", "128m", "256m", "512m"})
        add(size);
    for (std::uint64_t size = 1; size <= std::min(place.memory / gib + 1, most_sizes); ++size)
        add(fmt::format("{}g", size));
    Json cdi = cdi_of(list);
    cdi["containerEdits"]["hooks"] = {{{"hookName", "createRuntime"},
                                       {"path", installed_hook(place.root)},
                                       {"args", {"umacct-hook"}},
                                       {"timeout", seconds_of_hook}}};
    return whole(place.root / devices_file, cdi);
}

/// The device of umacct-device-plugin's answer. Its runtime has the hook for every container
/// already, and would run the hook twice if the device had it, too. It comes before devices(),
/// which parts share: the folder goes with the last file.
Edit allocated_device(const Place &place) {
    return whole(place.root / "etc/cdi/umacct-allocated.json",
                 cdi_of(Json::array({device(cdi_allocated)})));
}

/// Both look into the folder of packages alone by default.
Edit folders_of_hooks(const fs::path &file, const char *part, const char *table) {
    return {.file = file,
            .before = read_text(file),
            .after = fmt::format("# By 'umacct setup {0}'; 'umacct setup {0} --undo' removes it.\n"
                                 "[{1}]\n"
                                 "hooks_dir = [\n"
                                 "\t\"/usr/share/containers/oci/hooks.d\",\n"
                                 "\t\"/etc/containers/oci/hooks.d\",\n"
                                 "]\n",
                                 part, table)};
}

std::vector<Edit> edits_of_podman(const Place &place) {
    return {hooks_folder(place), devices(place),
            folders_of_hooks(place.root / "etc/containers/containers.conf.d/90-umacct.conf",
                             "podman", "engine")};
}

std::vector<Edit> edits_of_crio(const Place &place) {
    return {hooks_folder(place), allocated_device(place), devices(place),
            folders_of_hooks(place.root / "etc/crio/crio.conf.d/90-umacct.conf", "crio",
                             "crio.runtime")};
}

std::vector<Edit> shared_of_docker(const fs::path &root) {
    return {docker_settings(root, installed(root, "umacct-runtime"))};
}

std::vector<Edit> edits_of_docker(const Place &place) {
    auto edits = shared_of_docker(place.root);

    edits.push_back(devices(place));
    return edits;
}

std::vector<Edit> with_devices(std::vector<Edit> edits, const Place &place) {
    edits.push_back(allocated_device(place));
    edits.push_back(devices(place));
    return edits;
}

std::vector<Edit> edits_of_containerd(const Place &place) {
    return with_devices(containerd_settings(place.root, installed_hook(place.root)), place);
}

template <const Distribution &distribution>
std::vector<Edit> edits_of(const Place &place) {
    return with_devices(distribution_settings(place.root, installed_hook(place.root), distribution),
                        place);
}

template <const Distribution &distribution>
std::vector<Edit> files_of(const fs::path &root) {
    return distribution_files(root, distribution);
}

template <const Distribution &distribution>
fs::path socket_of(const fs::path &root) {
    return distribution_socket(root, distribution);
}

std::vector<Edit> edits_of_cdi(const Place &place) {
    return {devices(place)};
}

/// lost: whether it was created with what is no more; empty where that isn't known.
void add(Stranded &to, const std::string &id, const std::string &name, std::optional<bool> lost) {
    const std::string &known_by = name.empty() ? id : name;

    if (!lost)
        to.doubtful.push_back(known_by);
    else if (*lost)
        to.containers->push_back(known_by);
}

/// Docker keeps the name of its runtime with each container.
Stranded stranded_of_docker(const fs::path &root, const std::vector<Edit> &edits) {
    Stranded stranded{.without = "",
                      .maker = "Docker",
                      .remedy = "'docker compose up --force-recreate', or 'docker rm' and "
                                "'docker run'"};
    std::vector<std::string> runtimes;

    for (const Edit &edit : edits) {
        if (edit.shared)
            runtimes = docker_runtimes_lost(edit);
    }
    if (runtimes.empty())
        return stranded;
    stranded.without = fmt::format("Docker's runtime {}", fmt::join(runtimes, ", "));

    StateFiles files(root);
    const auto all = docker_containers(files);
    if (!all)
        return stranded;
    stranded.containers.emplace();
    for (const DockerContainer &each : *all) {
        std::optional<bool> lost;

        if (each.runtime)
            lost = std::ranges::find(runtimes, *each.runtime) != runtimes.end();
        add(stranded, each.id, each.name, lost);
    }
    return stranded;
}

/// Podman keeps the names of a container's CDI devices, and looks for them each time that it starts
/// it. Its hooks it looks for as well, and a container starts without them.
Stranded stranded_of_podman(const fs::path &root, const std::vector<Edit> &edits) {
    Stranded stranded{.without = "",
                      .maker = "Podman",
                      .remedy = "'podman rm', and 'podman run' without the device"};

    if (std::ranges::none_of(edits, [&](const Edit &edit) {
            return edit.file == root / devices_file && !edit.after;
        }))
        return stranded;
    stranded.without = "a device umacct.io/memory";

    StateFiles files(root);
    const auto all = podman_containers(files, cdi_hard);
    if (!all)
        return stranded;
    stranded.containers.emplace();
    for (const PodmanContainer &each : *all)
        add(stranded, each.id, each.name, each.has);
    return stranded;
}

fs::path socket_of_crio(const fs::path &root) {
    return root / "run/crio/crio.sock";
}

/// Returns the path as seen on the machine.
std::string name_of(const fs::path &file, const fs::path &root) {
    return (fs::path("/") / file.lexically_relative(root)).string();
}

/// The first file that would be another if it was set up again; empty where none would.
/// changed: when one of them was changed last. Throws Error.
std::optional<fs::path> outdated(const Runtime &runtime, const fs::path &root,
                                 fs::file_time_type &changed) {
    const Record record(root, runtime.name);

    changed = record.last_change();
    if (auto file = record.altered())
        return file;
    if (runtime.shared == nullptr)
        return std::nullopt;
    for (const Edit &edit : runtime.shared(root)) {
        std::error_code error;
        const auto time = fs::last_write_time(edit.file, error);

        if (edit.changes() || error)
            return edit.file;
        changed = std::max(changed, time);
    }
    return std::nullopt;
}

} // namespace

std::string installed_hook(const fs::path &root) {
    return installed(root, "umacct-hook");
}

const std::vector<Runtime> &all_runtimes() {
    static const std::vector<Runtime> runtimes{
        {"podman", "limits of containers, from their first instruction, with Podman",
         "containers have what they ask for from now on: see umacct-hook(8)", "", edits_of_podman,
         nullptr, nullptr, nullptr, stranded_of_podman},
        {"crio", "the same with CRI-O", "systemctl restart crio", "systemctl restart crio",
         edits_of_crio, nullptr, nullptr, socket_of_crio},
        {"docker", "the same with Docker", "systemctl restart docker", "systemctl restart docker",
         edits_of_docker, docker_without_umacct, shared_of_docker, nullptr, stranded_of_docker},
        {"containerd", "the same with Kubernetes' containers, by containerd",
         "systemctl restart containerd", "systemctl restart containerd", edits_of_containerd,
         containerd_without_umacct, containerd_files, containerd_socket},
        {k3s.name, "the same with the containerd that k3s runs", "systemctl try-restart 'k3s*'",
         "systemctl try-restart 'k3s*'", edits_of<k3s>, nullptr, files_of<k3s>, socket_of<k3s>},
        {rke2.name, "the same with the containerd that RKE2 runs", "systemctl try-restart 'rke2-*'",
         "systemctl try-restart 'rke2-*'", edits_of<rke2>, nullptr, files_of<rke2>,
         socket_of<rke2>},
        {"cdi", "CDI devices alone, such as umacct.io/memory=40g, for any runtime that has CDI",
         "containers with --device umacct.io/memory=40g have a hard limit of 40 GiB", "",
         edits_of_cdi, nullptr, nullptr, nullptr, stranded_of_podman},
    };

    return runtimes;
}

const Runtime *find_runtime(std::string_view name) {
    const auto &runtimes = all_runtimes();
    const auto found = std::ranges::find(runtimes, name, &Runtime::name);

    return found == runtimes.end() ? nullptr : &*found;
}

bool was_set_up(const Runtime &runtime, const fs::path &root) {
    return Record::is_there(root, runtime.name);
}

bool is_set_up(const Runtime &runtime, const fs::path &root) {
    fs::file_time_type ignored;

    try {
        return was_set_up(runtime, root) && !outdated(runtime, root, ignored);
    } catch (const Error &error) {
        return error.failure() == Failure::permission;
    }
}

std::string why_not_hooked(const Runtime &runtime, const fs::path &root) {
    fs::file_time_type changed;
    std::error_code error;

    if (!was_set_up(runtime, root))
        return fmt::format("{0} is not set up to run umacct-hook: 'umacct setup {0}' does that",
                           runtime.name);
    try {
        if (const auto file = outdated(runtime, root, changed))
            return fmt::format("{0} is not as umacct-hook needs it: 'umacct setup {1}', and then "
                               "'{2}', mend that",
                               name_of(*file, root), runtime.name, runtime.then);
        if (runtime.socket == nullptr)
            return "";
        const fs::path socket = runtime.socket(root);
        const auto started = fs::last_write_time(socket, error);
        if (error)
            return fmt::format("{} does not run: its socket {}: {}", runtime.name,
                               name_of(socket, root), error.message());
        if (is_ahead(changed))
            return fmt::format(
                "the files that {0} reads are dated later than now, so whether it has "
                "read them is unknown: 'umacct setup {0}' dates them back; then '{1}'",
                runtime.name, runtime.then);
        // The time of a file is that of a clock that ticks a hundred times a second at the least.
        if (started < changed)
            return fmt::format("{} has not read its files since they were changed: restart it: "
                               "'{}'",
                               runtime.name, runtime.then);
        return "";
    } catch (const Error &failed) {
        return failed.what();
    }
}

std::vector<Edit> to_set_up(const Runtime &runtime, const Place &place) {
    return runtime.edits(place);
}

std::vector<Edit> to_undo(const Runtime &runtime, const fs::path &root) {
    const Record record(root, runtime.name);

    return record.is_there() ? record.undoing(runtime.take_out) : std::vector<Edit>();
}

void set_up(const Runtime &runtime, const fs::path &root, const std::vector<Edit> &edits) {
    Record(root, runtime.name).make(edits, runtime.take_out);
}

void undo(const Runtime &runtime, const fs::path &root, const std::vector<Edit> &edits) {
    Record record(root, runtime.name);

    if (record.is_there())
        record.forget(edits);
}

} // namespace umacct::containers
