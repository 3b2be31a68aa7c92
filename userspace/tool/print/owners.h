// SPDX-License-Identifier: GPL-2.0-or-later
/// The machine's memory by owner: the beginning of every first screen.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/json.h"
#include "lib/machine.h"

namespace umacct::tool {

struct Output;

/// A service, a container, a pod, a session; or another cgroup, without those of these below it.
struct OwnerShare {
    std::string path;
    std::string name; ///< printable
    std::uint64_t total = 0;
    std::uint64_t driver = 0; ///< a part of the total
    std::uint64_t cache = 0;  ///< not in the total
    std::uint64_t swap = 0;   ///< not in the total
    Limit limit;              ///< the lowest hard limit that binds it
};

/// The parts of the machine's memory; nothing is in two of them.
struct Division {
    std::uint64_t total = 0;
    std::uint64_t available = 0;
    std::vector<OwnerShare> owners = {}; ///< the largest first, by TOTAL
    std::uint64_t rest = 0; ///< neither available nor an owner's: the kernel's, the driver's own
    bool whole = true;      ///< all accounts are visible; else rest has those of others

    /// Tells if less than a twenty-fifth of the machine is available.
    bool is_short() const { return available < total / 25; }
};

Division divide(const Machine &machine, const Meminfo &memory, const Status &status,
                const std::vector<Account> &accounts);

/// "55.20 GiB of 128.00 GiB available"; where memory is short, ": NAME has 96.00 GiB" behind it.
std::string available_text(const Division &division);

/// Prints that line, a bar of the machine and a table of its owners.
void print_division(const Output &output, const Division &division);

Json to_json(const Owners &owners, const Division &division);

} // namespace umacct::tool
