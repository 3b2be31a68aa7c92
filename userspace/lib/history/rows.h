// SPDX-License-Identifier: GPL-2.0-or-later
/// Sealed rows of the history's database: puts them there, and reads those that are sound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "lib/history/layout.h"
#include "lib/history/seal.h"
#include "lib/host/sqlite.h"

namespace umacct::history {

/// Binds the values of a row, and its seal after them.
class SealedRow {
public:
    /// statement: takes the columns of a Table, in their order, and the seal. before: the seal of
    /// the row that this one continues.
    explicit SealedRow(Statement &statement, std::int64_t before = 0)
        : statement_(statement), seal_(before) {}

    SealedRow &bind(std::int64_t value);
    SealedRow &bind_text(std::string_view value);
    SealedRow &bind_blob(std::string_view value);
    SealedRow &bind_null();

    /// Runs the statement. Returns the row's seal. Throws DatabaseError.
    std::int64_t run();

private:
    Statement &statement_;
    Seal seal_;
};

/// "INSERT OR REPLACE" of a table's sealed rows.
Statement insert_into(Database &database, const Table &table);

/// The records that a reader left out, each once.
class Damage {
public:
    void add(const Table &table, std::int64_t key) { records_.emplace(table.name, key); }

    std::size_t count() const { return records_.size(); }

private:
    std::set<std::pair<std::string_view, std::int64_t>> records_;
};

/// Up to which key the rows of each table have no seals: those of an earlier layout.
class Unsealed {
public:
    /// Throws DatabaseError where the database can't be read at all.
    explicit Unsealed(Database &database);

    /// Writes it down: no row that the tables have now needs a seal.
    static void declare(Database &database);

    bool all() const { return all_; }

    bool allows(const Table &table, std::int64_t key) const;

private:
    std::map<std::string, std::int64_t, std::less<>> last_;
    bool all_ = false;
};

/// The sound rows of a table whose keys are in [from, before), in their order. A row that isn't
/// sound is left out and counted, and so are those that continue it; a part of the file that SQLite
/// can't read is stepped over.
class Rows {
public:
    /// The table, the database and the other two must outlive it.
    Rows(Database &database, const Unsealed &unsealed, const Table &table, Damage &damage,
         std::int64_t from = 0, std::int64_t before = INT64_MAX);

    /// Whether there is one more. Throws DatabaseError for what is no damage.
    bool step();

    const Statement &row() const { return statement_; }

    /// Puts the row and its seal into another database, by that one's insert_into().
    void copy(Statement &insert) const;

    /// The row says what can't be: it isn't sound, after all.
    void reject();

    std::int64_t key() const { return next_ - 1; }

private:
    bool step_raw();
    bool check_seal();

    const Unsealed &unsealed_;
    const Table &table_;
    Damage &damage_;
    Statement statement_;
    int columns_;
    std::int64_t next_;
    std::int64_t before_;
    std::uint64_t stride_ = 1; ///< how far the next unreadable part is stepped over
    std::int64_t seal_ = 0;    ///< the previous row's
    bool continues_ = false;   ///< the row before was sound
};

} // namespace umacct::history
