// SPDX-License-Identifier: GPL-2.0-or-later
/// Databases as Podman and others leave them behind.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <sqlite3.h>

namespace umacct::test {

/// The file that a database would be after this SQL.
inline std::string database(const std::string &sql) {
    sqlite3 *raw = nullptr;
    const int opened = sqlite3_open(":memory:", &raw);
    const std::unique_ptr<sqlite3, int (*)(sqlite3 *)> open(raw, sqlite3_close);

    if (opened != SQLITE_OK || sqlite3_exec(raw, sql.c_str(), nullptr, nullptr, nullptr) != 0)
        throw std::runtime_error(sqlite3_errmsg(raw));
    sqlite3_int64 size = 0;
    const std::unique_ptr<unsigned char, void (*)(void *)> bytes(
        sqlite3_serialize(raw, "main", &size, 0), sqlite3_free);
    return {bytes.get(), bytes.get() + size};
}

/// Containers' ids and what Podman writes down about them, as a blob.
inline std::string
podman_database(const std::vector<std::pair<std::string, std::string>> &containers) {
    std::string sql = "CREATE TABLE ContainerConfig(ID TEXT PRIMARY KEY NOT NULL, JSON TEXT);";

    for (const auto &[id, config] : containers)
        sql.append("INSERT INTO ContainerConfig VALUES('")
            .append(id)
            .append("', CAST('")
            .append(config)
            .append("' AS BLOB));");
    return database(sql);
}

} // namespace umacct::test
