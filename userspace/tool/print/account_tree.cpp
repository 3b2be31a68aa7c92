// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/print/account_tree.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "tool/print/text.h"

namespace umacct::tool {

AccountOrder account_order(const std::string &key) {
    static const std::unordered_map<std::string, std::uint64_t (*)(const Account &)> numbers{
        {"usage", [](const Account &a) { return a.usage; }},
        {"own", [](const Account &a) { return a.own; }},
        {"peak", [](const Account &a) { return a.peak; }},
        {"charged", [](const Account &a) { return a.charged; }},
        {"uncharged", [](const Account &a) { return a.uncharged(); }},
        {"limit", [](const Account &a) { return a.effective.value_or(UMACCT_UNLIMITED); }},
    };
    const auto number = numbers.find(key);

    if (number == numbers.end())
        return [](const Account &a, const Account &b) { return a.path < b.path; };
    return [of = number->second](const Account &a, const Account &b) {
        return of(a) != of(b) ? of(a) > of(b) : a.path < b.path;
    };
}

bool is_busy(const Account &account) {
    return account.usage > 0 || account.managed > 0 || account.configured();
}

AccountTree::AccountTree(const std::vector<Account> &accounts,
                         const std::function<bool(const Account &)> &wanted, AccountOrder order)
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
        if (shown.contains(account.id))
            (is_child ? children_[*account.parent_id] : roots_).push_back(&account);
    }
}

std::vector<AccountRow> AccountTree::rows() {
    return rows([](const Account & /*account*/) { return true; });
}

std::vector<AccountRow> AccountTree::rows(const std::function<bool(const Account &)> &open) {
    std::vector<AccountRow> rows;

    append(roots_, 0, open, rows);
    return rows;
}

void AccountTree::append(Siblings &siblings, int depth,
                         const std::function<bool(const Account &)> &open,
                         std::vector<AccountRow> &rows) {
    std::sort(siblings.begin(), siblings.end(),
              [this](const Account *a, const Account *b) { return order_(*a, *b); });
    for (const Account *account : siblings) {
        const auto children = children_.find(account->id);
        const bool parent = children != children_.end();

        rows.push_back({account, depth, parent});
        if (parent && open(*account))
            append(children->second, depth + 1, open, rows);
    }
}

std::string tree_name(const Owners &owners, const AccountRow &row) {
    return std::string(static_cast<std::size_t>(row.depth) * 2, ' ') +
           (row.depth == 0 ? display_path(owners, row.account->path)
                           : short_name(owners, row.account->path));
}

} // namespace umacct::tool
