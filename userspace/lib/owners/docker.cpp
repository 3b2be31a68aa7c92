// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/owners/runtimes.h"

#include <system_error>
#include <utility>

namespace umacct {

namespace fs = std::filesystem;

namespace {

/// Where root's Docker may keep what it has, the likeliest first.
std::vector<fs::path> folders(StateFiles &files) {
    const std::string moved =
        files.ask_line(files.below_root("etc/docker/daemon.json"), read_docker_settings);
    std::vector<fs::path> all;

    if (!moved.empty())
        all.push_back(files.below_root(moved));
    for (const char *folder : {"var/lib/docker", "var/snap/docker/common/var-lib-docker"})
        all.push_back(files.below_root(folder));
    return all;
}

} // namespace

Description docker_container(StateFiles &files, const std::string &id, std::optional<uid_t> user) {
    const auto found_below = [&](const fs::path &folder) {
        return Description::of(
            files.ask(folder / "containers" / id / "config.v2.json", read_docker_config, user));
    };

    if (user)
        return found_below(files.home(*user) / ".local/share/docker");

    Description found;
    for (const fs::path &folder : folders(files)) {
        if (found.name.empty())
            found = found_below(folder);
    }
    return found;
}

std::optional<std::vector<DockerContainer>> docker_containers(StateFiles &files) {
    std::optional<std::vector<DockerContainer>> all;

    for (const fs::path &folder : folders(files)) {
        std::error_code error;

        if (fs::directory_iterator(folder / "containers", error); error)
            continue;
        if (!all)
            all.emplace();
        for (const std::string &id : files.entries(folder / "containers")) {
            const fs::path file = folder / "containers" / id / "hostconfig.json";
            DockerContainer container{.id = clean_name(id), .name = {}, .runtime = {}};

            // What has no such file Docker takes for no container.
            if (!fs::exists(file, error))
                continue;
            if (const auto &lines = files.ask(file, read_docker_runtime); !lines.empty())
                container.runtime = lines.front();
            container.name = docker_container(files, id, {}).name;
            all->push_back(std::move(container));
        }
    }
    return all;
}

std::string read_docker_config(const std::string &text) {
    Description found;
    const bool is_json = for_each_json_string(text, [&](auto keys, const std::string &value) {
        if (keys.size() == 1 && keys[0] == "Name")
            found.name = value.substr(value.starts_with('/') ? 1 : 0);
        else if (keys.size() == 2 && keys[0] == "Config" && keys[1] == "Image")
            found.image = value;
        else if (keys.size() == 3 && keys[0] == "Config" && keys[1] == "Labels")
            found.add_label(keys[2], value);
    });

    return is_json ? found.lines() : "";
}

std::string read_docker_runtime(const std::string &text) {
    std::string found;
    const bool is_json = for_each_json_string(text, [&](auto keys, const std::string &value) {
        if (keys.size() == 1 && keys[0] == "Runtime")
            found = value;
    });

    return is_json ? clean_name(found) + "\n" : "";
}

std::string read_docker_settings(const std::string &text) {
    std::string found;
    const bool is_json = for_each_json_string(text, [&](auto keys, const std::string &value) {
        if (keys.size() == 1 && keys[0] == "data-root")
            found = value;
    });

    return is_json ? found : "";
}

} // namespace umacct
