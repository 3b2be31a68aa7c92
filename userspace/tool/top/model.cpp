// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/top/model.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace umacct::tool {

namespace {

using namespace std::chrono_literals;

/// How long a refusal is shown.
constexpr auto refused_time = 10s;

/// Ignores case.
bool contains(std::string_view text, std::string_view part) {
    const auto same = [](unsigned char a, unsigned char b) {
        return std::tolower(a) == std::tolower(b);
    };

    return part.empty() ||
           std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

} // namespace

TopKey key_of(const Account &account) {
    return {.account = account.id};
}

TopKey key_of(const Client &client) {
    return {client.account_id, true, client.pid, client.start_time_ns};
}

TopKey key_of(const Row &row) {
    return row.client != nullptr ? key_of(*row.client) : key_of(*row.account);
}

void TopModel::recall(std::uint64_t account, const std::vector<std::uint64_t> &usage) {
    const std::size_t shown = std::min(usage.size(), history_length - 1);

    series_[{.account = account}].history.assign(usage.end() - static_cast<std::ptrdiff_t>(shown),
                                                 usage.end());
}

void TopModel::take(TopSample sample) {
    std::map<TopKey, Series> series;

    notices_.clear();
    for (const Account &account : sample.accounts)
        record(key_of(account), account.usage, sample, series);
    for (const Client &client : sample.clients)
        record(key_of(client), client.usage, sample, series);
    note_refusals(sample, series);
    note_removed(sample);
    series_ = std::move(series);
    sample_ = std::move(sample);
    index_.clear();
    for (std::size_t i = 0; i < sample_->accounts.size(); ++i)
        index_[sample_->accounts[i].id] = i;
    problem_.clear();
}

void TopModel::lose(std::string problem) {
    problem_ = std::move(problem);
    notices_.clear();
    series_.clear();
    sample_.reset();
}

void TopModel::record(const TopKey &key, std::uint64_t usage, const TopSample &sample,
                      std::map<TopKey, Series> &series) const {
    const auto old = series_.find(key);
    Series now = old != series_.end() ? old->second : Series{};

    if (sample_ && sample.time > sample_->time) {
        const std::chrono::duration<double> seconds = sample.time - sample_->time;
        const auto before = now.history.empty() ? 0.0 : static_cast<double>(now.history.back());

        now.rate = std::llround((static_cast<double>(usage) - before) / seconds.count());
    }
    now.history.push_back(usage);
    if (now.history.size() > history_length)
        now.history.pop_front();
    series[key] = std::move(now);
}

/// A refusal counts in every account up to the root; the lowest one's is shown.
void TopModel::note_refusals(const TopSample &sample, std::map<TopKey, Series> &series) {
    std::set<std::uint64_t> told;

    std::for_each(sample.accounts.rbegin(), sample.accounts.rend(), [&](const Account &account) {
        Series &now = series[key_of(account)];
        const std::uint64_t before = std::exchange(now.refusals, account.refusals);

        if (!sample_ || account.refusals <= before)
            return;
        now.refused = sample.time;
        if (!told.contains(account.id))
            notices_.push_back(
                {true, fmt::format("{} refused: {}",
                                   counted(account.refusals - before, "allocation", "allocations"),
                                   shown(account.path))});
        if (account.parent_id)
            told.insert(*account.parent_id);
    });
}

void TopModel::note_removed(const TopSample &sample) {
    std::set<std::uint64_t> present;

    if (!sample_)
        return;
    for (const Account &account : sample.accounts)
        present.insert(account.id);
    for (const Account &account : sample_->accounts) {
        if (!present.contains(account.id) && wanted(account))
            notices_.push_back({false, "cgroup removed: " + shown(account.path)});
    }
}

/// An account that became idle a moment ago stays while its history shows memory.
bool TopModel::wanted(const Account &account) const {
    const auto series = series_.find(key_of(account));

    return all || is_busy(account) ||
           (series != series_.end() &&
            std::any_of(series->second.history.begin(), series->second.history.end(),
                        [](std::uint64_t usage) { return usage > 0; }));
}

bool TopModel::comes_first(const Row &a, const Row &b) const {
    return reversed ? comes_before(*sort, b, a) : comes_before(*sort, a, b);
}

/// A filter shows all matches, folded or not.
bool TopModel::is_open(const Account &account) const {
    return !filter.empty() || !folded_.contains(account.id);
}

std::vector<Row> TopModel::account_rows(const AccountTest &open) const {
    std::vector<Row> rows = tree_rows(
        sample_->accounts, [this](const Account &account) { return wanted(account); },
        [this](Row &row) { complete(row); },
        [this](const Row &a, const Row &b) { return comes_first(a, b); }, open);

    name_rows(owners_, rows);
    return rows;
}

std::vector<Row> TopModel::client_rows() const {
    std::vector<Row> rows;

    for (const Client &client : sample_->clients)
        complete(rows.emplace_back(row_of(owners_, client, account(client.account_id))));
    std::stable_sort(rows.begin(), rows.end(),
                     [this](const Row &a, const Row &b) { return comes_first(a, b); });
    return rows;
}

std::vector<Row> TopModel::all_rows() const {
    if (!sample_)
        return {};
    return processes ? client_rows() : account_rows([](const Account & /*any*/) { return true; });
}

std::vector<TopRow> TopModel::rows() const {
    std::vector<TopRow> rows;

    if (!sample_)
        return rows;
    if (processes) {
        for (Row &row : client_rows()) {
            if (matches(fmt::format("{} {}", row.client->pid, row.name), row.client->path))
                rows.push_back(top_row(std::move(row)));
        }
        return rows;
    }

    // A match is shown with what is above it.
    std::vector<Row> unfiltered =
        account_rows([this](const Account &account) { return is_open(account); });
    std::set<std::uint64_t> kept;
    std::for_each(unfiltered.rbegin(), unfiltered.rend(), [&](const Row &row) {
        const Account &account = *row.account;

        if (!kept.contains(account.id) && !matches(short_name(owners_, account.path), account.path))
            return;
        kept.insert(account.id);
        if (account.parent_id)
            kept.insert(*account.parent_id);
    });
    for (Row &row : unfiltered) {
        if (kept.contains(row.account->id))
            rows.push_back(top_row(std::move(row)));
    }
    return rows;
}

TopRow TopModel::account_row(const Account &account) const {
    Row row{.account = &account};

    complete(row);
    return top_row(std::move(row));
}

void TopModel::complete(Row &row) const {
    const auto series = series_.find(key_of(row));
    const auto memory =
        sample_->memory.find(row.client != nullptr ? row.client->account_id : row.account->id);

    if (series != series_.end())
        row.rate = series->second.rate;
    if (memory != sample_->memory.end())
        row.memory = memory->second;
    if (row.client == nullptr) {
        row.bound_by = sample_->binders.shown(*row.account);
    } else if (const auto process = sample_->processes.find(key_of(*row.client));
               process != sample_->processes.end()) {
        row.process = process->second;
    }
}

TopRow TopModel::top_row(Row row) const {
    const TopKey key = key_of(row);
    TopRow result{{std::move(row)}, key};
    const auto series = series_.find(key);

    result.open = key.process || is_open(*result.account);
    if (series == series_.end())
        return result;
    result.history.assign(series->second.history.begin(), series->second.history.end());
    result.refused =
        series->second.refused && sample_->time - *series->second.refused < refused_time;
    return result;
}

const Account *TopModel::account(std::uint64_t id) const {
    const auto index = index_.find(id);

    return !sample_ || index == index_.end() ? nullptr : &sample_->accounts[index->second];
}

bool TopModel::matches(std::string_view name, std::string_view path) const {
    return contains(name, filter) || contains(path, filter) || contains(shown(path), filter);
}

std::size_t TopModel::selected(const std::vector<TopRow> &rows) {
    const auto chosen = std::find_if(rows.begin(), rows.end(), [this](const TopRow &row) {
        return selected_ && row.key == *selected_;
    });

    if (rows.empty())
        return 0;
    selected_index_ = chosen != rows.end() ? static_cast<std::size_t>(chosen - rows.begin())
                                           : std::min(selected_index_, rows.size() - 1);
    selected_ = rows[selected_index_].key;
    return selected_index_;
}

} // namespace umacct::tool
