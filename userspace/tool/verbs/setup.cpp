// SPDX-License-Identifier: GPL-2.0-or-later
/// Sets up parts of the machine outside of umacct, and undoes that without a trace.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/ostream.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "lib/containers/runtimes.h"
#include "lib/error.h"
#include "lib/hints.h"
#include "lib/host/program.h"
#include "lib/host/replace_file.h"
#include "tool/arguments.h"
#include "tool/nvml/place.h"
#include "tool/secure_boot/enroll.h"
#include "tool/secure_boot/state.h"
#include "tool/session.h"
#include "tool/spark/spark.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

namespace fs = std::filesystem;

struct SetupOptions {
    std::optional<std::string> part;
    bool undo = false;
    bool print = false;
    bool yes = false; ///< assume yes to each question
    ObserverOptions observer;
};

constexpr const char *observer_part = "observer";

/// The result of setting up a part.
struct Made {
    std::vector<std::string> files;
    std::string then; ///< next step
    std::vector<std::string>
        differences; ///< diffs of files that belong to others, or would be made
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

/// LD_LIBRARY_PATH of images with CUDA, which a container's own replaces.
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

/// Files for logins, for programs that systemd starts for a user, and for containers. The linker's
/// own configuration isn't touched: who has another LD_LIBRARY_PATH has the real library.
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
                        run_as_root);
        made.push_back(each.file.string());
    }
    return {.files = std::move(made),
            .then = "programs have it from the next login on; containers with --device "
                    "umacct/nvml=all",
            .differences = {}};
}

/// Whether it was there. Folders that are empty then go as well, but for profile.d, which every
/// system has; where the file wasn't there, they are another program's.
bool remove_file(const fs::path &file, const std::vector<fs::path> &folders) {
    std::error_code error;
    const bool was_there = fs::remove(file, error);

    if (error)
        throw Error(failure_of(error.value()),
                    fmt::format("cannot remove {}: {}", file.string(), error.message()),
                    run_as_root);
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

/// The first lines of a text; the list of devices alone has a thousand.
std::string beginning(const std::string &text) {
    constexpr std::ptrdiff_t most = 40;
    auto end = text.begin();

    for (std::ptrdiff_t lines = 0; lines < most && end != text.end(); lines++) {
        end = std::find(end, text.end(), '\n');
        if (end != text.end())
            ++end;
    }
    const auto left = std::count(end, text.end(), '\n');
    return std::string(text.begin(), end) +
           (left > 0 ? fmt::format(" ... and {} lines more; --json has them\n", left) : "");
}

/// Prints each change before it is made.
void show(const Session &session, const std::vector<containers::Edit> &edits, Made &made) {
    for (const containers::Edit &edit : edits) {
        if (!edit.changes())
            continue;
        made.differences.push_back(containers::difference(edit));
        if (!session.output.json)
            fmt::print(session.output.out, "{}", beginning(made.differences.back()));
    }
}

/// Warns before the change, so that --print warns, too.
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

// --- spark -------------------------------------------------------------------------

/// Asks about each proposal. Throws Error (usage) without a terminal.
void ask(const Session &session, std::vector<spark::Proposal> &proposals) {
    if (isatty(STDIN_FILENO) == 0)
        throw Error(Failure::usage, "cannot ask: the standard input is not a terminal",
                    "--yes takes every proposal, --print only shows what would change");
    for (spark::Proposal &each : proposals) {
        std::string answer;

        fmt::print(session.output.out, "{}? [Y/n] ", each.question);
        session.output.out.flush();
        if (!std::getline(std::cin, answer))
            throw Error(Failure::failed, "no answer: nothing was changed");
        each.taken = answer.empty() || answer.front() == 'y' || answer.front() == 'Y';
    }
}

/// Has systemd read what changed, where systemd runs this machine.
std::string restart_umacctd(const fs::path &root) {
    std::error_code ignored;

    if (!fs::exists(root / "run/systemd/system", ignored))
        return "restart umacctd, which then does what its policy says";
    run_program({"systemctl", "daemon-reload"}, "systemd");
    run_program({"systemctl", "enable", "umacctd"}, "systemd");
    run_program({"systemctl", "restart", "umacctd"}, "systemd");
    return "umacctd was restarted, and does what its policy says; 'umacct config check' and "
           "'journalctl -u umacctd' show it";
}

/// The next step towards loading the module; empty if there is none.
std::string what_is_next(const fs::path &root) {
    const secure_boot::State state = secure_boot::read_state(root);

    if (!state.strict() || state.enrolled.value_or(false))
        return "";
    return fmt::format("{}: the reserve and the view need the module, and so do limits: {}",
                       state.text(), state.how_to_enroll());
}

Made set_up_spark(const Session &session, const SetupOptions &options) {
    const fs::path &root = session.machine.root();
    containers::Record record(root, spark::part);
    std::vector<containers::Edit> edits;
    Made made;

    if (options.undo) {
        edits = record.undoing(nullptr);
    } else if (record.is_there()) {
        throw Error(Failure::failed, "spark is set up already",
                    "'umacct setup spark --undo' takes it back; 'umacct config check' and "
                    "/etc/umacct.toml.d/spark.toml have what it is");
    } else {
        auto proposals = spark::propose(root, session.machine.meminfo().total());

        if (!options.yes && !options.print)
            ask(session, proposals);
        edits = spark::edits(root, proposals);
    }
    show(session, edits, made);
    if (options.print)
        return made;
    for (const containers::Edit &edit : edits)
        made.files.push_back(edit.file.string());
    if (options.undo) {
        if (record.is_there())
            record.forget(edits);
    } else if (!edits.empty()) {
        record.make(edits, nullptr);
    }
    std::vector<std::string> then;
    if (!edits.empty())
        then.push_back(restart_umacctd(root));
    else if (!options.undo)
        then.emplace_back("nothing was changed: the policy has all of it, or nothing was chosen");
    if (const std::string next = options.undo ? "" : what_is_next(root); !next.empty())
        then.push_back(next);
    if (!edits.empty() && !options.undo)
        then.emplace_back("to undo all of it: umacct setup spark --undo");
    made.then = fmt::format("{}", fmt::join(then, "\n"));
    return made;
}

// --- all parts ---------------------------------------------------------------------

struct SetupPart {
    const char *name;
    const char *summary;
    bool (*is_needed)(const fs::path &root);
    bool (*is_set_up)(const fs::path &root);
    Made (*set_up)(const fs::path &root);
    std::vector<std::string> (*undo)(const fs::path &root); ///< removed files
};

constexpr std::array parts{
    SetupPart{"nvml", "NVML's memory and processes, for nvidia-smi, nvtop and the like",
              [](const fs::path &) { return true; },
              [](const fs::path &root) { return nvml::is_whole(nvml::machine_place(root)); },
              set_up_nvml, undo_nvml},
    SetupPart{
        "secure-boot", "a key that the kernel trusts, so that it loads the module",
        [](const fs::path &root) { return secure_boot::read_state(root).strict(); },
        [](const fs::path &root) { return secure_boot::read_state(root).enrolled.value_or(false); },
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
    const auto add = [&](const char *name, const char *summary, bool is_set_up, bool was_set_up,
                         bool is_needed = true) {
        if (session.output.json)
            rows.push_back({{"part", name}, {"set_up", is_set_up}});
        else
            fmt::print(session.output.out, "{}: {}; {}\n", name,
                       is_set_up    ? "set up"
                       : !is_needed ? "not needed on this machine"
                       : was_set_up ? "to be set up again, as its files were changed"
                                    : "not set up",
                       summary);
    };

    for (const SetupPart &part : parts)
        add(part.name, part.summary, part.is_set_up(root), false, part.is_needed(root));
    add(spark::part, "a first policy: view, reserve, headroom, and the guard as a dry run",
        containers::Record::is_there(root, spark::part), false);
    add(observer_part, "counting by BPF where the kernel module isn't loaded",
        pinned_observer() != nullptr, false);
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
    const bool has_record =
        *options.part == spark::part || containers::find_runtime(*options.part) != nullptr;
    const char *done = !options.undo ? "made" : has_record ? "put back" : "removed";

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

int setup(Session &session, const SetupOptions &options) {
    const fs::path &root = session.machine.root();

    if (!options.part && (options.undo || options.print))
        throw Error(Failure::usage, "PART is missing: what is it about?",
                    "'umacct setup' lists what there is");
    if (!options.part)
        return list_parts(session);
    if (*options.part != observer_part && !options.observer.state.empty())
        throw Error(Failure::usage, fmt::format("{} takes no STATE", *options.part));
    if (*options.part == observer_part) {
        ObserverOptions observer = options.observer;

        if (options.undo)
            observer.state = "off";
        return control_observer(session, observer);
    }
    if (const auto *runtime = containers::find_runtime(*options.part)) {
        const Made made = set_up_runtime(session, *runtime, options);

        return report(session, options, made, containers::is_set_up(*runtime, root));
    }

    if (*options.part == spark::part) {
        const Made made = set_up_spark(session, options);

        return report(session, options, made, containers::Record::is_there(root, spark::part));
    }

    const auto *part = std::ranges::find(parts, *options.part, &SetupPart::name);
    if (part == parts.end())
        throw Error(Failure::usage, fmt::format("there is nothing called '{}'", *options.part),
                    "'umacct setup' lists what there is");
    if (options.print)
        throw Error(Failure::usage, fmt::format("{} can't be printed", part->name),
                    "--print is for spark and container runtimes");
    const Made made = options.undo ? Made{.files = part->undo(root), .then = "", .differences = {}}
                                   : part->set_up(root);
    return report(session, options, made, part->is_set_up(root));
}

} // namespace

Action add_setup(CLI::App &verb) {
    auto options = std::make_shared<SetupOptions>();

    verb.add_option(
        "PART", options->part,
        "what: spark, nvml, secure-boot, observer, podman, crio, docker, containerd, k3s, rke2 or "
        "cdi; without it, list all");
    verb.add_option("STATE", options->observer.state,
                    "of the observer: on: begin to count; off: end, and forget what was counted; "
                    "auto: on where the module isn't loaded and the policy doesn't say otherwise; "
                    "without it, print it")
        ->check(CLI::IsMember({"on", "off", "auto"}));
    verb.add_flag("--print", options->print,
                  "for spark and a container runtime: only print what would change");
    verb.add_flag("--yes", options->yes, "for spark: take every proposal, ask nothing");
    verb.add_flag("--undo", options->undo, "remove what was made for it");
    verb.add_option("-r,--records", options->observer.records,
                    "for the observer: allocations that live at once and are known; default: "
                    "1048576")
        ->check(CLI::Range(1U, usual_records * 16));
    add_examples(verb, "umacct setup\n"
                       "umacct setup spark --print\n"
                       "umacct setup nvml\n"
                       "umacct setup secure-boot\n"
                       "umacct setup observer on\n"
                       "umacct setup podman --print\n"
                       "umacct setup nvml --undo");
    return [options](Session &session) { return setup(session, *options); };
}

} // namespace umacct::tool
