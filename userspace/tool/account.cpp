// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/account.h"

#include <fmt/format.h>

#include "lib/error.h"

namespace umacct::tool {

namespace {

/// The account of the nearest cgroup above that has one the caller may see.
std::optional<Account> nearest_above(Context &context, std::string path) {
    while (path != "/") {
        path = parent_path(path);
        if (!context.cgroups().exists(path))
            break;
        try {
            if (auto account = context.module().account(context.cgroups().id(path)))
                return account;
        } catch (const RequestError &error) {
            if (error.failure() != Failure::permission)
                throw;
            break;
        }
    }
    return std::nullopt;
}

} // namespace

Account read_account(Context &context, const Target &target) {
    if (auto account = context.module().account(target.id))
        return *account;

    Account empty;
    empty.id = target.id;
    empty.path = target.path;
    if (const auto above = nearest_above(context, target.path)) {
        empty.effective = above->effective;
        empty.effective_id = above->effective_id;
        empty.charge_effective = above->charge_effective;
    }
    return empty;
}

std::vector<Client> clients_of(Context &context, const Account &account) {
    return context.module().clients(account.id);
}

std::string path_of_account(Context &context, std::uint64_t id) {
    try {
        if (const auto account = context.module().account(id))
            return account->path;
    } catch (const RequestError &error) {
        if (error.failure() != Failure::permission)
            throw;
    }
    return fmt::format("a cgroup above (id {})", id);
}

} // namespace umacct::tool
