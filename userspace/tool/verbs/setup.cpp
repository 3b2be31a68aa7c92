// SPDX-License-Identifier: GPL-2.0-or-later
/// What is set up on the machine outside of umacct, part by part, and undone without a trace.
#include <array>
#include <cstdlib>
#include <memory>
#include <optional>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/host/replace_file.h"
#include "tool/arguments.h"
#include "tool/nvml/place.h"
#include "tool/session.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

namespace fs = std::filesystem;

struct Options {
    std::optional<std::string> part;
    bool undo = false;
};

/// A file of a part's, whole.
struct Written {
    fs::path file;
    std::string text;
};

// --- nvml --------------------------------------------------------------------------

constexpr const char *by_whom =
    "# By 'umacct setup nvml'; 'umacct setup nvml --undo' removes it.\n";

/// What images with CUDA in them have in LD_LIBRARY_PATH: a container's takes its place.
constexpr const char *usual_in_images = "/usr/local/nvidia/lib:/usr/local/nvidia/lib64";

/// The real library is mounted by the link's name, so that it is the one of the driver that
/// runs when the container is started.
Json cdi_of(const fs::path &place) {
    Json mounts = Json::array();

    for (const fs::path &link : nvml::links_of(place))
        mounts.push_back({{"hostPath", link.string()},
                          {"containerPath", link.string()},
                          {"options", {"ro", "nosuid", "nodev", "bind"}}});
    return {{"cdiVersion", "0.5.0"},
            {"kind", "umacct/nvml"},
            {"devices",
             {{{"name", "all"},
               {"containerEdits",
                {{"env", {"LD_LIBRARY_PATH=" + nvml::search_path(place, usual_in_images)}},
                 {"mounts", mounts}}}}}}};
}

/// For logins, for what systemd starts for a user, and for containers. The linker's own
/// configuration isn't touched: who has another LD_LIBRARY_PATH has the real library.
std::vector<Written> files_of_nvml(const fs::path &root) {
    const fs::path place = nvml::machine_place(root);
    const std::string path = place.string();

    return {{root / "etc/profile.d/umacct-nvml.sh",
             fmt::format("{}case :${{LD_LIBRARY_PATH-}}: in\n*:{}:*) ;;\n"
                         "*) export LD_LIBRARY_PATH={}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}} ;;\n"
                         "esac\n",
                         by_whom, path, path)},
            {root / "etc/environment.d/60-umacct-nvml.conf",
             fmt::format("{}LD_LIBRARY_PATH={}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}\n", by_whom,
                         path)},
            {root / "etc/cdi/umacct-nvml.json", cdi_of(place).dump(2) + "\n"}};
}

std::vector<std::string> set_up_nvml(const fs::path &root) {
    const fs::path place = nvml::machine_place(root);
    const char *search = std::getenv("LD_LIBRARY_PATH");
    std::vector<std::string> made{place.string()};

    nvml::make_place(place, nvml::find_library(root),
                     nvml::find_real(root, search == nullptr ? "" : search));
    for (const Written &each : files_of_nvml(root)) {
        if (const int code = replace_file(each.file, each.text))
            throw Error(failure_of(code), fmt::format("{} can't be written", each.file.string()),
                        "it takes root");
        made.push_back(each.file.string());
    }
    return made;
}

/// Whether it was there. Folders that are empty then go as well, but for profile.d, which every
/// system has; where the file wasn't there, they are somebody else's.
bool remove_file(const fs::path &file, const std::vector<fs::path> &folders) {
    std::error_code error;
    const bool was_there = fs::remove(file, error);

    if (error)
        throw Error(failure_of(error.value()),
                    fmt::format("{} can't be removed: {}", file.string(), error.message()),
                    "it takes root");
    for (const fs::path &folder : folders)
        if (was_there && folder.filename() != "profile.d")
            fs::remove(folder, error); // one that isn't empty stays
    return was_there;
}

std::vector<std::string> undo_nvml(const fs::path &root) {
    const fs::path place = nvml::machine_place(root);
    std::vector<std::string> removed;

    for (const Written &each : files_of_nvml(root)) {
        if (remove_file(each.file, {each.file.parent_path()}))
            removed.push_back(each.file.string());
    }
    bool was_there = false;
    for (const fs::path &link : nvml::links_of(place))
        was_there |= remove_file(link, {place, place.parent_path()}); // the last empties it
    if (was_there)
        removed.push_back(place.string());
    return removed;
}

// --- all parts ---------------------------------------------------------------------

struct Part {
    const char *name;
    const char *summary;
    bool (*is_set_up)(const fs::path &root);
    std::vector<std::string> (*set_up)(const fs::path &root); ///< which files it made
    std::vector<std::string> (*undo)(const fs::path &root);   ///< which it removed
    const char *then;                                         ///< what to do after it
};

constexpr std::array parts{
    Part{"nvml", "NVML's memory and processes, for nvidia-smi, nvtop and the like",
         [](const fs::path &root) { return nvml::is_whole(nvml::machine_place(root)); },
         set_up_nvml, undo_nvml,
         "programs have it from the next login on; containers with --device umacct/nvml=all"},
};

int list_parts(const Session &session) {
    const fs::path &root = session.machine.root();
    Json rows = Json::array();

    for (const Part &part : parts) {
        if (session.output.json)
            rows.push_back({{"part", part.name}, {"set_up", part.is_set_up(root)}});
        else
            fmt::print(session.output.out, "{}: {}; {}\n", part.name,
                       part.is_set_up(root) ? "set up" : "not set up", part.summary);
    }
    if (session.output.json)
        session.output.document({{"parts", rows}, {"files", Json::array()}});
    return 0;
}

int setup(const Session &session, const Options &options) {
    if (!options.part)
        return list_parts(session);

    const auto *part = std::ranges::find(parts, *options.part, &Part::name);
    if (part == parts.end())
        throw Error(Failure::usage, fmt::format("there is nothing called '{}'", *options.part),
                    "'umacct setup' lists what there is");

    const fs::path &root = session.machine.root();
    const std::vector<std::string> files = (options.undo ? part->undo : part->set_up)(root);
    if (session.output.json) {
        session.output.document(
            {{"parts", {{{"part", part->name}, {"set_up", part->is_set_up(root)}}}},
             {"files", files}});
        return 0;
    }
    for (const std::string &file : files)
        fmt::print(session.output.out, "{} {}\n", options.undo ? "removed" : "made", file);
    if (options.undo && files.empty())
        fmt::print(session.output.out, "{} was not set up\n", part->name);
    else if (!options.undo)
        fmt::print(session.output.out, "{}\n", part->then);
    return 0;
}

} // namespace

Action add_setup(CLI::App &verb) {
    auto options = std::make_shared<Options>();

    verb.add_option("PART", options->part, "what: nvml; nothing to list all");
    verb.add_flag("--undo", options->undo, "remove what was made for it");
    add_examples(verb, "umacct setup\n"
                       "umacct setup nvml\n"
                       "umacct setup nvml --undo");
    return [options](Session &session) { return setup(session, *options); };
}

} // namespace umacct::tool
