// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/history/reader.h"

#include <algorithm>
#include <cerrno>
#include <initializer_list>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/history/layout.h"

namespace umacct::history {

namespace {

std::filesystem::path file_below(const std::filesystem::path &root) {
    auto file = root / folder / file_name;

    // access() leaves out the capability by which a service may read it. And to open and close it
    // would take away the locks that SQLite has on it in this process.
    if (faccessat(AT_FDCWD, file.c_str(), R_OK, AT_EACCESS) == 0)
        return file;
    if (errno == EACCES)
        throw Error(Failure::permission,
                    fmt::format("cannot read {}: permission denied", file.string()),
                    "it has what all users' programs held: it takes root");
    throw Error(Failure::missing,
                fmt::format("cannot read the history {}: {}", file.string(),
                            std::generic_category().message(errno)),
                "umacctd records it: systemctl enable --now umacctd");
}

/// Who may not write beside it can read it, too: while it is written by what the writer has there,
/// and else because nobody writes.
Database open_history(const Sqlite &lib, const std::filesystem::path &file) {
    try {
        Database database(lib, file, Database::Mode::read);

        database.number("PRAGMA user_version"); // which looks for the log
        return database;
    } catch (const DatabaseError &error) {
        if (!error.closed() || std::filesystem::exists(file.string() + "-wal"))
            throw;
    }
    return {lib, file, Database::Mode::read_still};
}

std::string text_of(const Statement &row, int column) {
    return std::string(row.bytes(column));
}

} // namespace

Reader::Reader(const std::filesystem::path &root)
    : lib_("cannot read the history"), database_(open_history(lib_, file_below(root))) {
    const std::int64_t version = database_.number("PRAGMA user_version");

    if (version != layout_version)
        throw Error(
            Failure::failed,
            fmt::format("cannot read the history: it has layout {}, and this umacct knows {}",
                        version, layout_version));
}

std::vector<Boot> Reader::boots() {
    Statement rows =
        database_.prepare("SELECT number, boot_id, started_ms, ended_ms FROM boot ORDER BY number");
    std::vector<Boot> boots;

    while (rows.step()) {
        Boot boot{
            .number = rows.number(0), .boot_id = text_of(rows, 1), .started_ms = rows.number(2)};

        if (!rows.is_null(3))
            boot.ended_ms = rows.number(3);
        bool any = false;
        const auto last = at(boot, INT64_MAX);
        if (!last)
            continue;
        boot.clock_ms = last->state.clock_ms;
        boot.last_ms = last->time_ms;
        for (std::size_t i = resolutions.size(); i-- > 0 && !any;) {
            const auto id = first_id(boot, i);

            if (id)
                read(boot, i, *id, *id + 1, {}, [&](const Moment &moment) {
                    boot.first_ms = moment.time_ms;
                    any = true;
                });
        }
        boots.push_back(std::move(boot));
    }
    return boots;
}

std::map<std::uint32_t, Named> Reader::accounts(const Boot &boot) {
    Statement rows = database_.prepare("SELECT key, id, path, owner FROM account WHERE boot = ?");
    std::map<std::uint32_t, Named> accounts;

    rows.bind(boot.number);
    while (rows.step())
        accounts[static_cast<std::uint32_t>(rows.number(0))] = {
            .id = static_cast<std::uint64_t>(rows.number(1)),
            .path = text_of(rows, 2),
            .owner = text_of(rows, 3)};
    return accounts;
}

std::optional<std::int64_t> Reader::first_id(const Boot &boot, std::size_t resolution) {
    // What comes before a whole one differs from a moment that is gone.
    Statement row = database_.prepare(
        fmt::format("SELECT id FROM {} WHERE id >= ? AND id < ? AND whole = 1 ORDER BY id LIMIT 1",
                    resolutions[resolution].table)
            .c_str());

    row.bind(id_of(boot.number, 0)).bind(id_of(boot.number + 1, 0));
    return row.step() ? std::optional(row.number(0)) : std::nullopt;
}

void Reader::read(const Boot &boot, std::size_t resolution, std::int64_t from_id,
                  std::int64_t before_id, const Range &range,
                  const std::function<void(const Moment &moment)> &visit) {
    const char *table = resolutions[resolution].table;
    Statement whole =
        database_.prepare(fmt::format("SELECT id FROM {} WHERE id <= ? AND id >= ? AND whole = 1 "
                                      "ORDER BY id DESC LIMIT 1",
                                      table)
                              .c_str());
    Statement rows = database_.prepare(
        fmt::format("SELECT id, whole, difference FROM {} WHERE id >= ? AND id < ? ORDER BY id",
                    table)
            .c_str());
    Moment moment{.interval_ms = resolutions[resolution].interval_ms};

    whole.bind(from_id).bind(id_of(boot.number, 0));
    rows.bind(whole.step() ? whole.number(0) : from_id).bind(before_id);
    while (rows.step()) {
        if (rows.number(1) != 0)
            moment.state = {};
        add_difference(moment.state, rows.bytes(2));
        moment.time_ms = moment.state.clock_ms + uptime_of(rows.number(0));
        if (rows.number(0) >= from_id && moment.time_ms >= range.since_ms &&
            moment.time_ms <= range.until_ms)
            visit(moment);
    }
}

void Reader::for_each(const Boot &boot, const Range &range,
                      const std::function<void(const Moment &moment)> &visit,
                      std::int64_t interval_ms) {
    std::int64_t from = id_of(boot.number, 0);
    const std::int64_t end = id_of(boot.number + 1, 0);

    // Where nobody set the clock, what is far before need not be read. An hour is for who did.
    from += std::max<std::int64_t>(range.since_ms - boot.clock_ms - 3'600'000, 0);
    for (std::size_t i = resolutions.size(); i-- > 0;) {
        const bool finest = i == 0 || resolutions[i - 1].interval_ms < interval_ms;
        const auto finer = finest ? std::nullopt : first_id(boot, i - 1);
        const std::int64_t before = finest ? end : finer.value_or(end);

        if (before > from)
            read(boot, i, from, before, range, visit);
        from = std::max(from, before);
        if (finest)
            break;
    }
}

std::optional<Moment> Reader::at(const Boot &boot, std::int64_t time_ms) {
    std::optional<Moment> found;
    const auto keep = [&](const Moment &moment) { found = moment; };

    if (time_ms == INT64_MAX) {
        for (std::size_t i = 0; i < resolutions.size() && !found; ++i) {
            Statement last = database_.prepare(
                fmt::format("SELECT max(id) FROM {} WHERE id >= ? AND id < ?", resolutions[i].table)
                    .c_str());

            last.bind(id_of(boot.number, 0)).bind(id_of(boot.number + 1, 0));
            if (last.step() && !last.is_null(0))
                read(boot, i, last.number(0), last.number(0) + 1, {}, keep);
        }
        return found;
    }
    // The coarsest has one every ten minutes.
    for (const std::int64_t back :
         std::initializer_list<std::int64_t>{60'000, 1'300'000, INT64_MAX / 2}) {
        for_each(boot, {.since_ms = std::max<std::int64_t>(time_ms - back, 0), .until_ms = time_ms},
                 keep);
        if (found)
            break;
    }
    return found;
}

std::vector<Happening> Reader::happenings(const Boot &boot, const Range &range, std::int64_t most,
                                          std::string_view type) {
    Statement rows = database_.prepare(
        fmt::format("SELECT time_ms, type, path, limit_path, comm, pid, size, usage, limit_bytes, "
                    "count, text FROM event WHERE boot = ? AND time_ms >= ? AND time_ms <= ?{} "
                    "ORDER BY id DESC LIMIT ?",
                    type.empty() ? "" : " AND type = ?")
            .c_str());
    std::vector<Happening> happenings;

    rows.bind(boot.number).bind(range.since_ms).bind(range.until_ms);
    if (!type.empty())
        rows.bind_text(type);
    rows.bind(most);
    while (rows.step())
        happenings.push_back({.time_ms = rows.number(0),
                              .type = text_of(rows, 1),
                              .path = text_of(rows, 2),
                              .limit_path = text_of(rows, 3),
                              .comm = text_of(rows, 4),
                              .pid = static_cast<std::uint32_t>(rows.number(5)),
                              .size = static_cast<std::uint64_t>(rows.number(6)),
                              .usage = static_cast<std::uint64_t>(rows.number(7)),
                              .limit = static_cast<std::uint64_t>(rows.number(8)),
                              .count = static_cast<std::uint64_t>(rows.number(9)),
                              .text = text_of(rows, 10)});
    std::reverse(happenings.begin(), happenings.end());
    return happenings;
}

} // namespace umacct::history
