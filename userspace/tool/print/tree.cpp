// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/print/tree.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "tool/print/text.h"

namespace umacct::tool {

bool is_busy(const Account &account) {
    return account.usage > 0 || account.configured();
}

std::vector<Row> tree_rows(const std::vector<Account> &accounts, const AccountTest &wanted,
                           const std::function<void(Row &)> &complete, const RowOrder &order,
                           const AccountTest &open) {
    std::unordered_set<std::uint64_t> known;
    std::unordered_set<std::uint64_t> shown;
    std::unordered_map<std::optional<std::uint64_t>, std::vector<Row>>
        children;           ///< rows, rows, by parent
    std::vector<Row> to_do; ///< the next is the last
    std::vector<Row> rows;

    // There may be many thousands: nothing is moved because there is one more.
    known.reserve(accounts.size());
    shown.reserve(accounts.size());
    // Parents come before children, so that children are marked first from the end.
    std::for_each(accounts.rbegin(), accounts.rend(), [&](const Account &account) {
        if (wanted(account))
            shown.insert(account.id);
        if (shown.contains(account.id) && account.parent_id)
            shown.insert(*account.parent_id);
    });
    to_do.reserve(shown.size());
    rows.reserve(shown.size());
    for (const Account &account : accounts) {
        const bool is_child = account.parent_id && known.contains(*account.parent_id);

        known.insert(account.id);
        if (!shown.contains(account.id))
            continue;
        Row &row = children[is_child ? account.parent_id : std::nullopt].emplace_back();
        row.account = &account;
        complete(row);
    }

    const auto descend = [&](std::optional<std::uint64_t> parent, int depth) {
        std::vector<Row> &siblings = children[parent];

        std::ranges::sort(siblings, [&](const Row &a, const Row &b) { return order(b, a); });
        for (Row &row : siblings) {
            row.depth = depth;
            row.parent = children.contains(row.account->id);
            to_do.push_back(std::move(row));
        }
    };
    descend(std::nullopt, 0);
    while (!to_do.empty()) {
        const Row &row = rows.emplace_back(std::move(to_do.back()));

        to_do.pop_back();
        if (row.parent && open(*row.account))
            descend(row.account->id, row.depth + 1);
    }
    return rows;
}

void name_rows(const Owners &owners, std::vector<Row> &rows) {
    for (Row &row : rows) {
        row.place = display_path(owners, row.account->path);
        row.name = row.depth == 0 ? row.place : short_name(owners, row.account->path);
    }
}

} // namespace umacct::tool
