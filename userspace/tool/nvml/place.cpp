// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/nvml/place.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <system_error>

#include <fmt/format.h>

#include "lib/error.h"

namespace umacct::nvml {

namespace fs = std::filesystem;

namespace {

constexpr const char *soname = "libnvidia-ml.so.1";
constexpr const char *real_name = "libumacct-nvml-real.so.1";

/// Some programs look for the name without a number first.
constexpr std::array names_of_ours{soname, "libnvidia-ml.so"};

bool is_file(const fs::path &path) {
    std::error_code ignored;

    return fs::is_regular_file(path, ignored); // or a link to one
}

/// A folder of ours, where the real one isn't what it has under that name.
bool is_place(const fs::path &folder) {
    std::error_code ignored;
    const fs::file_status status = fs::symlink_status(folder / real_name, ignored);

    return fs::exists(status) || folder.string().ends_with("/umacct/nvml");
}

/// Its path from the root.
std::vector<fs::path> usual_folders() {
    std::vector<fs::path> folders;

    for (const char *lib : {"usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu"}) {
        folders.emplace_back(lib);
        folders.push_back(folders.back() / "nvidia/current");
    }
    for (const char *lib : {"usr/lib64", "usr/lib", "usr/lib/wsl/lib", "usr/local/nvidia/lib64",
                            "usr/local/nvidia/lib", "run/opengl-driver/lib"})
        folders.emplace_back(lib);
    return folders;
}

void link_to(const fs::path &link, const fs::path &target) {
    std::error_code error;

    if (fs::read_symlink(link, error) == target)
        return;

    // A program that is just being started has the old one, or the new one.
    fs::path next = link;
    next += ".new";
    fs::remove(next, error);
    fs::create_symlink(target, next, error);
    if (!error)
        fs::rename(next, link, error);
    if (error)
        throw Error(failure_of(error.value()),
                    fmt::format("cannot make {}: {}", link.string(), error.message()));
}

} // namespace

fs::path find_library(const fs::path &root) {
    for (const char *folder : {"usr/lib/umacct/nvml", "usr/local/lib/umacct/nvml"}) {
        if (is_file(root / folder / soname))
            return root / folder / soname;
    }
    throw Error(Failure::missing, "umacct's library for NVML is not installed",
                "it is in /usr/lib/umacct/nvml, and comes with the tool's package");
}

fs::path find_real(const fs::path &root, const std::string &search) {
    std::vector<fs::path> folders;
    std::istringstream words(search);

    for (std::string word; std::getline(words, word, ':');) {
        if (word.starts_with('/'))
            folders.emplace_back(word);
    }
    for (const fs::path &folder : usual_folders())
        folders.push_back(root / folder);
    for (const fs::path &folder : folders) {
        if (!is_place(folder) && is_file(folder / soname))
            return folder / soname;
    }
    throw Error(Failure::missing, fmt::format("there is no {} of NVIDIA's", soname),
                "it comes with nvidia-smi; where it lies in a folder of its own, have that in "
                "LD_LIBRARY_PATH");
}

fs::path machine_place(const fs::path &root) {
    return root / "var/lib/umacct/nvml";
}

std::vector<fs::path> links_of(const fs::path &place) {
    std::vector<fs::path> links;

    links.reserve(names_of_ours.size() + 1);
    for (const char *name : names_of_ours)
        links.push_back(place / name);
    links.push_back(place / real_name);
    return links;
}

bool is_whole(const fs::path &place) {
    return std::ranges::all_of(links_of(place), is_file);
}

void make_place(const fs::path &place, const fs::path &library, const fs::path &real) {
    std::error_code error;

    fs::create_directories(place, error);
    if (error)
        throw Error(failure_of(error.value()),
                    fmt::format("cannot make {}: {}", place.string(), error.message()));
    // Last comes the name that is looked for.
    link_to(place / real_name, real);
    for (const char *name : names_of_ours)
        link_to(place / name, library);
}

std::string search_path(const fs::path &place, const std::string &before) {
    return before.empty() ? place.string() : place.string() + ":" + before;
}

} // namespace umacct::nvml
