// SPDX-License-Identifier: GPL-2.0-or-later
/// What every verb works with: the module, the cgroups, where to print.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "lib/machine.h"
#include "lib/module/connection.h"
#include "tool/top/terminal.h"

namespace umacct::tool {

/// The outside world; tests put their own here.
struct Surroundings {
    std::function<std::unique_ptr<Transport>()> connect;
    std::filesystem::path proc;
    std::ostream &out;
    std::ostream &err;
    bool colour = false;              ///< out is a terminal that may show colours
    std::filesystem::path root = "/"; ///< where /sys, /run, /lib and the like are
    bool terminal = false;            ///< out is a terminal
    /// Takes its whole screen; null, like an empty function, where that can't be.
    std::function<std::unique_ptr<Terminal>()> open_terminal = {};
};

class Context {
public:
    explicit Context(Surroundings surroundings);

    /// Connects on first use. Throws Error: missing when the module isn't loaded.
    Module &module() { return connection_.module(); }

    /// Lets module() connect anew: what was connected to may be gone.
    void disconnect() { connection_.reset(); }

    const Cgroups &cgroups() const { return machine_.cgroups(); }

    /// Whom cgroups are for.
    const Owners &owners() const { return machine_.owners(); }

    /// Reads the names anew, for a verb that runs for long.
    void refresh_owners() { machine_.refresh_owners(); }

    Target resolve(const std::string &target) const { return machine_.resolve(target); }

    Meminfo meminfo() const { return machine_.meminfo(); }

    const std::filesystem::path &root() const { return machine_.root(); }

    /// Where procfs is.
    const std::filesystem::path &proc() const { return machine_.proc(); }

    std::ostream &out() { return surroundings_.out; }

    std::ostream &err() { return surroundings_.err; }

    bool colour() const { return surroundings_.colour; }

    bool out_is_terminal() const { return surroundings_.terminal; }

    /// Null where there is no terminal with a screen.
    std::unique_ptr<Terminal> open_terminal() const;

    /// Prints to err what makes the figures wrong or incomplete.
    void warn_if_degraded(const Status &status);

    bool json = false;                ///< --json
    std::vector<std::string> command; ///< words that are another program's: of "run"
    int exit_code = 0;                ///< of a verb that neither simply succeeds nor throws

private:
    Surroundings surroundings_;
    Machine machine_;
    Connection connection_;
};

} // namespace umacct::tool
