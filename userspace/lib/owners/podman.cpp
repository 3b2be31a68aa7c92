// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/owners/runtimes.h"

#include <algorithm>
#include <array>
#include <map>
#include <sstream>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace umacct {

namespace fs = std::filesystem;

namespace {

/// The graph drivers, each of which has its own folder.
constexpr const char *drivers[] = {"overlay-containers", "vfs-containers", "btrfs-containers",
                                   "zfs-containers"};

fs::path graphroot(StateFiles &files, std::optional<uid_t> user = {}) {
    if (user)
        return files.home(*user) / ".local/share/containers/storage";

    const std::string moved =
        files.ask_line(files.below_root("etc/containers/storage.conf"), read_storage_settings);
    return files.below_root(moved.empty() ? "var/lib/containers/storage" : moved);
}

/// Calls visit with the lines of each file that has containers, until it says that it has it.
template <class Visit>
void for_each_list(StateFiles &files, const fs::path &folder, std::optional<uid_t> user,
                   Visit visit) {
    for (const char *driver : drivers) {
        // Containers that go when they end are in the second.
        for (const char *file : {"containers.json", "volatile-containers.json"}) {
            if (visit(files.ask(folder / driver / file, read_storage, user)))
                return;
        }
    }
}

/// The image that libpod notes down beside a container.
std::string image_in(const std::string &metadata) {
    std::string image;

    for_each_json_string(metadata, [&](auto keys, const std::string &value) {
        if (keys.size() == 1 && keys[0] == "image-name")
            image = value;
    });
    return image;
}

} // namespace

Description stored_container(StateFiles &files, const fs::path &storage, const std::string &id,
                             std::optional<uid_t> user) {
    const std::string key = id + ' ';
    Description description;

    for_each_list(files, storage, user, [&](const StateFiles::Lines &lines) {
        const auto found = std::lower_bound(lines.begin(), lines.end(), key);

        if (found == lines.end() || !found->starts_with(key))
            return false;
        std::istringstream words(found->substr(key.size()));
        std::array<std::string, 2> name_and_image;
        words >> name_and_image[0] >> name_and_image[1];
        description = Description::of(name_and_image);
        return true;
    });
    return description;
}

Description stored_container(StateFiles &files, const std::string &id, std::optional<uid_t> user) {
    return stored_container(files, graphroot(files, user), id, user);
}

Description podman_container(StateFiles &files, const fs::path &storage, const std::string &id,
                             std::optional<uid_t> user) {
    const auto found = container_in_database(files, storage, id, user);

    return found && !found->name.empty() ? *found : stored_container(files, storage, id, user);
}

Description podman_container(StateFiles &files, const std::string &id, std::optional<uid_t> user) {
    return podman_container(files, graphroot(files, user), id, user);
}

std::optional<std::vector<PodmanContainer>> podman_containers(StateFiles &files,
                                                              const std::string &variable) {
    const fs::path folder = graphroot(files);
    std::vector<PodmanContainer> all;
    const auto read = [&variable](const std::string &text) {
        return read_environment(text, variable);
    };

    for (const char *driver : drivers) {
        std::error_code error;

        const fs::directory_iterator looked(folder / driver, error);
        if (error == std::errc::no_such_file_or_directory)
            continue;
        if (error)
            return std::nullopt;
        for (const char *file : {"containers.json", "volatile-containers.json"}) {
            for (const std::string &line : files.ask(folder / driver / file, read_storage)) {
                PodmanContainer container;
                std::istringstream(line) >> container.id >> container.name;
                const auto &lines =
                    files.ask(folder / driver / container.id / "userdata" / "config.json", read);

                if (!lines.empty())
                    container.has = lines.front() == "yes";
                all.push_back(std::move(container));
            }
        }
    }
    return all;
}

std::string read_environment(const std::string &text, const std::string &variable) {
    bool has = false;
    const bool is_json = for_each_json_string(text, [&](auto keys, const std::string &value) {
        has |= keys.size() == 3 && keys[0] == "process" && keys[1] == "env" &&
               value.starts_with(variable + "=");
    });

    return !is_json ? "" : has ? "yes\n" : "no\n";
}

std::unordered_map<std::string, std::string> crio_sandboxes(StateFiles &files) {
    std::unordered_map<std::string, std::string> sandboxes;

    for_each_list(files, graphroot(files), {}, [&](const StateFiles::Lines &lines) {
        for (const std::string &line : lines) {
            const auto space = line.find(' ');

            if (space == std::string::npos)
                continue;
            if (auto uid = sandbox_of_pod(line.substr(space + 1)))
                sandboxes[std::move(*uid)] = line.substr(0, space);
        }
        return false;
    });
    return sandboxes;
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
    struct Stored {
        std::string id;
        std::optional<std::string> name;
        std::string image;
    };

    std::map<std::string, Stored> elements; // the key is the element's number
    std::map<std::string, std::string> lines;
    std::string answer;

    for_each_json_string(text, [&](auto keys, const std::string &value) {
        if (keys.size() == 2 && keys[1] == "id")
            elements[keys[0]].id = value;
        else if (keys.size() == 3 && keys[1] == "names" && keys[2] == "0")
            elements[keys[0]].name = value;
        else if (keys.size() == 2 && keys[1] == "metadata")
            elements[keys[0]].image = clean_image(image_in(value));
    });
    for (const auto &[number, stored] : elements) {
        if (is_container_id(stored.id) && stored.name)
            lines[stored.id] = fmt::format("{} {}{}{}\n", stored.id, clean_name(*stored.name),
                                           stored.image.empty() ? "" : " ", stored.image);
    }
    for (const auto &[id, line] : lines)
        answer += line;
    return answer;
}

std::string read_storage_settings(const std::string &text) {
    std::istringstream lines(text);

    // graphroot = "/path"; other forms of TOML are not used there.
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
