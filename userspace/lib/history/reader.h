// SPDX-License-Identifier: GPL-2.0-or-later
/// Reads the history, also while it is written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/history/sample.h"
#include "lib/history/writer.h"
#include "lib/host/sqlite.h"

namespace umacct::history {

/// One start of the machine. Times are in ms since the epoch.
struct Boot {
    std::int64_t number = 0;
    std::string boot_id;
    std::int64_t started_ms = 0;
    std::int64_t clock_ms = 0; ///< when it started, by the clock of its last sample
    std::int64_t first_ms = 0; ///< of its samples
    std::int64_t last_ms = 0;
    std::optional<std::int64_t> ended_ms{}; ///< when umacctd was told to end
};

struct Named {
    std::uint64_t id = 0; ///< the cgroup's
    std::string path;
    std::string owner{}; ///< empty where no name was known

    /// "docker vllm", or the path.
    const std::string &name() const { return owner.empty() ? path : owner; }
};

/// What was so at one moment.
struct Moment {
    std::int64_t time_ms = 0;
    std::int64_t interval_ms = 0; ///< to the next one, of its resolution
    State state{};
};

struct Range {
    std::int64_t since_ms = 0;
    std::int64_t until_ms = INT64_MAX;
};

class Reader {
public:
    /// root: where /var is. Throws Error: missing where nothing was recorded, permission where
    /// the caller may not read it.
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

private:
    std::optional<std::int64_t> first_id(const Boot &boot, std::size_t resolution);
    void read(const Boot &boot, std::size_t resolution, std::int64_t from_id,
              std::int64_t before_id, const Range &range,
              const std::function<void(const Moment &moment)> &visit);

    Sqlite lib_;
    Database database_;
};

} // namespace umacct::history
