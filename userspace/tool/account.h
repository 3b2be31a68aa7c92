// SPDX-License-Identifier: GPL-2.0-or-later
/// Reading one account for a user who named it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tool/context.h"

namespace umacct::tool {

/// The target's account. For a cgroup that the module keeps none for, as it
/// never held memory: an empty one, with what it inherits. Throws Error
/// (permission) when the caller may not see it.
Account read_account(Context &context, const Target &target);

/// The processes of the account and of those below it.
std::vector<Client> clients_of(Context &context, const Account &account);

/// The account's path, or its id where it can't be seen.
std::string path_of_account(Context &context, std::uint64_t id);

} // namespace umacct::tool
