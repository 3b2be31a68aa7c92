// SPDX-License-Identifier: GPL-2.0-or-later
/// What is set up on the machine outside of umacct, part by part, and undone without a trace.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <optional>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/host/replace_file.h"
#include "tool/arguments.h"
#include "tool/containers/runtimes.h"
#include "tool/nvml/place.h"
#include "tool/secure_boot/enroll.h"
#include "tool/secure_boot/state.h"
#include "tool/session.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

namespace fs = std::filesystem;

struct SetupOptions {
    std::optional<std::string> part;
    bool undo = false;
    bool print = false;
};

/// What setting up a part came to.
struct Made {
    std::vector<std::string> files;
    std::string then;                     ///< what to do after it
    std::vector<std::string> differences; ///< of files that are others', or would be made
    /// Containers that do not start any more; empty where it isn't known which they are.
    std::optional<std::vector<std::string>> stranded = std::vector<std::string>();
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

Made set_up_nvml(const fs::path &root) {
    const fs::path place = nvml::machine_place(root);
    const char *search = std::getenv("LD_LIBRARY_PATH");
    std::vector<std::string> made{place.string()};

    nvml::make_place(place, nvml::find_library(root),
                     nvml::find_real(root, search == nullptr ? "" : search));
    for (const Written &each : files_of_nvml(root)) {
        if (const int code = replace_file(each.file, each.text))
            throw Error(failure_of(code),
                        fmt::format("cannot write {}: {}", each.file.string(),
                                    std::generic_category().message(code)),
                        "it takes root");
        made.push_back(each.file.string());
    }
    return {.files = std::move(made),
            .then = "programs have it from the next login on; containers with --device "
                    "umacct/nvml=all",
            .differences = {}};
}

/// Whether it was there. Folders that are empty then go as well, but for profile.d, which every
/// system has; where the file wasn't there, they are somebody else's.
bool remove_file(const fs::path &file, const std::vector<fs::path> &folders) {
    std::error_code error;
    const bool was_there = fs::remove(file, error);

    if (error)
        throw Error(failure_of(error.value()),
                    fmt::format("cannot remove {}: {}", file.string(), error.message()),
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

// --- container runtimes ------------------------------------------------------------

/// What changes is shown first.
void show(const Session &session, const std::vector<containers::Edit> &edits, Made &made) {
    for (const containers::Edit &edit : edits) {
        if (!edit.changes())
            continue;
        made.differences.push_back(containers::difference(edit));
        if (!session.output.json)
            fmt::print(session.output.out, "{}", made.differences.back());
    }
}

/// Before it is done, so that somebody who only has it printed can tell.
void warn(const Session &session, const containers::Stranded &stranded, Made &made) {
    if (stranded.without.empty())
        return;
    made.stranded = stranded.containers;
    if (made.stranded)
        std::ranges::copy(stranded.doubtful, std::back_inserter(*made.stranded));
    if (session.output.json || (made.stranded && made.stranded->empty()))
        return;
    if (!stranded.containers)
        fmt::print(session.output.out,
                   "containers that were created with {} do not start without it; which these are "
                   "is not known, as {}'s folder of containers can't be read\n",
                   stranded.without, stranded.maker);
    else
        for (const std::string &each : *stranded.containers)
            fmt::print(session.output.out,
                       "container {} was created with {} and does not start without it\n", each,
                       stranded.without);
    for (const std::string &each : stranded.doubtful)
        fmt::print(session.output.out,
                   "container {} may have been created with {}: what {} wrote down about it can't "
                   "be read\n",
                   each, stranded.without, stranded.maker);
    fmt::print(session.output.out, "create such containers again: {}\n", stranded.remedy);
}

Made set_up_runtime(const Session &session, const containers::Runtime &runtime,
                    const SetupOptions &options) {
    const fs::path &root = session.machine.root();
    const std::vector<containers::Edit> edits =
        options.undo ? containers::to_undo(runtime, root)
                     : containers::to_set_up(
                           runtime, {.root = root, .memory = session.machine.meminfo().total()});
    Made made;

    show(session, edits, made);
    if (options.undo && runtime.stranded != nullptr)
        warn(session, runtime.stranded(root, edits), made);
    if (options.print)
        return made;
    for (const containers::Edit &edit : edits) {
        if (!options.undo || edit.changes())
            made.files.push_back(edit.file.string());
    }
    if (options.undo)
        containers::undo(runtime, root, edits);
    else
        containers::set_up(runtime, root, edits);
    made.then = !options.undo ? runtime.then : made.files.empty() ? "" : runtime.then_undone;
    return made;
}

// --- all parts ---------------------------------------------------------------------

struct Part {
    const char *name;
    const char *summary;
    bool (*is_set_up)(const fs::path &root);
    Made (*set_up)(const fs::path &root);
    std::vector<std::string> (*undo)(const fs::path &root); ///< what it removed
};

constexpr std::array parts{
    Part{"nvml", "NVML's memory and processes, for nvidia-smi, nvtop and the like",
         [](const fs::path &root) { return nvml::is_whole(nvml::machine_place(root)); },
         set_up_nvml, undo_nvml},
    Part{"secure-boot", "a key that the kernel trusts, so that it loads the module",
         [](const fs::path &root) {
             const secure_boot::State state = secure_boot::read_state(root);

             return !state.strict() || state.enrolled.value_or(false);
         },
         [](const fs::path &root) {
             secure_boot::Queued queued = secure_boot::enroll(root);

             return Made{.files = std::move(queued.files),
                         .then = std::move(queued.then),
                         .differences = {}};
         },
         secure_boot::revoke},
};

int list_parts(const Session &session) {
    const fs::path &root = session.machine.root();
    Json rows = Json::array();
    const auto add = [&](const char *name, const char *summary, bool is_set_up, bool was_set_up) {
        if (session.output.json)
            rows.push_back({{"part", name}, {"set_up", is_set_up}});
        else
            fmt::print(session.output.out, "{}: {}; {}\n", name,
                       is_set_up    ? "set up"
                       : was_set_up ? "to be set up again, as its files were changed"
                                    : "not set up",
                       summary);
    };

    for (const Part &part : parts)
        add(part.name, part.summary, part.is_set_up(root), false);
    for (const containers::Runtime &runtime : containers::all_runtimes())
        add(runtime.name, runtime.summary, containers::is_set_up(runtime, root),
            containers::was_set_up(runtime, root));
    if (session.output.json)
        session.output.document({{"parts", rows},
                                 {"files", Json::array()},
                                 {"then", nullptr},
                                 {"differences", Json::array()},
                                 {"stranded", Json::array()}});
    return 0;
}

int report(const Session &session, const SetupOptions &options, const Made &made, bool is_set_up) {
    const char *done = !options.undo                             ? "made"
                       : containers::find_runtime(*options.part) ? "put back"
                                                                 : "removed";

    if (session.output.json) {
        Json document{{"parts", {{{"part", *options.part}, {"set_up", is_set_up}}}},
                      {"files", made.files},
                      {"then", made.then.empty() ? Json(nullptr) : Json(made.then)},
                      {"differences", made.differences}};

        if (made.stranded)
            document["stranded"] = *made.stranded;
        session.output.document(document);
        return 0;
    }
    if (options.print)
        return 0;
    for (const std::string &file : made.files)
        fmt::print(session.output.out, "{} {}\n", done, file);
    if (options.undo && made.files.empty())
        fmt::print(session.output.out, "{} was not set up\n", *options.part);
    else if (!made.then.empty())
        fmt::print(session.output.out, "{}\n", made.then);
    return 0;
}

int setup(const Session &session, const SetupOptions &options) {
    const fs::path &root = session.machine.root();

    if (!options.part && (options.undo || options.print))
        throw Error(Failure::usage, "PART is missing: what is it about?",
                    "'umacct setup' lists what there is");
    if (!options.part)
        return list_parts(session);
    if (const auto *runtime = containers::find_runtime(*options.part)) {
        const Made made = set_up_runtime(session, *runtime, options);

        return report(session, options, made, containers::is_set_up(*runtime, root));
    }

    const auto *part = std::ranges::find(parts, *options.part, &Part::name);
    if (part == parts.end())
        throw Error(Failure::usage, fmt::format("there is nothing called '{}'", *options.part),
                    "'umacct setup' lists what there is");
    if (options.print)
        throw Error(Failure::usage, fmt::format("{} can't be printed", part->name),
                    "--print is for container runtimes");
    const Made made = options.undo ? Made{.files = part->undo(root), .then = "", .differences = {}}
                                   : part->set_up(root);
    return report(session, options, made, part->is_set_up(root));
}

} // namespace

Action add_setup(CLI::App &verb) {
    auto options = std::make_shared<SetupOptions>();

    verb.add_option("PART", options->part,
                    "what: nvml, secure-boot, podman, crio, docker, containerd or cdi; without it, "
                    "list all");
    verb.add_flag("--print", options->print,
                  "for a container runtime: only print what would change");
    verb.add_flag("--undo", options->undo, "remove what was made for it");
    add_examples(verb, "umacct setup\n"
                       "umacct setup nvml\n"
                       "umacct setup secure-boot\n"
                       "umacct setup podman --print\n"
                       "umacct setup nvml --undo");
    return [options](Session &session) { return setup(session, *options); };
}

} // namespace umacct::tool
