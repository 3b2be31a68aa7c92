// SPDX-License-Identifier: GPL-2.0-or-later
/// Lists of processes, as more than one verb prints them.
#pragma once

#include <string>
#include <vector>

#include "lib/module/model.h"
#include "lib/owners/owners.h"
#include "tool/print/table.h"

namespace umacct::tool {

/// Largest first.
void sort_by_usage(std::vector<Client> &clients);

/// The pid, "-" where the reader's namespace has none.
std::string pid_cell(const Client &client);
/// The name, with a mark for a process that is gone.
std::string command_cell(const Client &client);

Table client_table(const Owners &owners, const std::vector<Client> &clients);

} // namespace umacct::tool
