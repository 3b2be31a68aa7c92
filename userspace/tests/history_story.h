// SPDX-License-Identifier: GPL-2.0-or-later
/// Histories that tests make up, on a clock of their own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <umacct.h>

#include "lib/history/writer.h"
#include "tests/sandbox.h"

namespace umacct::test {

constexpr std::uint64_t mib = 1ULL << 20;
constexpr std::uint64_t gib = 1ULL << 30;

/// One start of a machine of 128 GiB, which is recorded every second.
class Story {
public:
    using Figure = history::Figure;
    using Holding = history::Holding;

    Story(const Sandbox &sandbox, const std::string &boot_id, std::int64_t started_ms,
          history::Bounds bounds = {})
        : file_(sandbox.root() / history::folder / history::file_name), started_ms_(started_ms) {
        std::filesystem::create_directories(file_.parent_path());
        writer_.emplace(
            lib_, file_, boot_id, started_ms,
            [this](const std::string &line) { told.push_back(line); }, bounds);
        sample.accounts.reserve(1000); // references to them stay good
        sample.time_ms = started_ms_;
        sample.machine[Figure::total] = 128 * gib;
        set_available(100 * gib);
    }

    void set_available(std::uint64_t bytes) {
        sample.machine[Figure::available] = bytes;
        sample.machine[Figure::obtainable] = bytes;
        sample.machine[Figure::free] = bytes;
    }

    /// The account of that path, which is there from now on.
    history::Holdings &account(const std::string &path) {
        for (std::size_t i = 0; i < sample.count; ++i) {
            if (sample.accounts[i].path == path)
                return sample.accounts[i].holdings;
        }
        sample.accounts.push_back({.id = ++ids_, .path = path});
        sample.count = sample.accounts.size();
        sample.accounts.back().holdings[Holding::hard] = UMACCT_UNLIMITED;
        sample.accounts.back().holdings[Holding::soft] = UMACCT_UNLIMITED;
        return sample.accounts.back().holdings;
    }

    /// Lets that many seconds pass. each: the changes of one. As many are written at a time as
    /// after the disk hung, which takes less of a test's time.
    void pass(int seconds, const std::function<void()> &each = {}) {
        for (int i = 0; i < seconds; ++i) {
            if (each)
                each();
            sample.uptime_ms += 1000;
            sample.time_ms = started_ms_ + sample.uptime_ms;
            samples_.push_back(sample);
            if (i + 1 == seconds || samples_.size() == 50)
                write();
        }
    }

    /// Sets the clock forward.
    void set_clock(std::int64_t by_ms) { started_ms_ += by_ms; }

    history::Writer &writer() { return *writer_; }

    const std::filesystem::path &file() const { return file_; }

    history::Sample sample;
    std::vector<history::Happening> happenings; ///< added to the next second
    std::vector<std::string> told;

private:
    void write() {
        std::vector<const history::Sample *> samples;

        for (const history::Sample &each : samples_)
            samples.push_back(&each);
        writer_->write(samples, happenings);
        samples_.clear();
        happenings.clear();
    }

    Sqlite lib_{history::without_sqlite};
    std::filesystem::path file_;
    std::int64_t started_ms_;
    std::uint64_t ids_ = 100;
    std::vector<history::Sample> samples_; ///< samples to write
    std::optional<history::Writer> writer_;
};

} // namespace umacct::test
