// SPDX-License-Identifier: GPL-2.0-or-later
/// What a container was started with: the settings that its maker asked for, by umacct-hook. They
/// are kept in an extended attribute of the container's cgroup, which takes CAP_SYS_ADMIN to write
/// and goes with the cgroup; so umacctd knows of them for as long as the container lives.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "lib/host/cgroup.h"
#include "lib/host/file_descriptor.h"
#include "lib/module/model.h"

namespace umacct {

struct Contract {
    AccountChange asked;
    /// The container's own memory limit: what it asks for is at most this where no rule has a hard
    /// limit.
    std::optional<std::uint64_t> memory_limit;

    bool empty() const { return asked.empty() && !memory_limit; }

    /// "hard=1073741824 view=1"
    std::string text() const;

    /// Empty for a text that is none.
    static std::optional<Contract> of(std::string_view text);

    bool operator==(const Contract &other) const = default;
};

/// The limit that says less, of those that say something.
std::optional<std::uint64_t> lower_limit(const std::optional<std::uint64_t> &a,
                                         const std::optional<std::uint64_t> &b);

/// What a cgroup gets where an administrator's rule says one thing and a container asks for
/// another: never more than the rule says. Limits are the lower of both; where no rule has a hard
/// limit, the container's memory limit takes its place. A guarantee is at most the rule's, or
/// most_keep where no rule has one. A view or charging that either of them has on is on.
AccountChange with_contract(const AccountChange &rule, const Contract &contract,
                            std::uint64_t most_keep);

/// Empty where the cgroup has none.
Contract contract_of(const Cgroups &cgroups, std::string_view path);

/// 0, or what is wrong with it as an errno.
int write_contract(const Cgroups &cgroups, std::string_view path, const Contract &contract);

/// From reading a contract until what comes of it is set there is no other umacctd or umacct-hook
/// that sets anything: the one that comes last has seen what the one before wrote.
class ContractLock {
public:
    enum class Setter : std::uint8_t {
        daemon, ///< makes the lock's file, and goes on without the lock where a hook hangs
        hook,   ///< after write_contract(): without a file, umacctd has yet to read what it wrote
    };

    /// Throws Error for a hook, where somebody has the lock for seconds.
    ContractLock(const std::filesystem::path &root, Setter who);

private:
    FileDescriptor file_; ///< closing it gives the lock back
};

} // namespace umacct
