// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/owners/runtimes.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/host/sqlite.h"

namespace umacct {

namespace {

/// Older and newer Podmans' places, below the storage folder.
constexpr const char *places[] = {"db.sql", "libpod/db.sql"};
constexpr const char *query = "SELECT ID, JSON FROM ContainerConfig ORDER BY ID";

/// Loaded when there is a container of Podman's. Null where it is missing, which it isn't beside
/// a Podman that is linked with it: labels are unknown then.
const Sqlite *lib() {
    static const auto loaded = []() -> std::optional<Sqlite> {
        try {
            return std::optional<Sqlite>(std::in_place,
                                         "what Podman's containers are called isn't known");
        } catch (const Error &) {
            return std::nullopt;
        }
    }();

    return loaded ? &*loaded : nullptr;
}

struct Close {
    void operator()(sqlite3 *database) const { lib()->close(database); }

    void operator()(sqlite3_stmt *rows) const { lib()->finalize(rows); }
};

/// The database is the text, which is not written to: no file is opened, and none is locked.
std::unique_ptr<sqlite3, Close> open_text(const std::string &text) {
    sqlite3 *raw = nullptr;
    const int opened = lib()->open(":memory:", &raw);
    std::unique_ptr<sqlite3, Close> database(raw);
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): SQLITE_DESERIALIZE_READONLY
    auto *bytes = reinterpret_cast<unsigned char *>(const_cast<char *>(text.data()));
    const auto size = static_cast<sqlite3_int64>(text.size());

    // Its owner may have put views and triggers into it.
    if (opened != SQLITE_OK ||
        lib()->configure(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr) != SQLITE_OK ||
        lib()->deserialize(raw, "main", bytes, size, size, SQLITE_DESERIALIZE_READONLY) !=
            SQLITE_OK)
        return nullptr;
    return database;
}

std::unique_ptr<sqlite3_stmt, Close> rows_of(sqlite3 *database) {
    sqlite3_stmt *rows = nullptr;

    lib()->prepare(database, query, -1, &rows, nullptr);
    return std::unique_ptr<sqlite3_stmt, Close>(rows);
}

/// Podman writes text as a blob.
std::string column_of(sqlite3_stmt *row, int column) {
    const void *bytes = lib()->column_blob(row, column);

    if (bytes == nullptr)
        return "";
    return {static_cast<const char *>(bytes),
            static_cast<std::size_t>(lib()->column_size(row, column))};
}

Description description_in(const std::string &config) {
    Description found;
    const bool is_json = for_each_json_string(config, [&](auto keys, const std::string &value) {
        if (keys.size() == 1 && keys[0] == "name")
            found.name = value;
        else if (keys.size() == 1 && keys[0] == "rootfsImageName")
            found.image = value;
        else if (keys.size() == 2 && keys[0] == "labels")
            found.add_label(keys[1], value);
    });

    return is_json ? found : Description();
}

} // namespace

std::optional<Description> container_in_database(StateFiles &files,
                                                 const std::filesystem::path &storage,
                                                 const std::string &id, std::optional<uid_t> user) {
    // Loaded before a child uses it, which can't load it any more.
    if (lib() == nullptr)
        return std::nullopt;
    for (const char *place : places) {
        const StateFiles::Lines &lines = files.ask(storage / place, read_podman_database, user);

        if (lines.empty())
            continue;
        const std::string key = id + ' ';
        const auto key_of = [&](std::string_view line) { return line.substr(0, key.size()); };
        std::vector<std::string> texts;
        for (auto line = std::ranges::lower_bound(lines, key, {}, key_of);
             line != lines.end() && line->starts_with(key); ++line)
            texts.push_back(line->substr(key.size()));
        return Description::of(texts);
    }
    return std::nullopt;
}

std::string read_podman_database(const std::string &text) {
    const auto database = lib() != nullptr ? open_text(text) : nullptr;
    const auto rows = database ? rows_of(database.get()) : nullptr;
    std::string answer = "\n";

    if (!rows)
        return "";
    int more = SQLITE_ROW;
    while ((more = lib()->step(rows.get())) == SQLITE_ROW) {
        const std::string id = column_of(rows.get(), 0);

        if (!is_container_id(id))
            continue;
        std::istringstream lines(description_in(column_of(rows.get(), 1)).lines());
        for (std::string line; std::getline(lines, line);)
            answer.append(id).append(1, ' ').append(line).append(1, '\n');
    }
    return more == SQLITE_DONE ? answer : "";
}

} // namespace umacct
