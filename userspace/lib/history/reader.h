// SPDX-License-Identifier: GPL-2.0-or-later
/// Reads the history, also while it is written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/history/rows.h"
#include "lib/history/sample.h"
#include "lib/history/writer.h"
#include "lib/host/sqlite.h"

namespace umacct::history {

/// One start of the machine. Times are in ms since the epoch, by the clock that the last sample
/// had: all times of this start are the machine's uptime by that clock, whatever was done to the
/// clock meanwhile.
struct Boot {
    std::int64_t number = 0;
    std::string boot_id; ///< empty where the record of it is damaged
    std::int64_t started_ms = 0;
    std::int64_t clock_ms = 0; ///< wall clock at the start
    std::int64_t first_ms = 0; ///< the first sample's
    std::int64_t last_ms = 0;
    std::optional<std::int64_t> ended_ms{}; ///< umacctd's orderly stop, if any
};

struct Named {
    std::uint64_t id = 0; ///< the cgroup's
    std::string path;
    std::string owner{}; ///< empty where no name was known

    /// "docker vllm", or the path.
    const std::string &name() const { return owner.empty() ? path : owner; }
};

/// The state of the machine at one moment.
struct Moment {
    std::int64_t time_ms = 0;
    std::int64_t uptime_ms = 0;   ///< time since the machine started
    std::int64_t interval_ms = 0; ///< time to the next sample of its resolution
    State state{};
};

struct Range {
    std::int64_t since_ms = 0;
    std::int64_t until_ms = INT64_MAX;
};

/// Reads the history. Damaged records are left out, and counted.
class Reader {
public:
    /// root: where /var is. Throws Error: missing where nothing was recorded, permission where
    /// the caller may not read it, failed where the file's beginning is damaged.
    explicit Reader(const std::filesystem::path &root);

    /// The oldest first; those without a sample are left out.
    std::vector<Boot> boots();
    std::map<std::uint32_t, Named> accounts(const Boot &boot);

    /// Each moment of the finest resolution that there is. interval_ms: none finer than that.
    void for_each(const Boot &boot, const Range &range,
                  const std::function<void(const Moment &moment)> &visit,
                  std::int64_t interval_ms = 0);
    /// The last moment until then.
    std::optional<Moment> at(const Boot &boot, std::int64_t time_ms);

    /// The oldest first; no more than the newest that many. type: those alone; empty for all.
    std::vector<Happening> happenings(const Boot &boot, const Range &range,
                                      std::int64_t most = 1000, std::string_view type = {});

    /// How many records were left out so far, because they, or one that they continue, are damaged.
    std::size_t damaged() const { return damage_.count(); }

private:
    /// Gets a moment; whether it wants the next one, too.
    using Visit = std::function<bool(const Moment &moment)>;

    std::optional<std::int64_t> first_id(std::int64_t boot, std::size_t resolution);
    std::set<std::int64_t> numbers_of_boots();
    std::optional<Moment> last_moment(std::int64_t boot);
    std::optional<Moment> first_moment(std::int64_t boot);
    void read(std::int64_t boot, std::size_t resolution, std::int64_t from_id,
              std::int64_t before_id, const Visit &visit);

    Sqlite lib_;
    Database database_;
    Unsealed unsealed_;
    Damage damage_;
};

} // namespace umacct::history
