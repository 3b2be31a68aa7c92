// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/host/sqlite.h"

#include <cstdint>
#include <string>

#include <fmt/format.h>

namespace umacct {

namespace {

/// How long a reader waits for the writer, who never holds on for long, and the other way round.
constexpr int busy_ms = 2000;

/// SQLITE_TRANSIENT, which C makes of a number: SQLite copies the value.
// NOLINTNEXTLINE(performance-no-int-to-ptr)
const auto copied = reinterpret_cast<sqlite3_destructor_type>(std::intptr_t{-1});

/// URI with options for SQLite.
std::string still(const std::filesystem::path &file) {
    std::string uri = "file:";

    for (const char c : std::filesystem::absolute(file).string()) {
        if (c == '?' || c == '#' || c == '%')
            uri += fmt::format("%{:02x}", static_cast<unsigned int>(c));
        else
            uri += c;
    }
    return uri + "?immutable=1";
}

} // namespace

Statement::Statement(const Sqlite &lib, sqlite3 *database, const char *text)
    : lib_(&lib), database_(database), statement_(nullptr, Finalize{&lib}) {
    sqlite3_stmt *raw = nullptr;
    const int code = lib.prepare(database, text, -1, &raw, nullptr);

    statement_.reset(raw);
    check(code);
}

void Statement::check(int code) const {
    if (code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE)
        throw DatabaseError(code, lib_->message(database_));
}

Statement &Statement::bind(std::int64_t value) {
    check(lib_->bind_number(statement_.get(), ++bound_, value));
    return *this;
}

Statement &Statement::bind_text(std::string_view value) {
    check(lib_->bind_text(statement_.get(), ++bound_, value.data(), static_cast<int>(value.size()),
                          copied));
    return *this;
}

Statement &Statement::bind_blob(std::string_view value) {
    check(lib_->bind_blob(statement_.get(), ++bound_, value.data(), static_cast<int>(value.size()),
                          copied));
    return *this;
}

Statement &Statement::bind_null() {
    check(lib_->bind_null(statement_.get(), ++bound_));
    return *this;
}

bool Statement::step() {
    const int code = lib_->step(statement_.get());

    check(code);
    return code == SQLITE_ROW;
}

void Statement::run() {
    try {
        step();
    } catch (const DatabaseError &) {
        reset();
        throw;
    }
    reset();
}

void Statement::reset() {
    // Its result is the last step's error, which was thrown then.
    lib_->reset(statement_.get());
    bound_ = 0;
}

bool Statement::is_null(int column) const {
    return lib_->column_type(statement_.get(), column) == SQLITE_NULL;
}

bool Statement::is_number(int column) const {
    return lib_->column_type(statement_.get(), column) == SQLITE_INTEGER;
}

bool Statement::is_text(int column) const {
    return lib_->column_type(statement_.get(), column) == SQLITE_TEXT;
}

std::int64_t Statement::number(int column) const {
    return lib_->column_number(statement_.get(), column);
}

std::string_view Statement::bytes(int column) const {
    const void *bytes = lib_->column_blob(statement_.get(), column);

    if (bytes == nullptr)
        return {};
    return {static_cast<const char *>(bytes),
            static_cast<std::size_t>(lib_->column_size(statement_.get(), column))};
}

Database::Database(const Sqlite &lib, const std::filesystem::path &file, Mode mode)
    : lib_(&lib), database_(nullptr, Close{&lib}) {
    sqlite3 *raw = nullptr;
    const int flags = mode == Mode::write  ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                      : mode == Mode::read ? SQLITE_OPEN_READONLY
                                           : SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
    const std::string name = mode == Mode::read_still ? still(file) : file.string();
    const int code = lib.open_file(name.c_str(), &raw, flags | SQLITE_OPEN_NOMUTEX, nullptr);

    database_.reset(raw);
    if (code != SQLITE_OK)
        throw DatabaseError(code, fmt::format("{}: {}", file.string(),
                                              raw == nullptr ? "no memory" : lib.message(raw)));
    lib.busy_timeout(raw, busy_ms);
}

void Database::run(const char *statements) {
    const int code = lib_->exec(database_.get(), statements, nullptr, nullptr, nullptr);

    if (code != SQLITE_OK)
        throw DatabaseError(code, lib_->message(database_.get()));
}

std::int64_t Database::number(const char *query) {
    Statement statement = prepare(query);

    return statement.step() ? statement.number(0) : 0;
}

} // namespace umacct
