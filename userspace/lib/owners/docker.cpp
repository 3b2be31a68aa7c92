// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/owners/runtimes.h"

#include <system_error>
#include <utility>

namespace umacct {

namespace fs = std::filesystem;

namespace {

/// The data-root of root's Docker, from its settings; empty if they have none.
std::optional<fs::path> chosen_folder(StateFiles &files) {
    const std::string chosen =
        files.ask_line(files.below_root("etc/docker/daemon.json"), read_docker_settings);

    return chosen.empty() ? std::nullopt : std::optional(files.below_root(chosen));
}

/// Default data-roots of Debian's package and of the snap.
std::vector<fs::path> usual_folders(const StateFiles &files) {
    return {files.below_root("var/lib/docker"),
            files.below_root("var/snap/docker/common/var-lib-docker")};
}

/// user: of a rootless Docker.
Description found_below(StateFiles &files, const fs::path &folder, const std::string &id,
                        std::optional<uid_t> user) {
    return Description::of(
        files.ask(folder / "containers" / id / "config.v2.json", read_docker_config, user));
}

} // namespace

Description docker_container(StateFiles &files, const std::string &id, std::optional<uid_t> user,
                             const std::optional<fs::path> &folder) {
    if (user)
        return found_below(files, files.home(*user) / ".local/share/docker", id, user);

    Description found;
    // Docker may run with the settings that it had before these.
    if (const auto chosen = chosen_folder(files))
        found = found_below(files, *chosen, id, {});
    for (const fs::path &usual : usual_folders(files)) {
        if (found.name.empty())
            found = found_below(files, usual, id, {});
    }
    if (found.name.empty() && folder)
        found = found_below(files, *folder, id, {});
    return found;
}

std::optional<std::vector<DockerContainer>> docker_containers(StateFiles &files) {
    const auto chosen = chosen_folder(files);
    std::optional<std::vector<DockerContainer>> all;

    for (const fs::path &folder : chosen ? std::vector{*chosen} : usual_folders(files)) {
        std::error_code error;

        if (fs::directory_iterator(folder / "containers", error); error)
            continue;
        if (!all)
            all.emplace();
        for (const std::string &id : files.entries(folder / "containers")) {
            const fs::path file = folder / "containers" / id / "hostconfig.json";
            DockerContainer container{.id = clean_name(id), .name = {}, .runtime = {}};

            // Docker ignores folders without such a file.
            if (!fs::exists(file, error))
                continue;
            if (const auto &lines = files.ask(file, read_docker_runtime); !lines.empty())
                container.runtime = lines.front();
            container.name = found_below(files, folder, id, {}).name;
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
