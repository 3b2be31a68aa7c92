// SPDX-License-Identifier: GPL-2.0-or-later
/// The model of "top", without a screen: readings become rows with rates and a history, sorted,
/// filtered and folded by the user.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/module/model.h"
#include "tool/print/owners.h"
#include "tool/print/text.h"
#include "tool/print/tree.h"

namespace umacct::tool {

/// Identity of an account or a process across readings.
struct TopKey {
    std::uint64_t account = 0;
    bool process = false;
    std::uint32_t pid = 0;
    std::uint64_t start_time = 0;

    auto operator<=>(const TopKey &) const = default;
};

TopKey key_of(const Account &account);
TopKey key_of(const Client &client);
TopKey key_of(const Row &row);

/// One reading of the module and the machine.
struct TopSample {
    std::chrono::steady_clock::time_point time;
    Status status;
    std::uint64_t total = 0; ///< the machine's memory
    std::uint64_t free = 0;
    std::uint64_t available = 0;
    std::vector<Account> accounts;
    std::vector<Client> clients;
    std::unordered_map<std::uint64_t, MemoryController> memory; ///< the key is the account's id
    std::map<TopKey, ProcessMemory> processes;
    Division division; ///< empty for a subtree
    Binders binders;
};

/// A row with values from the readings before.
struct TopRow : Row {
    TopKey key;
    bool open = true;                        ///< its descendants are shown
    std::vector<std::uint64_t> history = {}; ///< usage, the newest last
    bool refused = false;                    ///< a moment ago
};

/// Something that happened between two readings.
struct TopNotice {
    bool refusal = false;
    std::string text;
};

class TopModel {
public:
    /// owners must outlive it.
    explicit TopModel(const Owners &owners) : owners_(owners) {}

    /// A cgroup's path for people.
    std::string shown(std::string_view path) const { return display_path(owners_, path); }

    /// The same with its path behind it, for what is changed.
    std::string named(std::string_view path) const { return name_and_path(owners_, path); }

    /// Adds an account's usage before the first reading, one value for each refresh, the newest
    /// last.
    void recall(std::uint64_t account, const std::vector<std::uint64_t> &usage);

    /// Number of refreshes in a history.
    static constexpr std::size_t history_length = 120;

    /// The newest reading.
    void take(TopSample sample);
    /// There is nothing to read: why.
    void lose(std::string problem);

    /// Empty while the newest reading succeeded.
    const std::string &problem() const { return problem_; }

    /// Null before the first reading and after lose().
    const TopSample *sample() const { return sample_ ? &*sample_ : nullptr; }

    /// Returns events between the last two readings.
    const std::vector<TopNotice> &notices() const { return notices_; }

    /// Null when the newest reading has no such account.
    const Account *account(std::uint64_t id) const;

    std::vector<TopRow> rows() const;
    /// Returns the row of an account in the newest reading, listed or not.
    TopRow account_row(const Account &account) const;
    /// Accounts, or processes, in the order of rows(), whatever is folded.
    std::vector<Row> all_rows() const;

    /// Index of the chosen row. Where the row that was chosen is gone, another one is.
    std::size_t selected(const std::vector<TopRow> &rows);

    void select(const TopRow &row) { selected_ = row.key; }

    void fold(std::uint64_t account) { folded_.insert(account); }

    void unfold(std::uint64_t account) { folded_.erase(account); }

    void unfold_all() { folded_.clear(); }

    bool processes = false; ///< the list of processes instead of the tree of cgroups
    bool all = false;       ///< idle accounts too
    bool kinds = false;     ///< the bar is of kinds of memory, not of owners
    const Column *sort = &column("total", Of::both, "");
    bool reversed = false;
    std::string filter; ///< required part of a name, in any case

private:
    struct Series {
        std::deque<std::uint64_t> history;
        std::optional<std::int64_t> rate;
        std::uint64_t refusals = 0;
        std::optional<std::chrono::steady_clock::time_point> refused;
    };

    void record(const TopKey &key, std::uint64_t usage, const TopSample &sample,
                std::map<TopKey, Series> &series) const;
    void note_refusals(const TopSample &sample, std::map<TopKey, Series> &series);
    void note_removed(const TopSample &sample);
    bool wanted(const Account &account) const;
    bool is_open(const Account &account) const;
    std::vector<Row> account_rows(const AccountTest &open) const;
    std::vector<Row> client_rows() const;
    /// Adds what is known of it beside the module's own figures.
    void complete(Row &row) const;
    TopRow top_row(Row row) const;
    bool comes_first(const Row &a, const Row &b) const;
    bool matches(std::string_view name, std::string_view path) const;

    const Owners &owners_;
    std::optional<TopSample> sample_;
    std::unordered_map<std::uint64_t, std::size_t> index_; ///< index of an account in the sample
    std::string problem_;
    std::vector<TopNotice> notices_;
    std::map<TopKey, Series> series_;
    std::set<std::uint64_t> folded_;
    std::optional<TopKey> selected_;
    std::size_t selected_index_ = 0;
};

} // namespace umacct::tool
