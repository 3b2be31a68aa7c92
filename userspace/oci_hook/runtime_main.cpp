// SPDX-License-Identifier: GPL-2.0-or-later
/// umacct-runtime: the container runtime in Docker's settings, as it has no folder of hooks. It
/// puts umacct-hook into a container's configuration, and is the real runtime from then on.
#include <array>
#include <cerrno>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "lib/containers/inject.h"
#include "lib/error.h"
#include "lib/host/replace_file.h"
#include "oci_hook/runtime_call.h"
#include "oci_hook/state.h"

namespace {

using umacct::Error;
using umacct::Failure;
using umacct::oci_hook::RuntimeCall;

/// Path of a program beside this one.
std::string hook_path() {
    std::error_code error;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", error);

    if (error)
        throw Error(Failure::failed,
                    fmt::format("cannot read /proc/self/exe: {}", error.message()));
    return (self.parent_path() / "umacct-hook").string();
}

void add_hook(const RuntimeCall &call) {
    if (!call.bundle)
        return;

    const auto text = umacct::containers::with_hook(umacct::oci_hook::read_config(*call.bundle),
                                                    hook_path(), call.instead_of_nvidia);
    if (!text)
        return;
    if (const int code = umacct::replace_file_of_others(*call.bundle / "config.json", *text))
        throw Error(umacct::failure_of(code),
                    fmt::format("cannot write {}/config.json: {}", call.bundle->string(),
                                std::generic_category().message(code)));
}

[[noreturn]] void become_runtime(const RuntimeCall &call) {
    std::vector<std::string> words{call.runtime};
    std::vector<char *> pointers;

    words.insert(words.end(), call.arguments.begin(), call.arguments.end());
    pointers.reserve(words.size() + 1);
    for (std::string &word : words)
        pointers.push_back(word.data());
    pointers.push_back(nullptr);
    execvp(pointers.front(), pointers.data());
    throw Error(Failure::missing, fmt::format("cannot run the runtime {}: {}", call.runtime,
                                              std::generic_category().message(errno)));
}

/// The runtime's caller looks for its message in that file.
void tell(const RuntimeCall &call, const std::string &what) {
    std::array<char, 32> now{};
    const std::time_t seconds = std::time(nullptr);
    std::tm parts{};

    std::cerr << what << '\n';
    if (!call.log)
        return;
    gmtime_r(&seconds, &parts);
    std::strftime(now.data(), now.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
    std::ofstream(*call.log, std::ios::app)
        << nlohmann::ordered_json{{"level", "error"}, {"msg", what}, {"time", now.data()}}.dump(
               -1, ' ', true, nlohmann::ordered_json::error_handler_t::replace)
        << '\n';
}

} // namespace

int main(int argc, char **argv) {
    RuntimeCall call;

    if (argc == 2 && std::string(argv[1]) == "--umacct-version") {
        std::cout << "umacct-runtime " UMACCT_VERSION "\n";
        return 0;
    }
    try {
        call = umacct::oci_hook::read_call({argv + 1, argv + argc});
        add_hook(call);
        become_runtime(call);
    } catch (const Error &error) {
        tell(call, fmt::format("umacct-runtime: {}{}{}", error.what(),
                               error.hint().empty() ? "" : "; ", error.hint()));
        return static_cast<int>(error.failure());
    } catch (const std::exception &error) {
        tell(call, fmt::format("umacct-runtime: {}", error.what()));
        return static_cast<int>(Failure::failed);
    }
}
