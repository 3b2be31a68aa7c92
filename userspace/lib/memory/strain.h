// SPDX-License-Identifier: GPL-2.0-or-later
/// Why tasks wait for memory although there is much of it: who waits, and who holds what lies
/// between the free pieces. Nothing is done to either.
#pragma once

#include <cstdint>
#include <string>

#include "lib/json.h"
#include "lib/machine.h"
#include "lib/module/module.h"

namespace umacct {

struct Strain {
    std::string waiter;       ///< the cgroup that waits most; empty where none is known
    double waits = 0;         ///< some task in it, per cent of the last ten seconds
    std::uint64_t free = 0;   ///< bytes
    std::uint64_t blocks = 0; ///< bytes in free blocks of 2 MiB
    std::string holder;       ///< the cgroup with most pieces of driver memory, which don't move
    std::uint64_t pieces = 0; ///< allocations of its
    std::uint64_t held = 0;   ///< bytes of them

    /// Never throws: what can't be read is left out.
    static Strain look(Module &module, const Machine &machine);

    /// "; /a waits most, 97.00% of the time; of 70.00 GiB that are free 12.00 MiB lie in blocks of
    /// 2.00 MiB; /b holds most pieces of driver memory, 60.00 GiB in 1200000"
    std::string text() const;
    Json json() const;
};

} // namespace umacct
