// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/top/top_model.h"
#include "tool/print/text.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "tool/clients.h"

namespace umacct::tool {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t history_length = 120;

/// How long a refusal is shown.
constexpr auto refused_time = 10s;

/// Nothing is known of it, so it comes after all that is known.
template <class T>
std::pair<bool, T> known_first(const std::optional<T> &value) {
    return {value.has_value(), value.value_or(T{})};
}

std::string lower(std::string_view text) {
    std::string result(text);

    std::transform(result.begin(), result.end(), result.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return result;
}

bool contains(std::string_view text, std::string_view part) {
    return lower(text).find(part) != std::string::npos;
}

} // namespace

TopKey key_of(const Account &account) {
    return {.account = account.id, .process = false, .pid = 0, .start_time = 0};
}

TopKey key_of(const Client &client) {
    return {.account = client.account_id,
            .process = true,
            .pid = client.pid,
            .start_time = client.start_time_ns};
}

std::string_view name_of(TopColumn column) {
    switch (column) {
    case TopColumn::usage:
        return "usage";
    case TopColumn::limit:
        return "limit";
    case TopColumn::peak:
        return "peak";
    case TopColumn::rate:
        return "rate";
    case TopColumn::memory:
        return "memory.current";
    case TopColumn::uncharged:
        return "uncharged";
    case TopColumn::name:
        return "name";
    }
    return "";
}

const std::vector<TopColumn> &top_columns() {
    static const std::vector<TopColumn> columns{
        TopColumn::name, TopColumn::usage,  TopColumn::limit,    TopColumn::peak,
        TopColumn::rate, TopColumn::memory, TopColumn::uncharged};

    return columns;
}

std::optional<TopColumn> top_column(std::string_view name) {
    for (const TopColumn column : top_columns()) {
        if (name_of(column) == name)
            return column;
    }
    return std::nullopt;
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

/// A refusal counts in every account up to the root; it is told of the lowest.
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

/// What became idle a moment ago stays for as long as its history tells of more.
bool TopModel::wanted(const Account &account) const {
    const auto series = series_.find(key_of(account));

    return all || is_busy(account) ||
           (series != series_.end() &&
            std::any_of(series->second.history.begin(), series->second.history.end(),
                        [](std::uint64_t usage) { return usage > 0; }));
}

AccountTree TopModel::tree() const {
    AccountOrder order;

    switch (sort) {
    case TopColumn::rate:
        order = [this](const Account &a, const Account &b) {
            return std::tuple(known_first(rate(key_of(b))), a.path) <
                   std::tuple(known_first(rate(key_of(a))), b.path);
        };
        break;
    case TopColumn::memory:
        order = [this](const Account &a, const Account &b) {
            return std::tuple(known_first(memory_of(b.id)), a.path) <
                   std::tuple(known_first(memory_of(a.id)), b.path);
        };
        break;
    default:
        order = account_order(std::string(name_of(sort)));
    }
    if (reversed)
        order = [forward = std::move(order)](const Account &a, const Account &b) {
            return forward(b, a);
        };
    return {sample_->accounts, [this](const Account &account) { return wanted(account); },
            std::move(order)};
}

std::vector<AccountRow> TopModel::account_rows() const {
    return sample_ ? tree().rows() : std::vector<AccountRow>{};
}

std::vector<const Client *> TopModel::client_rows() const {
    std::vector<std::pair<const Client *, TopRow>> keyed;
    std::vector<const Client *> clients;

    if (!sample_)
        return clients;
    for (const Client &client : sample_->clients)
        keyed.emplace_back(&client, row_of(client));
    std::stable_sort(keyed.begin(), keyed.end(), [this](const auto &first, const auto &second) {
        const TopRow &a = reversed ? second.second : first.second;
        const TopRow &b = reversed ? first.second : second.second;

        switch (sort) {
        case TopColumn::usage:
            return a.usage > b.usage;
        case TopColumn::limit:
            return a.limit.value_or(UMACCT_UNLIMITED) > b.limit.value_or(UMACCT_UNLIMITED);
        case TopColumn::peak:
            return a.peak > b.peak;
        case TopColumn::rate:
            return known_first(a.rate) > known_first(b.rate);
        case TopColumn::memory:
            return known_first(a.memory) > known_first(b.memory);
        case TopColumn::uncharged:
            return a.uncharged > b.uncharged;
        case TopColumn::name:
            break;
        }
        return a.name < b.name;
    });
    for (const auto &each : keyed)
        clients.push_back(each.first);
    return clients;
}

std::vector<TopRow> TopModel::rows() const {
    std::vector<TopRow> rows;

    if (!sample_)
        return rows;
    if (processes) {
        for (const Client *client : client_rows()) {
            TopRow row = row_of(*client);

            if (matches(fmt::format("{} {}", pid_cell(*client), row.name), client->path))
                rows.push_back(std::move(row));
        }
        return rows;
    }

    // A match is shown with what is above it, and whatever is folded.
    const std::vector<AccountRow> unfiltered = tree().rows(
        [this](const Account &each) { return !filter.empty() || !folded_.contains(each.id); });
    std::set<std::uint64_t> kept;
    std::for_each(unfiltered.rbegin(), unfiltered.rend(), [&](const AccountRow &row) {
        const Account &account = *row.account;

        if (!kept.contains(account.id) && !matches(short_name(owners_, account.path), account.path))
            return;
        kept.insert(account.id);
        if (account.parent_id)
            kept.insert(*account.parent_id);
    });
    for (const AccountRow &row : unfiltered) {
        if (kept.contains(row.account->id))
            rows.push_back(row_of(row));
    }
    return rows;
}

TopRow TopModel::row_of(const AccountRow &from) const {
    const Account &account = *from.account;
    TopRow row;

    row.key = key_of(account);
    row.path = account.path;
    row.shown_path = shown(account.path);
    row.name = from.depth == 0 ? shown(account.path) : short_name(owners_, account.path);
    row.depth = from.depth;
    row.parent = from.parent;
    row.open = !filter.empty() || !folded_.contains(account.id);
    row.usage = account.usage;
    row.peak = account.peak;
    row.uncharged = account.uncharged();
    row.limit = account.effective;
    row.memory = memory_of(account.id);
    row.over_soft = account.soft && account.usage > *account.soft;
    add_series(row);
    return row;
}

TopRow TopModel::row_of(const Client &client) const {
    TopRow row;

    row.key = key_of(client);
    row.path = client.path;
    row.shown_path = shown(client.path);
    row.name = command_cell(client);
    row.usage = client.usage;
    row.peak = client.peak;
    row.uncharged = client.uncharged();
    row.memory = memory_of(client.account_id);
    if (const Account *its = account(client.account_id)) {
        row.limit = its->effective;
        row.over_soft = its->soft && its->usage > *its->soft;
    }
    add_series(row);
    return row;
}

void TopModel::add_series(TopRow &row) const {
    const auto series = series_.find(row.key);

    if (series == series_.end())
        return;
    row.rate = series->second.rate;
    row.history.assign(series->second.history.begin(), series->second.history.end());
    row.refused = series->second.refused && sample_->time - *series->second.refused < refused_time;
}

const Account *TopModel::account(std::uint64_t id) const {
    const auto index = index_.find(id);

    return !sample_ || index == index_.end() ? nullptr : &sample_->accounts[index->second];
}

std::optional<std::int64_t> TopModel::rate(const TopKey &key) const {
    const auto series = series_.find(key);

    return series == series_.end() ? std::nullopt : series->second.rate;
}

std::optional<std::uint64_t> TopModel::memory_of(std::uint64_t account) const {
    const auto memory = sample_->memory.find(account);

    return memory == sample_->memory.end() ? std::nullopt : memory->second.current;
}

bool TopModel::matches(std::string_view name, std::string_view path) const {
    const std::string wanted = lower(filter);

    return contains(name, wanted) || contains(path, wanted) || contains(shown(path), wanted);
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
