// SPDX-License-Identifier: GPL-2.0-or-later
/// SQLite, which is loaded when it is needed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include <sqlite3.h>

#include "lib/error.h"
#include "lib/host/library.h"

namespace umacct {

struct Sqlite {
    Library library;
    decltype(&sqlite3_config) config = library.find("sqlite3_config");
    decltype(&sqlite3_open) open = library.find("sqlite3_open");
    decltype(&sqlite3_open_v2) open_file = library.find("sqlite3_open_v2");
    decltype(&sqlite3_db_config) configure = library.find("sqlite3_db_config");
    decltype(&sqlite3_busy_timeout) busy_timeout = library.find("sqlite3_busy_timeout");
    decltype(&sqlite3_deserialize) deserialize = library.find("sqlite3_deserialize");
    decltype(&sqlite3_exec) exec = library.find("sqlite3_exec");
    decltype(&sqlite3_errmsg) message = library.find("sqlite3_errmsg");
    decltype(&sqlite3_last_insert_rowid) last_id = library.find("sqlite3_last_insert_rowid");
    decltype(&sqlite3_prepare_v2) prepare = library.find("sqlite3_prepare_v2");
    decltype(&sqlite3_bind_int64) bind_number = library.find("sqlite3_bind_int64");
    decltype(&sqlite3_bind_null) bind_null = library.find("sqlite3_bind_null");
    decltype(&sqlite3_bind_text) bind_text = library.find("sqlite3_bind_text");
    decltype(&sqlite3_bind_blob) bind_blob = library.find("sqlite3_bind_blob");
    decltype(&sqlite3_step) step = library.find("sqlite3_step");
    decltype(&sqlite3_reset) reset = library.find("sqlite3_reset");
    decltype(&sqlite3_column_type) column_type = library.find("sqlite3_column_type");
    decltype(&sqlite3_column_int64) column_number = library.find("sqlite3_column_int64");
    decltype(&sqlite3_column_blob) column_blob = library.find("sqlite3_column_blob");
    decltype(&sqlite3_column_bytes) column_size = library.find("sqlite3_column_bytes");
    decltype(&sqlite3_finalize) finalize = library.find("sqlite3_finalize");
    decltype(&sqlite3_close_v2) close = library.find("sqlite3_close_v2");

    /// without: the consequence of a missing library, for errors. Throws Error (failed) if it is
    /// missing.
    explicit Sqlite(const char *without) : library("libsqlite3.so.0", without) {}
};

/// An error of a database. code(): SQLite's.
class DatabaseError : public Error {
public:
    DatabaseError(int code, const std::string &what)
        : Error(Failure::failed, what), code_(code & 0xff) {}

    /// The file is not what it was: no database, or not a whole one.
    bool damaged() const { return code_ == SQLITE_CORRUPT || code_ == SQLITE_NOTADB; }

    /// No room for more: of the file's own bound, or of the disk.
    bool full() const { return code_ == SQLITE_FULL; }

    /// It, or what SQLite makes beside it, can't be opened, or not be written.
    bool closed() const { return code_ == SQLITE_CANTOPEN || code_ == SQLITE_READONLY; }

private:
    int code_;
};

/// One statement, prepared once. Every call may throw DatabaseError.
class Statement {
public:
    Statement(const Sqlite &lib, sqlite3 *database, const char *text);

    /// Values for the question marks, in their order; before step().
    Statement &bind(std::int64_t value);
    Statement &bind_text(std::string_view value);
    Statement &bind_blob(std::string_view value);
    Statement &bind_null();

    /// Whether there is a row.
    bool step();
    /// Runs a statement that returns no rows, and makes it ready to be bound again.
    void run();
    /// Forgets what was bound and the row.
    void reset();

    bool is_null(int column) const;
    bool is_number(int column) const;
    bool is_text(int column) const;
    std::int64_t number(int column) const;
    /// Returns a text or a blob; valid until the next call.
    std::string_view bytes(int column) const;

private:
    struct Finalize {
        const Sqlite *lib;

        void operator()(sqlite3_stmt *statement) const { lib->finalize(statement); }
    };

    void check(int code) const;

    const Sqlite *lib_;
    sqlite3 *database_;
    std::unique_ptr<sqlite3_stmt, Finalize> statement_;
    int bound_ = 0;
};

/// An open database file. Every call may throw DatabaseError.
class Database {
public:
    enum class Mode {
        read,
        write,
        read_still ///< an unchanging file: nothing is created beside it
    };

    Database(const Sqlite &lib, const std::filesystem::path &file, Mode mode);

    void run(const char *statements);

    Statement prepare(const char *text) { return {*lib_, database_.get(), text}; }

    /// The first column of the first row; 0 where there is none.
    std::int64_t number(const char *query);

    std::int64_t last_id() const { return lib_->last_id(database_.get()); }

private:
    struct Close {
        const Sqlite *lib;

        void operator()(sqlite3 *database) const { lib->close(database); }
    };

    const Sqlite *lib_;
    std::unique_ptr<sqlite3, Close> database_;
};

} // namespace umacct
