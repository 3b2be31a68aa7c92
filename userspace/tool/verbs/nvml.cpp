// SPDX-License-Identifier: GPL-2.0-or-later
#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <vector>

#include <fmt/ostream.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/text.h"
#include "tool/exit_code.h"
#include "tool/nvml/place.h"
#include "tool/session.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

namespace fs = std::filesystem;

constexpr const char *variable = "LD_LIBRARY_PATH";

std::string environment(const char *name) {
    const char *value = std::getenv(name);

    return value == nullptr ? "" : value;
}

/// The machine's, where it was set up; else one of the caller's own, until it logs out.
fs::path place_for_caller(const fs::path &root, const std::string &search) {
    fs::path of_all = nvml::machine_place(root);

    if (nvml::is_whole(of_all))
        return of_all;

    const std::string own =
        geteuid() == 0 ? (root / "run").string() : environment("XDG_RUNTIME_DIR");
    if (own.empty())
        throw Error(Failure::failed, "there is no folder for the library: no XDG_RUNTIME_DIR",
                    "'umacct setup nvml', as root, makes one for all users");
    fs::path place = fs::path(own) / "umacct/nvml";
    nvml::make_place(place, nvml::find_library(root), nvml::find_real(root, search));
    return place;
}

} // namespace

void use_nvml(const Machine &machine) {
    const std::string search = environment(variable);

    setenv(variable, nvml::search_path(place_for_caller(machine.root(), search), search).c_str(),
           1);
}

int run_with_nvml(const Session &session) {
    const std::vector<std::string> &words = session.command;
    std::vector<char *> argv;

    argv.reserve(words.size() + 1);
    use_nvml(session.machine);
    for (const std::string &word : words)
        argv.push_back(const_cast<char *>(word.c_str()));
    argv.push_back(nullptr);
    session.output.flush();
    execvp(argv.front(), argv.data());

    const int code = errno;
    fmt::print(session.output.err, "umacct: {}: {}\n", printable(words.front()),
               std::generic_category().message(code));
    return code == ENOENT ? exit_not_found : exit_not_executable;
}

} // namespace umacct::tool
