// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/owners/docker.h"

#include "lib/owners/json_strings.h"

namespace umacct {

namespace fs = std::filesystem;

namespace {

/// A string member of the document itself.
std::string member(const std::string &text, const char *name) {
    std::string found;
    const bool is_json = for_each_json_string(text, [&](auto keys, const std::string &value) {
        if (keys.size() == 1 && keys[0] == name)
            found = value;
    });

    return is_json ? found : "";
}

} // namespace

std::string docker_name(StateFiles &files, const std::string &id, std::optional<uid_t> user) {
    const auto name_below = [&](const fs::path &folder) {
        return clean_name(files.ask_line(folder / "containers" / id / "config.v2.json",
                                         read_docker_config, user));
    };

    if (user)
        return name_below(files.home(*user) / ".local/share/docker");

    const std::string moved =
        files.ask_line(files.below_root("etc/docker/daemon.json"), read_docker_settings);
    std::string name = moved.empty() ? "" : name_below(files.below_root(moved));
    for (const char *folder : {"var/lib/docker", "var/snap/docker/common/var-lib-docker"}) {
        if (name.empty())
            name = name_below(files.below_root(folder));
    }
    return name;
}

std::string read_docker_config(const std::string &text) {
    const std::string name = member(text, "Name");

    return clean_name(name.starts_with('/') ? name.substr(1) : name);
}

std::string read_docker_settings(const std::string &text) {
    return member(text, "data-root");
}

} // namespace umacct
