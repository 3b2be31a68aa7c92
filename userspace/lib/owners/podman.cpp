// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/owners/podman.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "lib/owners/json_strings.h"
#include "lib/owners/owner.h"

namespace umacct {

namespace fs = std::filesystem;

namespace {

/// The graph drivers, each of which has its own folder.
constexpr const char *drivers[] = {"overlay-containers", "vfs-containers", "btrfs-containers",
                                   "zfs-containers"};

fs::path graphroot(StateFiles &files) {
    const std::string moved =
        files.ask_line(files.below_root("etc/containers/storage.conf"), read_storage_settings);

    return files.below_root(moved.empty() ? "var/lib/containers/storage" : moved);
}

} // namespace

std::string storage_name(StateFiles &files, const std::string &id, std::optional<uid_t> user) {
    const fs::path folder =
        user ? files.home(*user) / ".local/share/containers/storage" : graphroot(files);
    const std::string key = id + ' ';

    for (const char *driver : drivers) {
        // Containers that go when they end are in the second.
        for (const char *file : {"containers.json", "volatile-containers.json"}) {
            const auto &lines = files.ask(folder / driver / file, read_storage, user);
            const auto found = std::lower_bound(lines.begin(), lines.end(), key);

            if (found != lines.end() && found->starts_with(key))
                return clean_name(found->substr(key.size()));
        }
    }
    return "";
}

std::optional<RuntimeSpec> crio_spec(StateFiles &files, const std::string &id) {
    for (const char *driver : drivers) {
        if (auto spec =
                ask_spec(files, graphroot(files) / driver / id / "userdata" / "config.json"))
            return spec;
    }
    return std::nullopt;
}

std::string read_storage(const std::string &text) {
    std::map<std::string, std::string> ids; // by the element's number
    std::map<std::string, std::string> names;
    std::map<std::string, std::string> found;
    std::string answer;

    for_each_json_string(text, [&](auto keys, const std::string &value) {
        if (keys.size() == 2 && keys[1] == "id")
            ids[keys[0]] = value;
        else if (keys.size() == 3 && keys[1] == "names" && keys[2] == "0")
            names[keys[0]] = value;
    });
    for (const auto &[element, id] : ids) {
        if (is_container_id(id) && names.contains(element))
            found[id] = clean_name(names[element]);
    }
    for (const auto &[id, name] : found)
        answer.append(id).append(1, ' ').append(name).append(1, '\n');
    return answer;
}

std::string read_storage_settings(const std::string &text) {
    std::istringstream lines(text);

    // graphroot = "/path"; what else TOML allows nobody writes.
    for (std::string line; std::getline(lines, line);) {
        const auto first = line.find_first_not_of(" \t");
        const auto open = line.find_first_of("\"'");

        if (first == std::string::npos || open == std::string::npos ||
            line.compare(first, 9, "graphroot") != 0 ||
            line.find_first_not_of(" \t=", first + 9) != open)
            continue;
        const auto close = line.find(line[open], open + 1);
        if (close != std::string::npos)
            return line.substr(open + 1, close - open - 1);
    }
    return "";
}

} // namespace umacct
