// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/owners/runtimes.h"

namespace umacct {

namespace fs = std::filesystem;

Description docker_container(StateFiles &files, const std::string &id, std::optional<uid_t> user) {
    const auto found_below = [&](const fs::path &folder) {
        return Description::of(
            files.ask(folder / "containers" / id / "config.v2.json", read_docker_config, user));
    };

    if (user)
        return found_below(files.home(*user) / ".local/share/docker");

    const std::string moved =
        files.ask_line(files.below_root("etc/docker/daemon.json"), read_docker_settings);
    Description found = moved.empty() ? Description{} : found_below(files.below_root(moved));
    for (const char *folder : {"var/lib/docker", "var/snap/docker/common/var-lib-docker"}) {
        if (found.name.empty())
            found = found_below(files.below_root(folder));
    }
    return found;
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

std::string read_docker_settings(const std::string &text) {
    std::string found;
    const bool is_json = for_each_json_string(text, [&](auto keys, const std::string &value) {
        if (keys.size() == 1 && keys[0] == "data-root")
            found = value;
    });

    return is_json ? found : "";
}

} // namespace umacct
