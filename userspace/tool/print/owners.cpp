// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/print/owners.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/color.h>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/arithmetic.h"
#include "lib/host/cgroup_tree.h"
#include "lib/owners/owner.h"
#include "lib/text.h"
#include "lib/units.h"
#include "tool/output.h"
#include "tool/print/table.h"
#include "tool/print/text.h"

namespace umacct::tool {

namespace {

/// Owners of less have no line.
constexpr std::uint64_t small = 1ULL << 20;
/// Cgroups looked at: a tenant may make any number.
constexpr std::size_t most_cgroups = 4096;
constexpr std::size_t owners_shown = 10;
constexpr int bar_width = 78;

constexpr std::array colours{fmt::terminal_color::blue, fmt::terminal_color::cyan,
                             fmt::terminal_color::magenta, fmt::terminal_color::green,
                             fmt::terminal_color::bright_blue};

/// Tells one owner with all that is below it. A user's manager is none: those below it are.
bool is_whole(std::string_view path) {
    const auto owner = owner_of(path);

    return owner && !(owner->kind == OwnerKind::unit &&
                      (owner->id.ends_with(".slice") || owner->id.starts_with("user@")));
}

void take_away(OwnerShare &from, const OwnerShare &what) {
    from.total = without(from.total, what.total);
    from.driver = without(from.driver, what.driver);
    from.cache = without(from.cache, what.cache);
    from.swap = without(from.swap, what.swap);
}

/// Lists the cgroups from the root down to whole owners, each with all that is below it.
std::vector<OwnerShare> walk(const Machine &machine, const std::vector<Account> &accounts) {
    std::unordered_map<std::string_view, const Account *> by_path;
    std::unordered_set<std::string> wholes;
    std::vector<OwnerShare> found;

    const auto add = [&](const Account &account) {
        const MemoryController memory =
            memory_controller(machine.cgroups(), account, {.total = true});

        found.push_back({.path = account.path,
                         .name = {},
                         .total = memory.total.value_or(0),
                         .driver = account.usage,
                         .cache = memory.cache.value_or(0),
                         .swap = memory.swap.value_or(0),
                         .limit = account.effective});
    };
    for (const Account &account : accounts)
        by_path[account.path] = &account;
    walk_cgroups(machine.cgroups(), "/", [&](const std::string &path) {
        const bool whole = is_whole(path);

        if (path == "/")
            return true;
        if (const auto account = by_path.find(path); account != by_path.end()) {
            add(*account->second);
            by_path.erase(account);
        } else {
            Account none;

            none.path = path;
            add(none);
        }
        if (whole)
            wholes.insert(path);
        return !whole && found.size() < most_cgroups;
    });
    // Accounts of cgroups that are not mounted here.
    for (const Account &account : accounts) {
        const auto is_inside = [&] {
            for (std::string at = account.path; at != "/"; at = parent_path(at)) {
                if (wholes.contains(at))
                    return true;
            }
            return false;
        };

        if (account.path != "/" && by_path.contains(account.path) && !is_inside())
            add(account);
    }
    return found;
}

} // namespace

Division divide(const Machine &machine, const Meminfo &memory, const Status &status,
                const std::vector<Account> &accounts) {
    Division division{.total = memory.total(),
                      .available = status.tells_all() ? status.available : memory.available(),
                      .owners = walk(machine, accounts),
                      .whole = status.tells_all()};
    std::unordered_map<std::string, std::size_t> places;
    std::vector<OwnerShare> &owners = division.owners;
    std::uint64_t sum = 0;

    for (std::size_t i = 0; i < owners.size(); ++i)
        places[owners[i].path] = i;
    // A parent had all of its children's before.
    const std::vector<OwnerShare> all = owners;
    for (const OwnerShare &each : all) {
        if (const auto above = places.find(parent_path(each.path)); above != places.end())
            take_away(owners[above->second], each);
    }
    std::erase_if(owners, [](const OwnerShare &each) { return each.total < small; });
    std::ranges::stable_sort(owners, std::greater<>(), &OwnerShare::total);
    for (OwnerShare &each : owners) {
        each.name = short_name(machine.owners(), each.path);
        sum += each.total;
    }
    division.rest = without(without(division.total, division.available), sum);
    return division;
}

std::string available_text(const Division &division) {
    std::string text = fmt::format("{} of {} available", format_size(division.available),
                                   format_size(division.total));

    if (division.is_short() && !division.owners.empty())
        text += fmt::format(": {} has {}", division.owners.front().name,
                            format_size(division.owners.front().total));
    return text;
}

namespace {

struct Segment {
    std::string name;
    std::uint64_t bytes;
    char fill;
};

/// Cuts the name to that many columns, one for each character.
std::string fitted_name(const std::string &name, int columns) {
    std::string text;

    for (const char c : name) {
        if ((static_cast<unsigned char>(c) & 0xc0U) != 0x80)
            text += static_cast<unsigned char>(c) < 0x80 ? c : '?';
    }
    return text.substr(0, static_cast<std::size_t>(columns));
}

/// Prints one owner after the other, with its name where there is room.
void print_bar(const Output &output, const Division &division) {
    const int width =
        (output.width > 0 ? std::min(output.width, bar_width + 2) : bar_width + 2) - 2;
    std::vector<Segment> segments;
    std::uint64_t until = 0;
    int column = 0;

    if (width < 10 || division.total == 0)
        return;
    for (const OwnerShare &each : division.owners)
        segments.push_back({each.name, each.total, '='});
    segments.push_back({division.whole ? "the rest" : "not visible to you", division.rest, '-'});
    fmt::print(output.out, "[");
    for (std::size_t i = 0; i < segments.size(); ++i) {
        const Segment &each = segments[i];

        until += each.bytes;
        const int end =
            static_cast<int>(std::lround(static_cast<double>(std::min(until, division.total)) *
                                         width / static_cast<double>(division.total)));
        const int room = std::max(end - column, 0);
        if (room == 0)
            continue;
        std::string text = fitted_name(each.name, room - 1);
        text.append(static_cast<std::size_t>(room) - 1 - text.size(), each.fill);
        text += '|';
        if (output.colour && i + 1 < segments.size())
            fmt::print(output.out, "{}",
                       fmt::format(fmt::fg(colours.at(i % colours.size())) | fmt::emphasis::reverse,
                                   "{}", text));
        else
            fmt::print(output.out, "{}", text);
        column = end;
    }
    fmt::print(output.out, "{}]\n", std::string(static_cast<std::size_t>(width - column), ' '));
}

std::string share_of(std::uint64_t bytes, std::uint64_t total) {
    return format_percent(
        total == 0 ? 0 : 100 * static_cast<double>(bytes) / static_cast<double>(total));
}

} // namespace

void print_division(const Output &output, const Division &division) {
    const std::string head = available_text(division);
    Table table({right("TOTAL"), right("SHARE"), left("OWNER"), right("DRIVER"), right("CACHE"),
                 right("SWAP"), right("LIMIT")});
    std::size_t shown = 0;

    if (!output.colour)
        fmt::print(output.out, "{}\n", head);
    else if (division.is_short())
        fmt::print(
            output.out, "{}\n",
            fmt::format(fmt::fg(fmt::terminal_color::red) | fmt::emphasis::bold, "{}", head));
    else
        fmt::print(output.out, "{}\n", fmt::format(fmt::emphasis::bold, "{}", head));
    print_bar(output, division);
    for (const OwnerShare &each : division.owners) {
        if (shown++ == owners_shown)
            break;
        table.add({format_size(each.total), share_of(each.total, division.total), each.name,
                   format_size(each.driver), format_size(each.cache), format_size(each.swap),
                   format_limit(each.limit)});
    }
    table.add({format_size(division.rest), share_of(division.rest, division.total),
               division.whole ? "the rest: kernel, driver's own" : "not visible to you", "", "", "",
               ""});
    fmt::print(output.out, "\n");
    table.print(output);
    if (division.owners.size() > owners_shown)
        fmt::print(output.out, "and {} more: 'umacct ls --all'\n",
                   division.owners.size() - owners_shown);
}

Json to_json(const Owners &owners, const Division &division) {
    Json list = Json::array();

    for (const OwnerShare &each : division.owners)
        list.push_back({{"path", each.path},
                        {"owner", umacct::to_json(owners.nearest(each.path))},
                        {"name", each.name},
                        {"total_bytes", each.total},
                        {"driver_bytes", each.driver},
                        {"cache_bytes", each.cache},
                        {"swap_bytes", each.swap},
                        {"effective_bytes", each.limit ? Json(*each.limit) : Json()}});
    return {{"total_bytes", division.total}, {"available_bytes", division.available},
            {"short", division.is_short()},  {"owners", list},
            {"rest_bytes", division.rest},   {"complete", division.whole}};
}

} // namespace umacct::tool
