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
#include <unordered_map>
#include <vector>

#include "lib/history/layout.h"
#include "lib/history/sample.h"
#include "lib/host/sqlite.h"

namespace umacct::history {

/// Something that happened: the module's events, steps of umacctd's, limits that were changed.
struct Happening {
    std::int64_t time_ms = 0; ///< since the epoch
    std::string type{};       ///< as "umacct watch" has it, or "limits_changed"
    std::string path{};       ///< whom it is about; empty for the machine
    std::string limit_path{}; ///< whose limit it was; of "failed", who held most beside it
    std::string comm{};       ///< the process's name
    std::uint32_t pid = 0;
    std::uint64_t size = 0;
    std::uint64_t usage = 0;
    std::uint64_t limit = 0; ///< of "failed", what that one held
    std::uint64_t count = 1; ///< so often
    std::string text{};      ///< of a step: the line in umacctd's log
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
    /// The name of whom a cgroup is for; empty where none is known.
    using Name = std::function<std::string(const std::string &path)>;

    /// A file that is damaged is set aside, and another begun. boot_id: of this start of the
    /// machine, which began at that time. Throws Error where none can be written.
    Writer(const Sqlite &lib, std::filesystem::path file, std::string boot_id,
           std::int64_t started_ms, Tell tell, Bounds bounds = {});

    /// All of it, or where it throws Error nothing.
    void write(std::span<const Sample *const> samples, std::span<const Happening> happenings);

    /// Asks for names of accounts that came lately. What takes time is done here and not in
    /// write().
    void name_accounts(const Name &name);

    /// Says that the recording ends because somebody ended it.
    void end();

private:
    struct Known {
        std::uint32_t key;
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
        int since_whole = 0;
        std::int64_t rows = 0;
    };

    void open();
    void open_or_set_aside();
    void begin_boot();
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
    std::optional<Statement> put_account_;
    std::optional<Statement> put_name_;
    std::optional<Statement> put_event_;
    std::int64_t boot_ = 0; ///< its number in the file
    std::array<Track, resolutions.size()> tracks_;
    std::unordered_map<std::uint64_t, Known> known_; ///< by the cgroup's id
    std::optional<std::uint64_t> reserve_;           ///< at the last sample
    State now_;
    bool segment_ended_ = true; ///< some may be too old
    std::int64_t events_ = 0;
};

} // namespace umacct::history
