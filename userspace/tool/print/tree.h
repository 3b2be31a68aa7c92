// SPDX-License-Identifier: GPL-2.0-or-later
/// Accounts as rows: in the order of their tree, siblings in an order that was asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "tool/print/columns.h"

namespace umacct::tool {

/// It holds memory, or somebody set something on it.
bool is_busy(const Account &account);

/// Of the accounts that are wanted, and what is above them. An account whose parent
/// the caller may not see is a root.
class AccountTree {
public:
    using Test = std::function<bool(const Account &)>;
    /// Whether the first comes before the second.
    using Order = std::function<bool(const Row &, const Row &)>;

    /// accounts: parents before children; they must outlive the rows. complete: adds
    /// what the order looks at.
    AccountTree(const std::vector<Account> &accounts, const Test &wanted,
                const std::function<void(Row &)> &complete, Order order);

    /// Without what is below an account that open() denies. They have no names yet.
    std::vector<Row> rows(const Test &open = [](const Account &) { return true; });

private:
    using Siblings = std::vector<std::size_t>;

    void append(Siblings &siblings, int depth, const Test &open, std::vector<Row> &rows);

    Order order_;
    std::vector<Row> rows_; ///< in the order of the accounts
    Siblings roots_;
    std::unordered_map<std::uint64_t, Siblings> children_; ///< by the parent's id
};

/// Gives rows of a tree their names. A root's name is its path.
void name_rows(const Owners &owners, std::vector<Row> &rows);

} // namespace umacct::tool
