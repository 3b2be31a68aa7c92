// SPDX-License-Identifier: GPL-2.0-or-later
/// Context of one command line: the module, the machine, the output.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/machine.h"
#include "lib/module/module.h"
#include "tool/output.h"

namespace umacct::tool {

class Terminal;

/// Takes a terminal's whole screen; null, like an empty function, where that can't be.
using OpenTerminal = std::function<std::unique_ptr<Terminal>()>;

/// The outside world; tests put their own here.
struct Surroundings {
    Connection::Connect connect;
    Output output;
    std::filesystem::path root = "/"; ///< the folder of /sys, /run, /lib and the like
    OpenTerminal open_terminal = {};
    Connection::Connect observe = {}; ///< source of figures without the module
    /// The same to a command that goes on for a while: for as long as it is kept
    Connection::Connect observe_meanwhile = {};
};

struct Session {
    explicit Session(const Surroundings &surroundings);

    Connection connection;
    Machine machine;
    Output output;
    OpenTerminal open_terminal;
    std::vector<std::string> command; ///< the words of a command line that are another program's

    /// Connects on first use. Throws Error: missing when neither the module nor the observer
    /// answers.
    Module &module() { return connection.module(); }

    /// Called by a command that shows what is allocated while it runs: where
    /// neither the module nor the observer counts, one does for as long as the command runs. Before
    /// the first module().
    void count_meanwhile() {
        if (observe_meanwhile)
            connection.set_otherwise(observe_meanwhile);
    }

    Connection::Connect observe_meanwhile;
};

/// The target's account. For a cgroup that the module keeps none for, as it never held
/// memory: an empty one, with what it inherits. Throws Error (permission) when the caller
/// may not see it.
Account read_account(Module &module, const Cgroups &cgroups, const Target &target);

/// The account's path, or its id where it can't be seen.
std::string path_of_account(Module &module, std::uint64_t id);

} // namespace umacct::tool
