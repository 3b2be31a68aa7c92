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

AccountTree::AccountTree(const Owners &owners, const std::vector<Account> &accounts,
                         const Test &wanted, const std::function<void(Row &)> &complete,
                         Order order)
    : owners_(owners), order_(std::move(order)) {
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
        Row &row = (is_child ? children_[*account.parent_id] : roots_).emplace_back();
        row.account = &account;
        complete(row);
    }
}

std::vector<Row> AccountTree::rows(const Test &open) {
    std::vector<Row> rows;

    append(roots_, 0, open, rows);
    return rows;
}

void AccountTree::append(Siblings &siblings, int depth, const Test &open, std::vector<Row> &rows) {
    std::sort(siblings.begin(), siblings.end(), order_);
    for (Row row : siblings) {
        const Account &account = *row.account;
        const auto children = children_.find(account.id);

        row.depth = depth;
        row.parent = children != children_.end();
        row.place = display_path(owners_, account.path);
        row.name = depth == 0 ? row.place : short_name(owners_, account.path);
        rows.push_back(std::move(row));
        if (children != children_.end() && open(account))
            append(children->second, depth + 1, open, rows);
    }
}

} // namespace umacct::tool
