// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/history/reader.h"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <initializer_list>
#include <system_error>
#include <utility>

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
                    "it covers all users' programs: run as root");
    throw Error(Failure::missing,
                fmt::format("cannot read the history {}: {}", file.string(),
                            std::generic_category().message(errno)),
                "umacctd records it: systemctl enable --now umacctd");
}

/// Opens the history for reading without write access to its folder: through the writer's shared
/// memory while there is a writer, and as an unchanging file otherwise.
Database open_history(const Sqlite &lib, const std::filesystem::path &file) {
    try {
        Database database(lib, file, Database::Mode::read);

        database.number("PRAGMA user_version"); // looks for the log
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
    : lib_("cannot read the history"),
      database_(open_history(lib_, file_below(root))),
      unsealed_(database_) {
    const std::int64_t version = database_.number("PRAGMA user_version");

    if (version != layout_version && version != layout_without_seals)
        throw Error(
            Failure::failed,
            fmt::format("cannot read the history: it has layout {}, and this umacct knows {}",
                        version, layout_version));
}

/// The samples say which there are: a boot's own record may be damaged.
std::set<std::int64_t> Reader::numbers_of_boots() {
    std::set<std::int64_t> numbers;

    for (std::size_t i = 0; i < resolutions.size(); ++i) {
        const Table table = sample_table(i);

        for (std::int64_t next = 0;;) {
            Rows rows(database_, unsealed_, table, damage_, id_of(next, 0));

            if (!rows.step() || boot_of(rows.key()) >= most_boots)
                break;
            numbers.insert(boot_of(rows.key()));
            next = boot_of(rows.key()) + 1;
        }
    }
    return numbers;
}

std::optional<Moment> Reader::last_moment(std::int64_t boot) {
    std::optional<Moment> found;

    for (std::size_t i = 0; i < resolutions.size(); ++i) {
        const std::int64_t first = id_of(boot, 0);
        const std::int64_t end = id_of(boot + 1, 0);
        std::int64_t last = end;

        try {
            Statement row = database_.prepare(
                fmt::format("SELECT max(id) FROM {} WHERE id >= ? AND id < ?", resolutions[i].table)
                    .c_str());

            row.bind(first).bind(end);
            if (row.step())
                last = row.number(0);
        } catch (const DatabaseError &error) {
            if (!error.damaged())
                throw;
        }
        std::optional<Moment> latest;
        // Tries the samples after the last whole one first, then all of the segment in case that
        // one is damaged.
        for (const std::int64_t from : {std::clamp(last, first, end), first}) {
            read(boot, i, from, end, [&](const Moment &moment) {
                latest = moment;
                return true;
            });
            if (latest)
                break;
        }
        if (latest && (!found || latest->uptime_ms > found->uptime_ms))
            found = latest;
    }
    return found;
}

std::optional<Moment> Reader::first_moment(std::int64_t boot) {
    std::optional<Moment> found;

    for (std::size_t i = 0; i < resolutions.size(); ++i) {
        read(boot, i, id_of(boot, 0), id_of(boot + 1, 0), [&](const Moment &moment) {
            if (!found || moment.uptime_ms < found->uptime_ms)
                found = moment;
            return false;
        });
    }
    return found;
}

std::vector<Boot> Reader::boots() {
    std::map<std::int64_t, Boot> boots;

    for (const std::int64_t number : numbers_of_boots()) {
        const auto first = first_moment(number);
        const auto last = last_moment(number);

        if (first && last)
            boots[number] = {.number = number,
                             .boot_id = {},
                             .started_ms = last->state.clock_ms,
                             .clock_ms = last->state.clock_ms,
                             .first_ms = last->state.clock_ms + first->uptime_ms,
                             .last_ms = last->state.clock_ms + last->uptime_ms};
    }
    Rows rows(database_, unsealed_, boot_table, damage_);
    while (rows.step()) {
        const auto found = boots.find(rows.key());

        if (found == boots.end())
            continue;
        found->second.boot_id = text_of(rows.row(), 1);
        found->second.started_ms = rows.row().number(2);
        if (!rows.row().is_null(3))
            found->second.ended_ms = rows.row().number(3);
    }
    std::vector<Boot> list;
    list.reserve(boots.size());
    for (auto &[number, boot] : boots)
        list.push_back(std::move(boot));
    return list;
}

std::map<std::uint32_t, Named> Reader::accounts(const Boot &boot) {
    Rows rows(database_, unsealed_, account_table, damage_);
    std::map<std::uint32_t, Named> accounts;

    while (rows.step()) {
        if (rows.row().number(1) == boot.number)
            accounts[static_cast<std::uint32_t>(rows.key())] = {
                .id = static_cast<std::uint64_t>(rows.row().number(2)),
                .path = text_of(rows.row(), 3),
                .owner = text_of(rows.row(), 4)};
    }
    return accounts;
}

/// Returns the key of the first sample of a boot at that resolution.
std::optional<std::int64_t> Reader::first_id(std::int64_t boot, std::size_t resolution) {
    std::optional<std::int64_t> found;

    read(boot, resolution, id_of(boot, 0), id_of(boot + 1, 0), [&](const Moment &moment) {
        found = id_of(boot, moment.uptime_ms);
        return false;
    });
    return found;
}

/// The moments of one resolution. time_ms is left as the clock of each had it.
void Reader::read(std::int64_t boot, std::size_t resolution, std::int64_t from_id,
                  std::int64_t before_id, const Visit &visit) {
    const Table table = sample_table(resolution);
    Moment moment{.interval_ms = resolutions[resolution].interval_ms};
    std::int64_t whole_id = id_of(boot, 0);

    try {
        Statement whole = database_.prepare(
            fmt::format("SELECT id FROM {} WHERE id <= ? AND id >= ? AND whole = 1 "
                        "ORDER BY id DESC LIMIT 1",
                        table.name)
                .c_str());

        whole.bind(from_id).bind(whole_id);
        whole_id = whole.step() ? whole.number(0) : from_id;
    } catch (const DatabaseError &error) {
        if (!error.damaged())
            throw;
    }
    Rows rows(database_, unsealed_, table, damage_, whole_id, before_id);
    while (rows.step()) {
        try {
            if (rows.row().number(1) != 0)
                moment.state = {};
            add_difference(moment.state, rows.row().bytes(2));
        } catch (const Error &) {
            rows.reject();
            continue;
        }
        moment.uptime_ms = uptime_of(rows.key());
        moment.time_ms = moment.state.clock_ms + moment.uptime_ms;
        if (rows.key() >= from_id && !visit(moment))
            return;
    }
}

void Reader::for_each(const Boot &boot, const Range &range,
                      const std::function<void(const Moment &moment)> &visit,
                      std::int64_t interval_ms) {
    const std::int64_t first = id_of(boot.number, 0);
    const std::int64_t end = id_of(boot.number + 1, 0);
    const auto id_at = [&](std::int64_t time_ms, std::int64_t more) {
        const std::int64_t uptime = std::clamp(time_ms, boot.clock_ms, boot.clock_ms + end - first);

        return std::min(first + (uptime - boot.clock_ms) + more, end);
    };
    std::int64_t from = id_at(range.since_ms, 0);
    const std::int64_t until = id_at(range.until_ms, 1);

    for (std::size_t i = resolutions.size(); i-- > 0;) {
        const bool finest = i == 0 || resolutions[i - 1].interval_ms < interval_ms;
        const auto finer = finest ? std::nullopt : first_id(boot.number, i - 1);
        const std::int64_t before = std::min(finest ? end : finer.value_or(end), until);

        if (before > from)
            read(boot.number, i, from, before, [&](const Moment &moment) {
                Moment its = moment;

                its.time_ms = boot.clock_ms + moment.uptime_ms;
                visit(its);
                return true;
            });
        from = std::max(from, before);
        if (finest)
            break;
    }
}

std::optional<Moment> Reader::at(const Boot &boot, std::int64_t time_ms) {
    std::optional<Moment> found;
    const std::int64_t until = std::min(time_ms, boot.last_ms);

    // The coarsest has one every ten minutes.
    for (const std::int64_t back :
         std::initializer_list<std::int64_t>{60'000, 1'300'000, INT64_MAX / 2}) {
        for_each(boot, {.since_ms = std::max<std::int64_t>(until - back, 0), .until_ms = until},
                 [&](const Moment &moment) { found = moment; });
        if (found)
            break;
    }
    return found;
}

std::vector<Happening> Reader::happenings(const Boot &boot, const Range &range, std::int64_t most,
                                          std::string_view type) {
    Rows rows(database_, unsealed_, event_table, damage_);
    std::deque<Happening> happenings;

    while (rows.step()) {
        const Statement &row = rows.row();
        // The first layout had but the clock's time.
        const std::int64_t time_ms =
            row.is_null(2) ? row.number(13) : boot.clock_ms + row.number(2);

        if (row.number(1) != boot.number || time_ms < range.since_ms || time_ms > range.until_ms ||
            (!type.empty() && row.bytes(3) != type))
            continue;
        happenings.push_back({.time_ms = time_ms,
                              .type = text_of(row, 3),
                              .path = text_of(row, 4),
                              .limit_path = text_of(row, 5),
                              .comm = text_of(row, 6),
                              .pid = static_cast<std::uint32_t>(row.number(7)),
                              .size = static_cast<std::uint64_t>(row.number(8)),
                              .usage = static_cast<std::uint64_t>(row.number(9)),
                              .limit = static_cast<std::uint64_t>(row.number(10)),
                              .count = static_cast<std::uint64_t>(row.number(11)),
                              .text = text_of(row, 12)});
        if (static_cast<std::int64_t>(happenings.size()) > most)
            happenings.pop_front();
    }
    return {happenings.begin(), happenings.end()};
}

} // namespace umacct::history
