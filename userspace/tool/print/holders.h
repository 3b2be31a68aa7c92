// SPDX-License-Identifier: GPL-2.0-or-later
/// Who holds memory, by name: of a cgroup the process that holds most, and what lies in files that
/// perhaps nobody maps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/host/shared_files.h"
#include "lib/json.h"
#include "lib/machine.h"

namespace umacct::tool {

struct Output;

struct HoldingProcess {
    std::uint32_t pid = 0;
    std::string name;        ///< as the kernel has it, not fit for a terminal
    std::string user;        ///< printable; "-" where it is not known
    std::uint64_t bytes = 0; ///< through the driver, anonymous and shared memory
    bool orphaned = false;   ///< what started it is gone
    bool exiting = false;
    std::string path; ///< its cgroup
};

/// The one that holds most, of those in a cgroup itself and of those that took driver memory for
/// it. Empty where there is none that holds something.
std::optional<HoldingProcess> first_process(const Machine &machine, const std::string &path,
                                            const std::vector<Client> &clients);

/// Those that are worth a line: the largest, nobody's first.
std::vector<SharedFile> holding_files(const Machine &machine);

/// A line for each, those of nobody first: "/dev/shm/psm_1, 500.00 MiB, mapped by nobody",
/// "pid 412 (python3) of root, parent gone: 104.00 GiB in docker vllm".
void print_holders(const Machine &machine, const Output &output,
                   std::vector<std::optional<HoldingProcess>> processes,
                   const std::vector<SharedFile> &files);

Json holder_json(const std::optional<HoldingProcess> &process);
Json files_json(const std::vector<SharedFile> &files);

} // namespace umacct::tool
