// SPDX-License-Identifier: GPL-2.0-or-later
/// Looks at the machine as the history has it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib/history/sample.h"
#include "lib/machine.h"
#include "lib/module/module.h"

namespace umacct::history {

/// From one sample to the next.
constexpr std::chrono::seconds sample_interval{1};

/// Of that clock, now.
std::int64_t milliseconds_of(clockid_t clock);

/// Takes samples, into memory that is there.
class Sampler {
public:
    /// So many accounts are in a sample at the most.
    static constexpr std::size_t most_accounts = 192;

    /// connection must outlive it.
    Sampler(Connection &connection, const std::filesystem::path &proc,
            const std::filesystem::path &root);

    /// A sample with room for all that take() writes.
    static Sample with_room();

    /// What is so now. Without the module: what the kernel tells. Throws Error.
    void take(Sample &sample);

private:
    /// An account, or a cgroup that has none.
    struct Candidate {
        std::uint64_t id = 0;
        const std::string *path = nullptr; ///< empty for one that is too long to be kept
        Holdings holdings{};
        bool limited = false;
        std::uint64_t grown = 0;
    };

    /// What the module tells of one, as far as it matters.
    struct Counted {
        std::string path; ///< empty where it is too long
        std::uint64_t id = 0;
        Holdings holdings{};
    };

    /// A cgroup beside those.
    struct Seen {
        std::string path;
        std::uint64_t id = 0;
    };

    std::optional<Status> ask_module();
    void count(const Account &account);
    /// Of a candidate; empty where it is gone by now.
    std::string path_of(const Candidate &candidate);
    void walk();
    void add_accounts();
    void add_cgroups();
    void read_caches();
    void choose(Sample &sample);

    Connection &connection_;
    Machine machine_;
    std::vector<Counted> accounts_;
    std::size_t count_ = 0; ///< of those
    std::vector<Seen> cgroups_;
    std::chrono::steady_clock::time_point next_walk_{};
    std::vector<Candidate> candidates_;
    std::unordered_map<std::uint64_t, std::uint64_t> last_held_; ///< where there are many
};

} // namespace umacct::history
