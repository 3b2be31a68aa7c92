// SPDX-License-Identifier: GPL-2.0-or-later
/// Accounts as rows: in the order of their tree, siblings in an order that was asked for.
#pragma once

#include <functional>
#include <vector>

#include "tool/print/columns.h"

namespace umacct::tool {

/// Returns whether it holds memory or has settings.
bool is_busy(const Account &account);

using AccountTest = std::function<bool(const Account &)>;
/// Whether the first comes before the second.
using RowOrder = std::function<bool(const Row &, const Row &)>;

/// The accounts that are wanted, and what is above them, without what is below one that
/// open() denies. An account whose parent the caller may not see is a root. They have no
/// names yet. accounts: parents before children; they must outlive the rows. complete: adds
/// what the order looks at.
std::vector<Row> tree_rows(const std::vector<Account> &accounts, const AccountTest &wanted,
                           const std::function<void(Row &)> &complete, const RowOrder &order,
                           const AccountTest &open);

/// Gives rows of a tree their names. A root's name is its path.
void name_rows(const Owners &owners, std::vector<Row> &rows);

} // namespace umacct::tool
