// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/history/writer.h"

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <umacct.h>

#include "lib/error.h"
#include "lib/units.h"

namespace umacct::history {

namespace {

constexpr const char *schema = R"(
CREATE TABLE IF NOT EXISTS boot (number INTEGER PRIMARY KEY, boot_id TEXT UNIQUE NOT NULL,
    started_ms INTEGER NOT NULL, ended_ms INTEGER);
CREATE TABLE IF NOT EXISTS account (key INTEGER PRIMARY KEY, boot INTEGER NOT NULL,
    id INTEGER NOT NULL, path TEXT NOT NULL, owner TEXT);
CREATE TABLE IF NOT EXISTS event (id INTEGER PRIMARY KEY, boot INTEGER NOT NULL,
    time_ms INTEGER NOT NULL, type TEXT NOT NULL, path TEXT, limit_path TEXT, comm TEXT,
    pid INTEGER, size INTEGER, usage INTEGER, limit_bytes INTEGER, count INTEGER, text TEXT);
)";

/// The log is put into the file when it has so many pages, and then begun again.
constexpr int log_pages = 512;
constexpr std::int64_t page_size = 4096;
/// What the log and its index may have at the most: a commit may add to it before it is put away.
constexpr std::int64_t log_bytes = 4LL << 20;

/// What moves less than this is no news: memory.current of an idle service is never still.
constexpr std::uint64_t noise = 64U << 10;

/// So many accounts are remembered that hold nothing any more.
constexpr std::size_t most_known = 1024;

/// When an account's name is asked for, after it came. Its runtime may write it down late.
constexpr std::array<std::int64_t, 3> ask_after_ms{2'000, 15'000, 120'000};

std::filesystem::path with_suffix(std::filesystem::path file, const char *suffix) {
    file += suffix;
    return file;
}

/// The value, but for noise the last one.
std::uint64_t calm(std::uint64_t last, std::uint64_t now) {
    return std::max(last, now) - std::min(last, now) < noise ? last : now;
}

} // namespace

Writer::Writer(const Sqlite &lib, std::filesystem::path file, std::string boot_id,
               std::int64_t started_ms, Tell tell, Bounds bounds)
    : lib_(lib),
      file_(std::move(file)),
      boot_id_(std::move(boot_id)),
      started_ms_(started_ms),
      tell_(std::move(tell)),
      bounds_(bounds) {
    open_or_set_aside();
}

void Writer::forget_state() {
    put_account_.reset();
    put_name_.reset();
    put_event_.reset();
    tracks_ = {};
    known_.clear();
    reserve_.reset();
    now_ = {};
    database_.reset();
}

void Writer::open_or_set_aside() {
    std::string why = "it is damaged";

    try {
        open();
        if (database_->number("PRAGMA user_version") == layout_version)
            return;
        why = "another version of umacct wrote it";
    } catch (const DatabaseError &error) {
        if (!error.damaged())
            throw;
        why = fmt::format("it is damaged ({})", error.what());
    }
    forget_state();

    const auto aside = with_suffix(file_, ".damaged");
    std::error_code error;
    // The log is of that file, and would spoil another one.
    for (const char *part : {"-wal", "-shm", ""}) {
        std::filesystem::rename(with_suffix(file_, part), with_suffix(aside, part), error);
        if (error && *part == '\0')
            throw Error(Failure::failed, fmt::format("cannot set {} aside, where {}: {}",
                                                     file_.string(), why, error.message()));
    }
    tell_(fmt::format("history: {} is set aside as {}: {}", file_.string(), aside.string(), why));
    open();
}

void Writer::open() {
    const bool is_new = !std::filesystem::exists(file_);

    database_.emplace(lib_, file_, Database::Mode::write);
    Database &database = *database_;
    // Of all users' programs: it is nobody else's. SQLite gives its log the same.
    std::filesystem::permissions(file_, std::filesystem::perms::owner_read |
                                            std::filesystem::perms::owner_write);

    // FULL has each commit wait for the disk: NORMAL would leave the last half minute in the
    // page cache, which is what a power cut takes.
    database.run("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA mmap_size = 0;"
                 "PRAGMA temp_store = MEMORY; PRAGMA cache_size = -1024;");
    database.run(fmt::format("PRAGMA wal_autocheckpoint = {}; PRAGMA journal_size_limit = {};"
                             "PRAGMA max_page_count = {};",
                             log_pages, log_bytes / 2,
                             std::max<std::int64_t>((bounds_.bytes - log_bytes) / page_size, 64))
                     .c_str());
    if (!is_new) {
        Statement check = database.prepare("PRAGMA quick_check(1)");

        if (check.step() && check.bytes(0) != "ok")
            throw DatabaseError(SQLITE_CORRUPT, std::string(check.bytes(0)));
        if (database.number("PRAGMA user_version") != layout_version &&
            database.number("SELECT count(*) FROM sqlite_schema") > 0)
            return;
    }
    database.run("BEGIN IMMEDIATE");
    database.run(schema);
    for (const Resolution &resolution : resolutions)
        database.run(fmt::format("CREATE TABLE IF NOT EXISTS {} (id INTEGER PRIMARY KEY, "
                                 "whole INTEGER NOT NULL, difference BLOB NOT NULL)",
                                 resolution.table)
                         .c_str());
    database.run(fmt::format("PRAGMA user_version = {}", layout_version).c_str());
    database.run("COMMIT");

    for (std::size_t i = 0; i < resolutions.size(); ++i) {
        const char *table = resolutions[i].table;

        tracks_[i].insert.emplace(database.prepare(
            fmt::format("INSERT OR REPLACE INTO {} VALUES (?, ?, ?)", table).c_str()));
        tracks_[i].rows = database.number(fmt::format("SELECT count(*) FROM {}", table).c_str());
    }
    put_account_.emplace(database.prepare("INSERT INTO account (boot, id, path) VALUES (?, ?, ?)"));
    put_name_.emplace(database.prepare("UPDATE account SET owner = ? WHERE key = ?"));
    put_event_.emplace(
        database.prepare("INSERT INTO event VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
    events_ = database.number("SELECT count(*) FROM event");
    begin_boot();
}

void Writer::begin_boot() {
    Statement add = database_->prepare("INSERT INTO boot (boot_id, started_ms) VALUES (?, ?) "
                                       "ON CONFLICT (boot_id) DO UPDATE SET ended_ms = NULL");
    Statement find = database_->prepare("SELECT number FROM boot WHERE boot_id = ?");

    add.bind_text(boot_id_).bind(started_ms_).run();
    find.bind_text(boot_id_);
    boot_ = find.step() ? find.number(0) : 0;

    // Another umacctd may have seen them.
    Statement accounts =
        database_->prepare("SELECT id, key, path FROM account WHERE boot = ? ORDER BY key");
    accounts.bind(boot_);
    while (accounts.step())
        known_[static_cast<std::uint64_t>(accounts.number(0))] = {
            .key = static_cast<std::uint32_t>(accounts.number(1)),
            .path = std::string(accounts.bytes(2)),
            .last = {},
            .names_asked = static_cast<int>(ask_after_ms.size())};
}

void Writer::end() {
    Statement end = database_->prepare("UPDATE boot SET ended_ms = ? WHERE number = ?");

    end.bind(now_.clock_ms + std::max<std::int64_t>(tracks_[0].last_ms, 0)).bind(boot_).run();
}

void Writer::write(std::span<const Sample *const> samples, std::span<const Happening> happenings) {
    for (int attempt = 1;; ++attempt) {
        try {
            commit(samples, happenings);
            forget_old();
            return;
        } catch (const DatabaseError &error) {
            if (attempt == 3 || (!error.damaged() && !error.full()))
                throw;
            if (error.full() && !forget_segment(0) && !forget_segment(1) && !forget_segment(2) &&
                !forget_segment(3))
                throw;
            if (error.damaged())
                open_or_set_aside();
        }
    }
}

void Writer::commit(std::span<const Sample *const> samples, std::span<const Happening> happenings) {
    database_->run("BEGIN IMMEDIATE");
    try {
        for (const Sample *sample : samples)
            put(*sample);
        for (const Happening &happening : happenings)
            put(happening);
        database_->run("COMMIT");
    } catch (...) {
        // What was written isn't there: whole samples come next.
        for (Track &track : tracks_) {
            track.since_whole = whole_every;
            track.last_ms = -1;
        }
        known_.clear();
        try {
            database_->run("ROLLBACK");
        } catch (const DatabaseError &) { // NOLINT(bugprone-empty-catch): SQLite did it already
        }
        throw;
    }
}

Writer::Known &Writer::known(const Sample &sample, const Sample::Account &account) {
    const auto found = known_.find(account.id);

    if (found != known_.end() && found->second.path == account.path)
        return found->second;
    put_account_->bind(boot_)
        .bind(static_cast<std::int64_t>(account.id))
        .bind_text(account.path)
        .run();
    Known &known = known_[account.id];
    known = {.key = static_cast<std::uint32_t>(database_->last_id()),
             .path = account.path,
             .last = {},
             .first_ms = sample.uptime_ms};
    return known;
}

void Writer::put(const Sample &sample) {
    State now;

    now.clock_ms = sample.time_ms - sample.uptime_ms;
    // It wanders by the milliseconds that reading both clocks takes.
    if (std::max(now.clock_ms, now_.clock_ms) - std::min(now.clock_ms, now_.clock_ms) < 50)
        now.clock_ms = now_.clock_ms;
    now.machine = sample.machine;
    for (std::size_t i = 0; i < sample.count; ++i) {
        const Sample::Account &account = sample.accounts[i];
        Known &its = known(sample, account);
        Holdings holdings = account.holdings;

        if (its.last) {
            note_changes(sample, account, *its.last);
            for (const Holding calmed : {Holding::current, Holding::cache})
                holdings[calmed] = calm((*its.last)[calmed], holdings[calmed]);
        }
        its.last = holdings;
        now.accounts.emplace(its.key, holdings);
    }
    const std::uint64_t reserve = now.machine[Figure::reserve];
    if (reserve_ && *reserve_ != reserve)
        put({.time_ms = sample.time_ms,
             .type = "limits_changed",
             .limit = reserve,
             .text =
                 fmt::format("reserve: {} -> {}", format_size(*reserve_), format_size(reserve))});
    reserve_ = reserve;

    for (std::size_t i = 0; i < tracks_.size(); ++i) {
        Track &track = tracks_[i];

        // Half a turn of the finest is what it may be late.
        if (track.last_ms >= 0 && sample.uptime_ms - track.last_ms <
                                      resolutions[i].interval_ms - resolutions[0].interval_ms / 2)
            continue;
        const bool whole = track.last_ms < 0 || track.since_whole + 1 >= whole_every;
        track.insert->bind(id_of(boot_, sample.uptime_ms))
            .bind(whole ? 1 : 0)
            .bind_blob(difference(whole ? State() : track.last, now))
            .run();
        segment_ended_ = segment_ended_ || whole;
        track.since_whole = whole ? 0 : track.since_whole + 1;
        track.last_ms = sample.uptime_ms;
        track.last = now;
        ++track.rows;
    }
    now_ = std::move(now);
    if (known_.size() > most_known)
        std::erase_if(
            known_, [this](const auto &each) { return !now_.accounts.contains(each.second.key); });
}

void Writer::note_changes(const Sample &sample, const Sample::Account &account,
                          const Holdings &last) {
    std::string text;

    for (const auto &[holding, title] :
         {std::pair{Holding::hard, "hard limit"}, {Holding::soft, "soft limit"}}) {
        const auto words = [holding = holding](const Holdings &holdings) {
            return format_limit(holdings[holding] == UMACCT_UNLIMITED ? Limit()
                                                                      : Limit(holdings[holding]));
        };

        if (last[holding] != account.holdings[holding])
            text += fmt::format("{}{}: {} -> {}", text.empty() ? "" : ", ", title, words(last),
                                words(account.holdings));
    }
    if (!text.empty())
        put({.time_ms = sample.time_ms,
             .type = "limits_changed",
             .path = account.path,
             .limit = account.holdings[Holding::hard],
             .text = text});
}

void Writer::put(const Happening &happening) {
    put_event_->bind(boot_)
        .bind(happening.time_ms)
        .bind_text(happening.type)
        .bind_text(happening.path)
        .bind_text(happening.limit_path)
        .bind_text(happening.comm)
        .bind(happening.pid)
        .bind(static_cast<std::int64_t>(happening.size))
        .bind(static_cast<std::int64_t>(happening.usage))
        .bind(static_cast<std::int64_t>(happening.limit))
        .bind(static_cast<std::int64_t>(happening.count))
        .bind_text(happening.text)
        .run();
    ++events_;
}

void Writer::name_accounts(const Name &name) {
    for (auto &[id, account] : known_) {
        const auto asked = static_cast<std::size_t>(account.names_asked);

        if (asked >= ask_after_ms.size() ||
            tracks_[0].last_ms - account.first_ms < ask_after_ms[asked])
            continue;
        ++account.names_asked;
        const std::string words = name(account.path);
        if (words.empty())
            continue;
        account.names_asked = static_cast<int>(ask_after_ms.size());
        put_name_->bind_text(words).bind(account.key).run();
    }
}

std::int64_t Writer::bytes_used() {
    return (database_->number("PRAGMA page_count") - database_->number("PRAGMA freelist_count")) *
           page_size;
}

/// The oldest rows, as far as the next whole one: those after it go on being understood.
/// Whether there were any.
bool Writer::forget_segment(std::size_t resolution) {
    const char *table = resolutions[resolution].table;
    Statement find = database_->prepare(
        fmt::format("SELECT id FROM {0} WHERE whole = 1 AND id > (SELECT min(id) FROM {0}) "
                    "ORDER BY id LIMIT 1",
                    table)
            .c_str());

    if (!find.step())
        return false;
    const std::int64_t id = find.number(0);
    find.reset();
    Statement erase = database_->prepare(fmt::format("DELETE FROM {} WHERE id < ?", table).c_str());
    erase.bind(id).run();
    tracks_[resolution].rows -= database_->number("SELECT changes()");
    return true;
}

void Writer::forget_old() {
    // Only now and then is there something.
    if (!std::exchange(segment_ended_, false))
        return;
    for (std::size_t i = 0; i < tracks_.size(); ++i) {
        while (tracks_[i].rows > bounds_.rows[i] && forget_segment(i)) {
        }
    }
    // A tenth is left, so that SQLite, which has the bound, never has to say no.
    const std::int64_t most = (bounds_.bytes - log_bytes) / 10 * 9;
    for (std::size_t i = 0; i < tracks_.size(); ++i) {
        while (bytes_used() > most && forget_segment(i)) {
        }
    }
    if (events_ > bounds_.events) {
        // What tenants cause in numbers leaves the guard's steps and changes of limits, which have
        // words, where they are.
        for (const char *kind : {"=", "<>"}) {
            Statement erase = database_->prepare(
                fmt::format("DELETE FROM event WHERE text {0} '' AND id <= (SELECT id FROM event "
                            "WHERE text {0} '' ORDER BY id DESC LIMIT 1 OFFSET ?)",
                            kind)
                    .c_str());

            erase.bind(bounds_.events).run();
        }
        events_ = database_->number("SELECT count(*) FROM event");
    }
    // Somebody may make cgroups all day. The names of those that are there stay.
    if (database_->number("SELECT max(key) - min(key) FROM account") > 2 * bounds_.events) {
        std::string there = "0";

        for (const auto &[key, holdings] : now_.accounts)
            there += fmt::format(",{}", key);
        Statement erase = database_->prepare(
            fmt::format("DELETE FROM account WHERE key <= (SELECT max(key) FROM account) - ? "
                        "AND key NOT IN ({})",
                        there)
                .c_str());

        erase.bind(bounds_.events).run();
    }
    // Whom no sample names any more, nor starts of the machine without any.
    if (tracks_.back().since_whole == 0) {
        Statement oldest = database_->prepare("SELECT min(id) >> 41 FROM sample_10min");
        const std::int64_t boot = oldest.step() ? oldest.number(0) : 0;
        Statement accounts = database_->prepare("DELETE FROM account WHERE boot < ?");
        Statement boots = database_->prepare("DELETE FROM boot WHERE number < ?");

        oldest.reset();
        accounts.bind(boot).run();
        boots.bind(boot).run();
    }
}

} // namespace umacct::history
