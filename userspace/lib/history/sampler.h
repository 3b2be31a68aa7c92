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

/// Time between two samples.
constexpr std::chrono::seconds sample_interval{1};

/// Reads that clock.
std::int64_t milliseconds_of(clockid_t clock);

/// Takes samples, into memory that is there.
class Sampler {
public:
    /// Largest number of accounts in a sample.
    static constexpr std::size_t most_accounts = 192;

    /// connection must outlive it.
    Sampler(Connection &connection, const std::filesystem::path &proc,
            const std::filesystem::path &root);

    /// A sample with room for all that take() writes.
    static Sample with_room();

    /// Takes a sample; without the module, with the kernel's figures alone. Throws Error.
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

    /// The module's figures of an account, as far as they are recorded.
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
    /// Returns a candidate's path; empty if its cgroup is gone.
    std::string path_of(const Candidate &candidate);
    void walk();
    void add_accounts();
    void add_cgroups();
    void read_caches();
    void read_swap(const Figures &machine);
    void choose(Sample &sample);

    Connection &connection_;
    Machine machine_;
    std::vector<Counted> accounts_;
    std::size_t count_ = 0; ///< used elements of the above
    std::vector<Seen> cgroups_;
    std::chrono::steady_clock::time_point next_walk_{};
    std::vector<Candidate> candidates_;
    std::unordered_map<std::uint64_t, std::uint64_t> last_held_; ///< used with many cgroups
};

} // namespace umacct::history
