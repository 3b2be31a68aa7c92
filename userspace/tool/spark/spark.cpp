// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/spark/spark.h"

#include <algorithm>
#include <ctime>
#include <deque>

#include <fmt/format.h>

#include "lib/error.h"
#include "lib/history/reader.h"
#include "lib/policy/policy.h"
#include "lib/units.h"

namespace umacct::tool::spark {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t mib = 1ULL << 20;
constexpr std::uint64_t gib = 1ULL << 30;
constexpr std::int64_t day_ms = 86'400'000;
constexpr std::int64_t fall_ms = 2000;
constexpr const char *policy_file = "etc/umacct.toml.d/spark.toml";
constexpr const char *guard_source = "usr/share/umacct/umacctd-guard.conf";
constexpr const char *guard_file = "etc/systemd/system/umacctd.service.d/guard.conf";

/// Rounded up to what people write: whole GiB of a large machine.
std::string rounded(std::uint64_t bytes, std::uint64_t total) {
    const std::uint64_t unit = total >= 16 * gib ? gib : 64 * mib;
    const std::uint64_t units = (bytes + unit - 1) / unit;

    return unit == gib ? fmt::format("{}G", units) : fmt::format("{}M", units * 64);
}

} // namespace

std::uint64_t fastest_fall(const fs::path &root) {
    std::uint64_t fastest = 0;

    try {
        history::Reader reader(root);
        const std::int64_t since_ms = std::time(nullptr) * 1000 - 7 * day_ms;

        for (const history::Boot &boot : reader.boots()) {
            std::deque<std::pair<std::int64_t, std::uint64_t>> window;

            if (boot.last_ms < since_ms)
                continue;
            reader.for_each(boot, {.since_ms = since_ms}, [&](const history::Moment &moment) {
                const std::uint64_t left = history::obtainable(moment.state.machine);

                while (!window.empty() && moment.time_ms - window.front().first > fall_ms)
                    window.pop_front();
                for (const auto &[time, before] : window)
                    fastest = std::max(fastest, before - std::min(before, left));
                window.emplace_back(moment.time_ms, left);
            });
        }
    } catch (const Error &) {
        return 0; // nothing was recorded, or the caller may not read it
    }
    return fastest;
}

std::vector<Proposal> propose(const fs::path &root, std::uint64_t total) {
    const Policy policy = read_policy(policy_files(root));
    const std::uint64_t fall = fastest_fall(root);
    const std::string kept = rounded(total * 3 / 100, total);
    // Two seconds of the fastest load that was seen, as docs/guard.md has it.
    const std::string floor = rounded(std::clamp(fall, total * 3 / 100, total * 8 / 100), total);
    const std::string ready = rounded(total / 10, total);
    std::vector<Proposal> all;

    if (!policy.view)
        all.push_back({.question = "view: programs that ask how much memory is free see page cache "
                                   "as free, and try what fits",
                       .table = "machine",
                       .lines = "view = true\n"});
    if (!policy.reserve)
        all.push_back({.question = fmt::format("reserve: the driver leaves {} to the machine, "
                                               "whoever asks; refused programs get out-of-memory",
                                               kept),
                       .table = "machine",
                       .lines = fmt::format("reserve = \"{}\"\n", kept)});
    if (!policy.headroom)
        all.push_back({.question = fmt::format("headroom: {} stay free for the next model, in "
                                               "blocks of 2 MiB; page cache gives them",
                                               ready),
                       .table = "machine",
                       .lines = fmt::format("headroom = \"{}\"\n", ready)});
    if (!policy.guard)
        all.push_back(
            {.question = fmt::format("guard, dry run: log what it would stop when less than {} is "
                                     "available{}; it does nothing yet",
                                     floor,
                                     fall == 0 ? ""
                                               : fmt::format(" (the fastest fall in 7 days: {} in "
                                                             "2 s)",
                                                             format_size(fall))),
             .table = "guard",
             .lines = fmt::format("floor = \"{}\"\n"
                                  "steps = [\"reserve\", \"freeze\"]\n"
                                  "dry_run = true # remove this line to let it act\n",
                                  floor)});
    return all;
}

std::vector<containers::Edit> edits(const fs::path &root, const std::vector<Proposal> &proposals) {
    std::string text;
    std::string table;
    bool guards = false;
    std::vector<containers::Edit> all;

    for (const Proposal &each : proposals) {
        if (!each.taken)
            continue;
        if (each.table != table)
            text += fmt::format("{}[{}]\n", table.empty() ? "" : "\n", each.table);
        table = each.table;
        text += each.lines;
        guards = guards || each.table == "guard";
    }
    if (text.empty())
        return all;
    const fs::path file = root / policy_file;
    all.push_back({.file = file,
                   .before = containers::read_text(file),
                   .after = "# By 'umacct setup spark'; 'umacct setup spark --undo' removes it. "
                            "What the keys do: umacct.toml(5).\n" +
                            text});
    const auto unit = containers::read_text(root / guard_source);
    const auto there = containers::read_text(root / guard_file);
    if (guards && unit && !there)
        all.push_back({.file = root / guard_file, .before = there, .after = unit});
    return all;
}

} // namespace umacct::tool::spark
