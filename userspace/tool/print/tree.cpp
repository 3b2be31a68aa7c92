// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/print/tree.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "tool/print/text.h"

namespace umacct::tool {

bool is_busy(const Account &account) {
    return account.usage > 0 || account.managed > 0 || account.configured();
}

AccountTree::AccountTree(const std::vector<Account> &accounts, const Test &wanted,
                         const std::function<void(Row &)> &complete, Order order)
    : order_(std::move(order)) {
    std::unordered_set<std::uint64_t> known;
    std::unordered_set<std::uint64_t> shown;

    // Parents come before children, so that children are marked first from the end.
    std::for_each(accounts.rbegin(), accounts.rend(), [&](const Account &account) {
        if (wanted(account))
            shown.insert(account.id);
        if (shown.contains(account.id) && account.parent_id)
            shown.insert(*account.parent_id);
    });
    for (const Account &account : accounts) {
        const bool is_child = account.parent_id && known.contains(*account.parent_id);

        known.insert(account.id);
        if (!shown.contains(account.id))
            continue;
        (is_child ? children_[*account.parent_id] : roots_).push_back(rows_.size());
        Row &row = rows_.emplace_back();
        row.account = &account;
        complete(row);
    }
}

std::vector<Row> AccountTree::rows(const Test &open) {
    std::vector<Row> rows;

    rows.reserve(rows_.size());
    append(roots_, 0, open, rows);
    return rows;
}

void AccountTree::append(Siblings &siblings, int depth, const Test &open, std::vector<Row> &rows) {
    std::ranges::sort(siblings,
                      [this](std::size_t a, std::size_t b) { return order_(rows_[a], rows_[b]); });
    for (const std::size_t index : siblings) {
        Row &row = rows.emplace_back(rows_[index]);
        const Account &account = *row.account;
        const auto children = children_.find(account.id);

        row.depth = depth;
        row.parent = children != children_.end();
        if (row.parent && open(account))
            append(children->second, depth + 1, open, rows);
    }
}

void name_rows(const Owners &owners, std::vector<Row> &rows) {
    for (Row &row : rows) {
        row.place = display_path(owners, row.account->path);
        row.name = row.depth == 0 ? row.place : short_name(owners, row.account->path);
    }
}

} // namespace umacct::tool
