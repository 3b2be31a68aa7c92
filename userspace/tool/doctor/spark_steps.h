// SPDX-License-Identifier: GPL-2.0-or-later
/// The machine's figures before and after a process takes memory through CUDA, way by way: is each
/// byte counted once? No setting is changed, and all is given back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/machine.h"
#include "lib/module/module.h"

namespace umacct::tool::doctor {

/// Figures at one moment, in bytes.
struct Sight {
    std::uint64_t available = 0; ///< MemAvailable, and the driver's pools where they are known
    std::uint64_t free = 0;
    std::uint64_t slab = 0;
    std::uint64_t vmalloc = 0;
    std::uint64_t page_tables = 0;
    std::uint64_t sec_page_tables = 0;
    std::uint64_t iommu = 0;             ///< pages of IOMMU tables
    std::optional<std::uint64_t> cgroup; ///< memory.current without page cache

    /// umacct's figures; absent where neither module nor observer runs.
    struct Counted {
        std::uint64_t usage = 0;
        std::uint64_t managed = 0;
        std::uint64_t metadata = 0;
        std::uint64_t charged = 0;
        std::uint64_t processes = 0; ///< usage by "umacct ps"
    };

    std::optional<Counted> counted;

    /// Returns all that umacct and the kernel count for the processes, nothing of it twice.
    std::optional<std::uint64_t> sum() const;
};

enum class Verdict : std::uint8_t {
    right,     ///< counted once
    doubled,   ///< counted twice, or counted though it isn't the machine's
    blind,     ///< taken, and not counted
    kept,      ///< not given back
    elsewhere, ///< taken from the GPU's own memory
    uncounted, ///< taken; umacct doesn't run
    skipped,   ///< not tried
};

std::string_view name_of(Verdict verdict);

struct SparkStep {
    std::string name;
    std::uint64_t size = 0; ///< asked for; 0 if only the driver knows
    Sight before;
    Sight during;
    Sight after;
    Verdict verdict = Verdict::skipped;
    std::string text; ///< why, for one that was not tried
};

/// Returns the verdict by the figures.
Verdict judge(const SparkStep &step);

/// Takes a minute at most, and at most 3 GiB at a time.
std::vector<SparkStep> run_spark_steps(Connection &connection, const Machine &machine);

/// Returns all of it as text.
std::string text_of(const std::vector<SparkStep> &steps);

} // namespace umacct::tool::doctor
