// SPDX-License-Identifier: GPL-2.0-or-later
/// Accounts as rows: in the order of their tree, siblings in an order that was asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib/module/model.h"
#include "lib/owners/owners.h"

namespace umacct::tool {

/// Whether the first comes before the second.
using AccountOrder = std::function<bool(const Account &, const Account &)>;

/// By a number ("usage", "own", "peak", "limit", "charged", "uncharged"), largest first;
/// by path for any other key.
AccountOrder account_order(const std::string &key);

/// An account as a row, with its place in the tree.
struct AccountRow {
    const Account *account;
    int depth;
    bool parent; ///< there are rows below it
};

/// It holds memory, or somebody set something on it.
bool is_busy(const Account &account);

/// Of the accounts that are wanted, and what is above them. An account whose parent
/// the caller may not see is a root.
class AccountTree {
public:
    /// accounts: parents before children; they must outlive the rows.
    AccountTree(const std::vector<Account> &accounts,
                const std::function<bool(const Account &)> &wanted, AccountOrder order);

    std::vector<AccountRow> rows();
    /// Without what is below an account that open() denies.
    std::vector<AccountRow> rows(const std::function<bool(const Account &)> &open);

private:
    using Siblings = std::vector<const Account *>;

    void append(Siblings &siblings, int depth, const std::function<bool(const Account &)> &open,
                std::vector<AccountRow> &rows);

    AccountOrder order_;
    Siblings roots_;
    std::unordered_map<std::uint64_t, Siblings> children_;
};

/// Its place in the tree shown by an indent: full paths for roots, short names below them.
std::string tree_name(const Owners &owners, const AccountRow &row);

} // namespace umacct::tool
