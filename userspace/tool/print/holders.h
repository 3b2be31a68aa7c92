// SPDX-License-Identifier: GPL-2.0-or-later
/// Holders of memory, by name: the largest process of a cgroup, and memory in files that
/// perhaps no process maps.
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

/// Memory of a cgroup itself, without those below it.
struct Holder {
    std::string path;
    std::uint64_t driver = 0;
    std::uint64_t anonymous = 0;
    std::uint64_t shared = 0; ///< tmpfs and shared memory
    std::uint64_t cache = 0;

    /// All but page cache.
    std::uint64_t held() const { return driver + anonymous + shared; }
};

/// Each cgroup that can be seen, and each account.
std::vector<Holder> holders(const Machine &machine, const std::vector<Account> &accounts);

struct HoldingProcess {
    std::uint32_t pid = 0;
    std::string name;        ///< unescaped: not safe to print
    std::string user;        ///< printable; "-" where it is not known
    std::uint64_t bytes = 0; ///< driver, anonymous and shared memory
    bool orphaned = false;   ///< its parent has exited
    bool exiting = false;
    std::string path; ///< its cgroup
};

/// The one that holds most, of those in a cgroup itself and of those that took driver memory for
/// it. Empty where there is none that holds something.
std::optional<HoldingProcess> first_process(const Machine &machine, const std::string &path,
                                            const std::vector<Client> &clients);

/// Selects those that are worth a line: the largest, unmapped ones first.
std::vector<SharedFile> holding_files(const Machine &machine);

/// Prints a line for each, unmapped ones first: "/dev/shm/psm_1, 500.00 MiB, not mapped",
/// "pid 412 (python3) of root, parent gone: 104.00 GiB in docker vllm".
void print_holders(const Machine &machine, const Output &output,
                   const std::vector<std::optional<HoldingProcess>> &processes,
                   const std::vector<SharedFile> &files);

Json holder_json(const std::optional<HoldingProcess> &process);
Json files_json(const std::vector<SharedFile> &files);

} // namespace umacct::tool
