// SPDX-License-Identifier: GPL-2.0-or-later
/// Writes the history. What write() returned from is on the disk, whatever happens to the
/// machine then.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/history/layout.h"
#include "lib/history/rows.h"
#include "lib/history/sample.h"
#include "lib/host/sqlite.h"

namespace umacct::history {

/// Something that happened: the module's events, steps of umacctd's, limits that were changed.
struct Happening {
    std::int64_t time_ms = 0; ///< time since the epoch
    std::string type{};       ///< an event's name in "umacct watch", or "limits_changed"
    std::string path{};       ///< the account concerned; empty for the machine
    std::string limit_path{}; ///< the account whose limit it was; for "failed", the largest other
                              ///< holder
    std::string comm{};       ///< the process's name
    std::uint32_t pid = 0;
    std::uint64_t size = 0;
    std::uint64_t usage = 0;
    std::uint64_t limit = 0; ///< bytes of that holder, for "failed"
    std::uint64_t count = 1; ///< number of repetitions
    std::string text{};      ///< a guard's step: its line in umacctd's log
};

/// How much is kept; tests take less.
struct Bounds {
    std::int64_t bytes = size_bound;
    std::array<std::int64_t, resolutions.size()> rows = [] {
        std::array<std::int64_t, resolutions.size()> all{};

        for (std::size_t i = 0; i < all.size(); ++i)
            all[i] = resolutions[i].rows;
        return all;
    }();
    std::int64_t events = events_kept;
};

class Writer {
public:
    /// Takes a line about what became of a file.
    using Tell = std::function<void(const std::string &line)>;
    /// Returns the name of a cgroup's owner; empty if not known.
    using Name = std::function<std::string(const std::string &path)>;

    /// A file in which SQLite finds damage is set aside, and another begun with its sound records.
    /// boot_id: of this start of the machine, which began at that time. Throws Error where none can
    /// be written.
    Writer(const Sqlite &lib, std::filesystem::path file, std::string boot_id,
           std::int64_t started_ms, Tell tell, Bounds bounds = {});

    /// All of it, or where it throws Error nothing.
    void write(std::span<const Sample *const> samples, std::span<const Happening> happenings);

    /// Asks for names of accounts that came lately. What takes time is done here and not in
    /// write().
    void name_accounts(const Name &name);

    /// Records that the recording ends in an orderly way.
    void end();

private:
    struct Known {
        std::uint32_t key;
        std::int64_t id; ///< the cgroup's
        std::string path;
        std::optional<Holdings> last;
        std::int64_t first_ms = 0;
        int names_asked = 0;
    };

    /// One resolution's table.
    struct Track {
        std::optional<Statement> insert;
        State last;
        std::int64_t last_ms = -1; ///< uptime of the last row
        std::int64_t seal = 0;     ///< the last row's
        int since_whole = 0;
        std::int64_t rows = 0;
    };

    void open();
    void open_or_set_aside();
    bool make_tables(bool is_new);
    std::int64_t salvage(const std::filesystem::path &damaged);
    void prepare();
    void begin_boot();
    void put_boot(std::optional<std::int64_t> ended_ms);
    void put_account(const Known &account, std::string_view owner);
    void commit(std::span<const Sample *const> samples, std::span<const Happening> happenings);
    void put(const Sample &sample);
    void put(const Happening &happening);
    void note_changes(const Sample &sample, const Sample::Account &account, const Holdings &last);
    Known &known(const Sample &sample, const Sample::Account &account);
    void forget_old();
    bool forget_segment(std::size_t resolution);
    std::int64_t bytes_used();
    void forget_state();

    const Sqlite &lib_;
    std::filesystem::path file_;
    std::string boot_id_;
    std::int64_t started_ms_;
    Tell tell_;
    Bounds bounds_;

    std::optional<Database> database_;
    std::optional<Statement> put_boot_;
    std::optional<Statement> put_account_;
    std::optional<Statement> put_event_;
    std::int64_t boot_ = 0;          ///< its number in the file
    std::uint32_t next_account_ = 1; ///< the key of the next one
    std::int64_t next_event_ = 1;
    std::array<Track, resolutions.size()> tracks_;
    std::unordered_map<std::uint64_t, Known> known_; ///< the key is the cgroup's id
    std::optional<std::uint64_t> reserve_;           ///< the last sample's
    State now_;
    bool segment_ended_ = true; ///< some may be too old
    std::int64_t events_ = 0;
};

} // namespace umacct::history
