// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/history/rows.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace umacct::history {

namespace {

constexpr std::array other_tables{boot_table, account_table, event_table};

int columns_of(const Table &table) {
    return static_cast<int>(std::ranges::count(std::string_view(table.columns), ',')) + 1;
}

std::string_view key_of(const Table &table) {
    const std::string_view columns = table.columns;

    return columns.substr(0, columns.find(','));
}

std::string select(const Unsealed &unsealed, const Table &table) {
    std::string columns = table.columns;

    if (unsealed.all()) {
        columns += ", NULL";
        // The first layout had no uptime in it.
        if (const auto at = columns.find("uptime_ms"); at != std::string::npos)
            columns.replace(at, std::string_view("uptime_ms").size(), "NULL");
    } else {
        columns += ", seal";
    }
    return fmt::format("SELECT {0} FROM {1} WHERE {2} >= ? AND {2} < ? ORDER BY {2}", columns,
                       table.name, key_of(table));
}

} // namespace

SealedRow &SealedRow::bind(std::int64_t value) {
    seal_.add(value);
    statement_.bind(value);
    return *this;
}

SealedRow &SealedRow::bind_text(std::string_view value) {
    seal_.add(value);
    statement_.bind_text(value);
    return *this;
}

SealedRow &SealedRow::bind_blob(std::string_view value) {
    seal_.add(value);
    statement_.bind_blob(value);
    return *this;
}

SealedRow &SealedRow::bind_null() {
    seal_.add_nothing();
    statement_.bind_null();
    return *this;
}

std::int64_t SealedRow::run() {
    statement_.bind(seal_.value()).run();
    return seal_.value();
}

Statement insert_into(Database &database, const Table &table) {
    std::string marks = "?";

    for (int i = 0; i < columns_of(table); ++i)
        marks += ", ?";
    return database.prepare(fmt::format("INSERT OR REPLACE INTO {} ({}, seal) VALUES ({})",
                                        table.name, table.columns, marks)
                                .c_str());
}

Unsealed::Unsealed(Database &database) {
    const std::int64_t version = database.number("PRAGMA user_version");

    all_ = version == layout_without_seals;
    if (version != layout_version)
        return;
    try {
        Statement rows = database.prepare("SELECT name, last FROM unsealed");

        while (rows.step())
            last_.emplace(rows.bytes(0), rows.number(1));
    } catch (const DatabaseError &error) {
        // Then every row needs its seal.
        if (!error.damaged())
            throw;
    }
}

void Unsealed::declare(Database &database) {
    const auto declare = [&](const Table &table) {
        database.run(fmt::format("INSERT INTO unsealed SELECT '{0}', max({1}) FROM {0} "
                                 "HAVING max({1}) NOT NULL",
                                 table.name, key_of(table))
                         .c_str());
    };

    for (const Table &table : other_tables)
        declare(table);
    for (std::size_t i = 0; i < resolutions.size(); ++i)
        declare(sample_table(i));
}

bool Unsealed::allows(const Table &table, std::int64_t key) const {
    const auto last = last_.find(table.name);

    return all_ || (last != last_.end() && key <= last->second);
}

Rows::Rows(Database &database, const Unsealed &unsealed, const Table &table, Damage &damage,
           std::int64_t from, std::int64_t before)
    : unsealed_(unsealed),
      table_(table),
      damage_(damage),
      statement_(database.prepare(select(unsealed, table).c_str())),
      columns_(columns_of(table)),
      next_(from),
      before_(before) {
    statement_.bind(next_).bind(before_);
}

/// The next row that SQLite can read.
bool Rows::step_raw() {
    while (true) {
        try {
            if (!statement_.step())
                return false;
            if (statement_.number(0) < next_)
                throw DatabaseError(SQLITE_CORRUPT, "the rows are out of order");
            next_ = statement_.number(0) + 1;
            stride_ = 1;
            return true;
        } catch (const DatabaseError &error) {
            if (!error.damaged())
                throw;
            damage_.add(table_, next_);
            continues_ = false;
            statement_.reset();
            // It ends where the numbers do, after at most 64 steps.
            if (before_ <= next_ || static_cast<std::uint64_t>(before_ - next_) <= stride_)
                return false;
            next_ += static_cast<std::int64_t>(stride_);
            stride_ *= 2;
            statement_.bind(next_).bind(before_);
        }
    }
}

bool Rows::check_seal() {
    // The second column says whether a sample is whole.
    const bool begins = !table_.chained || statement_.number(1) != 0;

    if (!begins && !continues_)
        return false;
    if (statement_.is_null(columns_)) {
        seal_ = 0;
        return unsealed_.allows(table_, key());
    }
    Seal seal(begins ? 0 : seal_);
    for (int i = 0; i < columns_; ++i) {
        if (statement_.is_null(i))
            seal.add_nothing();
        else if (statement_.is_number(i))
            seal.add(statement_.number(i));
        else
            seal.add(statement_.bytes(i));
    }
    seal_ = seal.value();
    return statement_.number(columns_) == seal_;
}

bool Rows::step() {
    while (step_raw()) {
        continues_ = check_seal();
        if (continues_)
            return true;
        reject();
    }
    return false;
}

void Rows::copy(Statement &insert) const {
    for (int i = 0; i <= columns_; ++i) {
        if (statement_.is_null(i))
            insert.bind_null();
        else if (statement_.is_number(i))
            insert.bind(statement_.number(i));
        else if (statement_.is_text(i))
            insert.bind_text(statement_.bytes(i));
        else
            insert.bind_blob(statement_.bytes(i));
    }
    insert.run();
}

void Rows::reject() {
    continues_ = false;
    damage_.add(table_, key());
}

} // namespace umacct::history
