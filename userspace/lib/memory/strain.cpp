// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/memory/strain.h"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/host/cgroup_tree.h"
#include "lib/memory/preflight.h"
#include "lib/memory/zones.h"
#include "lib/text.h"
#include "lib/units.h"

namespace umacct {

namespace {

/// Number of cgroups whose pressure is read; a tenant may make more, beside and below each other.
constexpr std::size_t most_read = 4096;

/// Least pressure that is reported.
constexpr double least_wait = 1;

double wait_of(const std::filesystem::path &directory) {
    std::ifstream file(directory / "memory.pressure");
    const auto pressure = Pressure::read(file);

    return pressure ? pressure->some.avg10 : 0;
}

/// Descends from the root to the cgroup with most of the waiting: a child waits no more than its
/// parent, so none that waits more is missed.
void find_waiter(const Cgroups &cgroups, Strain &strain) {
    auto directory = cgroups.directory("/");
    std::string path = "/";
    std::size_t left = most_read;

    while (directory && left > 0) {
        std::error_code error;
        std::string first;
        double most = 0;

        for (const std::string &name : folders_in(*directory, error, left)) {
            --left;
            if (const double waits = wait_of(*directory / name); waits > most) {
                most = waits;
                first = name;
            }
        }
        // The parent is reported if several wait alike.
        if (first.empty() || most < std::max(least_wait, strain.waits / 2))
            break;
        path = join_path(path, first);
        *directory /= first;
        strain.waiter = path;
        strain.waits = most;
    }
}

void find_holder(Module &module, Strain &strain) {
    struct Pieces {
        std::uint64_t count = 0;
        std::uint64_t bytes = 0;
    };

    std::map<std::string, Pieces> by_path;

    for (const Client &client : module.clients()) {
        Pieces &pieces = by_path[client.path];

        pieces.count += client.records;
        pieces.bytes += client.usage - client.managed;
    }
    for (const auto &[path, pieces] : by_path) {
        if (pieces.count <= strain.pieces)
            continue;
        strain.holder = path;
        strain.pieces = pieces.count;
        strain.held = pieces.bytes;
    }
}

} // namespace

Strain Strain::look(Module &module, const Machine &machine) {
    Strain strain;

    const auto try_to = [](auto look) {
        try {
            look();
        } catch (const Error &) {
            // The rest is worth saying.
        }
    };

    try_to([&] { find_waiter(machine.cgroups(), strain); });
    try_to([&] { find_holder(module, strain); });
    try_to([&] {
        const Zones zones = Zones::read(machine.proc());
        const auto order = static_cast<std::size_t>(std::countr_zero(default_block / page_size()));

        strain.free = zones.usable() * page_size();
        strain.blocks = (zones.usable_blocks(order) << order) * page_size();
    });
    return strain;
}

std::string Strain::text() const {
    std::string text;

    if (!waiter.empty())
        text += fmt::format("; {} waits most, {} of the time", printable(waiter),
                            format_percent(waits));
    if (free > 0)
        text += fmt::format("; of {} that are free {} lie in blocks of {}", format_size(free),
                            format_size(blocks), format_size(default_block));
    if (!holder.empty())
        text += fmt::format("; {} holds most pieces of driver memory, {} in {}", printable(holder),
                            format_size(held), pieces);
    return text;
}

Json Strain::json() const {
    return {{"waiter_path", waiter.empty() ? Json() : Json(waiter)},
            {"waiter_percent", waits},
            {"free_bytes", free},
            {"free_in_blocks_bytes", blocks},
            {"holder_path", holder.empty() ? Json() : Json(holder)},
            {"holder_pieces", pieces},
            {"holder_bytes", held}};
}

} // namespace umacct
