// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/session.h"

#include <fmt/format.h>

#include "lib/error.h"

namespace umacct::tool {

namespace {

/// Empty as well where the caller may not see it.
std::optional<Account> visible_account(Module &module, std::uint64_t id) {
    try {
        return module.account(id);
    } catch (const RequestError &error) {
        if (error.failure() != Failure::permission)
            throw;
        return std::nullopt;
    }
}

/// The account of the nearest cgroup above that has one the caller may see.
std::optional<Account> nearest_above(Module &module, const Cgroups &cgroups, std::string path) {
    while (path != "/") {
        path = parent_path(path);
        if (!cgroups.exists(path))
            break;
        if (auto account = visible_account(module, cgroups.id(path)))
            return account;
    }
    return std::nullopt;
}

} // namespace

Session::Session(const Surroundings &surroundings)
    : connection(surroundings.connect, surroundings.observe),
      machine(surroundings.output.proc, surroundings.root, surroundings.connect),
      output(surroundings.output),
      open_terminal(surroundings.open_terminal),
      observe_meanwhile(surroundings.observe_meanwhile) {}

Account read_account(Module &module, const Cgroups &cgroups, const Target &target) {
    if (auto account = module.account(target.id))
        return *account;

    Account empty;
    empty.id = target.id;
    empty.path = target.path;
    if (const auto above = nearest_above(module, cgroups, target.path)) {
        empty.effective = above->effective;
        empty.effective_id = above->effective_id;
        empty.charge_effective = above->charge_effective;
    }
    return empty;
}

std::string path_of_account(Module &module, std::uint64_t id) {
    const auto account = visible_account(module, id);

    return account ? account->path : fmt::format("a cgroup above (id {})", id);
}

} // namespace umacct::tool
