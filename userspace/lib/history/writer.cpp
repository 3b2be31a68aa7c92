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
    started_ms INTEGER NOT NULL, ended_ms INTEGER, seal INTEGER);
CREATE TABLE IF NOT EXISTS account (key INTEGER PRIMARY KEY, boot INTEGER NOT NULL,
    id INTEGER NOT NULL, path TEXT NOT NULL, owner TEXT, seal INTEGER);
CREATE TABLE IF NOT EXISTS event (id INTEGER PRIMARY KEY, boot INTEGER NOT NULL,
    time_ms INTEGER NOT NULL, type TEXT NOT NULL, path TEXT, limit_path TEXT, comm TEXT,
    pid INTEGER, size INTEGER, usage INTEGER, limit_bytes INTEGER, count INTEGER, text TEXT,
    uptime_ms INTEGER, seal INTEGER);
CREATE TABLE IF NOT EXISTS unsealed (name TEXT, last INTEGER);
)";

/// Pages in the log at which it is merged into the file.
constexpr int log_pages = 512;
constexpr std::int64_t page_size = 4096;
/// Largest size of the log with its index; one commit may exceed it until the next checkpoint.
constexpr std::int64_t log_bytes = 4LL << 20;

/// Smallest change that is recorded: memory.current of an idle service always moves a little.
constexpr std::uint64_t noise = 64U << 10;

/// Number of remembered accounts that hold nothing any more.
constexpr std::size_t most_known = 1024;

/// Largest age of an event before the sample that it is written with, and after it:
/// the disk may have hung in between.
constexpr std::int64_t most_delay_ms = 120'000;
constexpr std::int64_t most_ahead_ms = 5000;

/// Delays after an account's first sample at which its name is looked up: its runtime may write it
/// late.
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
    put_boot_.reset();
    put_account_.reset();
    put_event_.reset();
    tracks_ = {};
    known_.clear();
    reserve_.reset();
    now_ = {};
    database_.reset();
}

void Writer::open_or_set_aside() {
    const bool is_new = !std::filesystem::exists(file_);
    std::string why = "another version of umacct wrote it";

    try {
        open();
        if (make_tables(is_new)) {
            prepare();
            return;
        }
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
    open();
    make_tables(true);
    const std::int64_t saved = salvage(aside);
    prepare();
    tell_(fmt::format("history: {} is set aside as {}: {}; {} of its records are kept",
                      file_.string(), aside.string(), why, saved));
}

void Writer::open() {
    database_.emplace(lib_, file_, Database::Mode::write);
    // Owner only: the history covers all users' programs. SQLite gives its log the same mode.
    std::filesystem::permissions(file_, std::filesystem::perms::owner_read |
                                            std::filesystem::perms::owner_write);

    // FULL has each commit wait for the disk: NORMAL would leave the last half minute in the
    // page cache, which is what a power cut takes.
    database_->run("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA mmap_size = 0;"
                   "PRAGMA temp_store = MEMORY; PRAGMA cache_size = -1024;");
    database_->run(fmt::format("PRAGMA wal_autocheckpoint = {}; PRAGMA journal_size_limit = {};"
                               "PRAGMA max_page_count = {};",
                               log_pages, log_bytes / 2,
                               std::max<std::int64_t>((bounds_.bytes - log_bytes) / page_size, 64))
                       .c_str());
}

/// Whether the file is one of this layout then.
bool Writer::make_tables(bool is_new) {
    Database &database = *database_;
    bool has_seals = true;

    if (!is_new) {
        Statement check = database.prepare("PRAGMA quick_check(1)");

        if (check.step() && check.bytes(0) != "ok")
            throw DatabaseError(SQLITE_CORRUPT, std::string(check.bytes(0)));
        if (database.number("SELECT count(*) FROM sqlite_schema") > 0) {
            const std::int64_t version = database.number("PRAGMA user_version");

            has_seals = version != layout_without_seals;
            if (has_seals && version != layout_version)
                return false;
        }
    }
    database.run("BEGIN IMMEDIATE");
    database.run(schema);
    for (const Resolution &resolution : resolutions)
        database.run(fmt::format("CREATE TABLE IF NOT EXISTS {} (id INTEGER PRIMARY KEY, "
                                 "whole INTEGER NOT NULL, difference BLOB NOT NULL, seal INTEGER)",
                                 resolution.table)
                         .c_str());
    if (!has_seals) {
        for (const char *table : {boot_table.name, account_table.name, event_table.name})
            database.run(fmt::format("ALTER TABLE {} ADD COLUMN seal INTEGER", table).c_str());
        for (const Resolution &resolution : resolutions)
            database.run(
                fmt::format("ALTER TABLE {} ADD COLUMN seal INTEGER", resolution.table).c_str());
        database.run("ALTER TABLE event ADD COLUMN uptime_ms INTEGER");
        Unsealed::declare(database);
    }
    database.run(fmt::format("PRAGMA user_version = {}", layout_version).c_str());
    database.run("COMMIT");
    return true;
}

/// Puts the sound records of a file that was set aside into this one. Returns how many.
std::int64_t Writer::salvage(const std::filesystem::path &damaged) {
    std::int64_t saved = 0;

    try {
        Database from(lib_, damaged, Database::Mode::write); // its log included
        const Unsealed unsealed(from);
        Damage damage;
        const auto copy = [&](const Table &table) {
            Rows rows(from, unsealed, table, damage);
            Statement insert = insert_into(*database_, table);

            while (rows.step()) {
                rows.copy(insert);
                ++saved;
            }
        };

        if (from.number("PRAGMA user_version") != layout_version)
            return 0;
        database_->run("BEGIN IMMEDIATE");
        for (const Table &table : {boot_table, account_table, event_table})
            copy(table);
        for (std::size_t i = resolutions.size(); i-- > 0;)
            copy(sample_table(i));
    } catch (const DatabaseError &) { // NOLINT(bugprone-empty-catch): what came before it is kept
    }
    try {
        database_->run("COMMIT");
    } catch (const DatabaseError &) { // nothing was begun, or it had no room
        return 0;
    }
    return saved;
}

void Writer::prepare() {
    for (std::size_t i = 0; i < resolutions.size(); ++i) {
        tracks_[i].insert.emplace(insert_into(*database_, sample_table(i)));
        tracks_[i].rows =
            database_->number(fmt::format("SELECT count(*) FROM {}", resolutions[i].table).c_str());
    }
    put_boot_.emplace(insert_into(*database_, boot_table));
    put_account_.emplace(insert_into(*database_, account_table));
    put_event_.emplace(insert_into(*database_, event_table));
    next_account_ =
        static_cast<std::uint32_t>(database_->number("SELECT max(key) FROM account")) + 1;
    next_event_ = database_->number("SELECT max(id) FROM event") + 1;
    events_ = database_->number("SELECT count(*) FROM event");
    begin_boot();
}

void Writer::put_boot(std::optional<std::int64_t> ended_ms) {
    SealedRow row(*put_boot_);

    row.bind(boot_).bind_text(boot_id_).bind(started_ms_);
    if (ended_ms)
        row.bind(*ended_ms);
    else
        row.bind_null();
    row.run();
}

void Writer::put_account(const Known &account, std::string_view owner) {
    SealedRow row(*put_account_);

    row.bind(account.key).bind(boot_).bind(account.id).bind_text(account.path);
    if (owner.empty())
        row.bind_null();
    else
        row.bind_text(owner);
    row.run();
}

void Writer::begin_boot() {
    Statement find = database_->prepare("SELECT number FROM boot WHERE boot_id = ?");

    find.bind_text(boot_id_);
    boot_ = find.step() ? find.number(0) : database_->number("SELECT max(number) FROM boot") + 1;
    find.reset();
    put_boot({});

    // Another umacctd may have seen them.
    Statement accounts =
        database_->prepare("SELECT id, key, path FROM account WHERE boot = ? ORDER BY key");
    accounts.bind(boot_);
    while (accounts.step())
        known_[static_cast<std::uint64_t>(accounts.number(0))] = {
            .key = static_cast<std::uint32_t>(accounts.number(1)),
            .id = accounts.number(0),
            .path = std::string(accounts.bytes(2)),
            .last = {},
            .names_asked = static_cast<int>(ask_after_ms.size())};
}

void Writer::end() {
    put_boot(now_.clock_ms + std::max<std::int64_t>(tracks_[0].last_ms, 0));
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
        // The rows of this transaction are lost: whole samples come next.
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
    Known &known = known_[account.id];
    known = {.key = next_account_++,
             .id = static_cast<std::int64_t>(account.id),
             .path = account.path,
             .last = {},
             .first_ms = sample.uptime_ms};
    put_account(known, {});
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
            for (const Holding calmed : {Holding::current, Holding::cache, Holding::swap})
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
        track.seal = SealedRow(*track.insert, whole ? 0 : track.seal)
                         .bind(id_of(boot_, sample.uptime_ms))
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
    // The clock may have been set since; then it is of now.
    const std::int64_t now_ms = std::max<std::int64_t>(tracks_[0].last_ms, 0);
    std::int64_t uptime_ms = happening.time_ms - now_.clock_ms;

    if (uptime_ms < std::max<std::int64_t>(now_ms - most_delay_ms, 0) ||
        uptime_ms > now_ms + most_ahead_ms)
        uptime_ms = now_ms;
    SealedRow(*put_event_)
        .bind(next_event_++)
        .bind(boot_)
        .bind(uptime_ms)
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
        .bind(happening.time_ms)
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
        put_account(account, words);
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
        // Events without text, which tenants can cause in any number, must not displace those with
        // text: the guard's steps and changes of limits.
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
    // Bounded, as a tenant may make cgroups all day. The names of existing ones stay.
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
    // Accounts that no sample names any more, and boots without samples.
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
