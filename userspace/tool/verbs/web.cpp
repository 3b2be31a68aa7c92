// SPDX-License-Identifier: GPL-2.0-or-later
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "lib/error.h"
#include "tool/arguments.h"
#include "tool/session.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

constexpr const char *exporter = "umacct-exporter";

/// Becomes umacct-exporter, which serves the page until it is ended.
int web(Session &session, const std::optional<std::uint16_t> &port) {
    std::error_code error;
    const auto own = std::filesystem::read_symlink("/proc/self/exe", error);
    const std::string beside = own.parent_path().parent_path() / "sbin" / exporter;
    std::vector<std::string> words{exporter, "--web"};
    std::vector<char *> argv;

    if (port)
        words.insert(words.end(), {"--port", std::to_string(*port)});
    argv.reserve(words.size() + 1);
    for (std::string &word : words)
        argv.push_back(word.data());
    argv.push_back(nullptr);
    session.output.flush();
    execv(beside.c_str(), argv.data());
    execvp(exporter, argv.data());
    throw Error(
        errno == ENOENT ? Failure::missing : Failure::failed,
        fmt::format("cannot start {}: {}", exporter, std::generic_category().message(errno)),
        "it comes with umacct, unless that was built without it");
}

} // namespace

Action add_web(CLI::App &verb) {
    auto port = std::make_shared<std::optional<std::uint16_t>>();

    verb.add_option("-p,--port", *port, "at that port of 127.0.0.1; default: 9752, or a free one")
        ->type_name("PORT")
        ->check(CLI::Range(1, 65535));
    add_examples(verb,
                 "sudo umacct web    prints the dashboard's address, and serves it until Ctrl-C");
    return [port](Session &session) { return web(session, *port); };
}

} // namespace umacct::tool
