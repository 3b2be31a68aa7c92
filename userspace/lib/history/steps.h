// SPDX-License-Identifier: GPL-2.0-or-later
/// The largest steps in which accounts grew: the memory that has to be available before the next.
/// umacctd follows them and keeps them across starts.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lib/history/sample.h"
#include "lib/machine.h"

namespace umacct::history {

/// The file of umacctd's, relative to root.
constexpr const char *steps_file = "var/lib/umacctd/steps";

/// Times in which growth counts as one step, in seconds.
constexpr std::array<std::int64_t, 3> step_seconds{1, 3, 10};

/// An account's largest growth of TOTAL in each of these times.
struct Steps {
    struct Step {
        std::uint64_t bytes = 0;
        std::int64_t time_ms = 0; ///< its end, since the epoch
    };

    std::string path;
    std::array<Step, step_seconds.size()> largest{};

    const Step &longest() const { return largest.back(); }
};

struct KnownSteps {
    std::uint64_t floor = 0; ///< the guard's; 0 for none
    std::vector<Steps> accounts;

    /// Reads the file below root; empty where there is none, or it can't be read.
    static KnownSteps read(const std::filesystem::path &root);
    std::string text() const;
};

/// The largest step that may come next.
struct NextStep {
    Steps steps;
    std::uint64_t left = 0;    ///< available above the reserve and the floor
    std::uint64_t reserve = 0; ///< the machine's
    std::uint64_t floor = 0;   ///< the guard's

    bool fits() const { return longest() <= left; }

    std::uint64_t longest() const { return steps.longest().bytes; }

    /// Finds it among the accounts that there are; one in another's subtree, where half of the
    /// step is its own.
    static std::optional<NextStep> find(const KnownSteps &known, std::uint64_t available,
                                        std::uint64_t reserve,
                                        const std::function<bool(const std::string &)> &exists);

    /// "grew by 12.07 GiB within 10 s before; 10.35 GiB is available above the reserve"
    std::string text() const;
};

/// Finds the machine's; empty where umacctd knows of none, or for a reader that doesn't see all.
std::optional<NextStep> next_step(const Machine &machine, const Status &status);

/// Follows steps, sample by sample.
class StepWatch {
public:
    explicit StepWatch(KnownSteps known) : known_(std::move(known)) {}

    /// Takes the next sample.
    void take(const Sample &sample);
    void set_floor(std::uint64_t bytes);

    /// Returns a step that has come to be more than what is left, once: again only after it fitted.
    std::optional<NextStep> ahead(const Sample &sample);

    /// Returns what is known, if that has changed since the last call.
    std::optional<KnownSteps> changes();

private:
    /// An account's last seconds.
    struct Course {
        /// Its time, since the machine's start, and TOTAL.
        using Look = std::pair<std::int64_t, std::uint64_t>;

        std::array<Look, 12> looks{};
        std::size_t count = 0;
        std::uint64_t from = 0; ///< TOTAL when it began to grow
        bool has_cache = false;
        std::uint64_t round = 0; ///< number of the last sample that had it

        void add(std::int64_t time_ms, std::uint64_t total);
        std::uint64_t growth(std::int64_t ms) const;
    };

    /// Paths of a sample's accounts; empty until they are needed.
    using Paths = std::unordered_set<std::string_view>;

    void learn(const Sample &sample, const std::string &path, const Course &course, Paths &there);
    bool make_room(const std::string &path, std::uint64_t bytes, const Paths &there);

    KnownSteps known_;
    std::unordered_map<std::uint64_t, Course> courses_; ///< the key is the cgroup's id
    std::uint64_t round_ = 0;
    std::int64_t last_ms_ = 0; ///< uptime of the last sample
    std::string told_;         ///< the account that ahead() returned last
    /// The uptime of the last time that ahead() returned an account of a tenant.
    std::map<std::string, std::int64_t, std::less<>> told_at_;
    bool changed_ = false;
};

} // namespace umacct::history
