// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/memory/preflight.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/json.h"
#include "lib/memory/keeper.h"
#include "lib/memory/reclaim.h"
#include "lib/units.h"
#include "tool/arguments.h"
#include "tool/print/table.h"
#include "tool/print/text.h"
#include "tool/session.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

constexpr std::size_t holders_shown = 5;

struct Options {
    std::string size;
    std::optional<std::string> blocks;
    bool fix = false;
    bool anonymous = false;
};

struct Asked {
    std::uint64_t bytes = 0;
    std::uint64_t block = 0;
};

/// What --fix did.
struct Fixed {
    std::uint64_t reclaimed = 0;
    std::uint64_t compactions = 0;
    std::uint64_t took_ns = 0;
};

/// What a cgroup holds itself, without those below it.
struct Holder {
    std::string path;
    std::uint64_t driver = 0;
    std::uint64_t anonymous = 0; ///< with shared memory
    std::uint64_t cache = 0;
};

std::uint64_t cache_of(std::map<std::string, std::uint64_t> &stat) {
    return stat["active_file"] + stat["inactive_file"];
}

// --- what may be in the way -------------------------------------------------------

/// What the limits of one account leave.
void add_bounds(std::vector<Bound> &bounds, const Machine &machine, const Account &account,
                bool charged) {
    const std::string name = display_path(machine.owners(), account.path);

    if (account.hard) {
        const std::uint64_t left = *account.hard - std::min(*account.hard, account.usage);

        bounds.push_back(
            {.what = "the hard limit of " + name, .left = left, .after_reclaim = left});
    }
    const MemoryController memory = memory_controller(machine.cgroups(), account);
    if (charged && memory.current && memory.max.value_or(UMACCT_UNLIMITED) != UMACCT_UNLIMITED) {
        const std::uint64_t left = *memory.max - std::min(*memory.max, *memory.current);
        auto stat = machine.cgroups().keyed(account.path, "memory.stat");

        bounds.push_back({.what = "memory.max of " + name,
                          .left = left,
                          .after_reclaim = std::min(*memory.max, left + cache_of(stat))});
    }
}

/// For who asks: a service's own cgroup, in its ExecStartPre=.
std::vector<Bound> bounds_of(Module &module, const Status &status, const Machine &machine,
                             std::uint64_t bytes) {
    const Cgroups &cgroups = machine.cgroups();
    std::vector<Bound> bounds;

    if (status.reserve > 0) {
        // As the module compares them.
        const std::uint64_t kept = status.reserve + bytes / overhead_share;
        const std::uint64_t left = status.available - std::min(status.available, kept);

        bounds.push_back({.what = "the reserve", .left = left, .after_reclaim = left});
    }
    const std::string self = cgroups.of_self();
    bool charged = false;
    for (std::string path = self; cgroups.exists(path); path = parent_path(path)) {
        Target at;

        at.path = path;
        at.id = cgroups.id(path);
        try {
            const Account account = read_account(module, cgroups, at);

            charged |= path == self && account.charge_effective == UMACCT_CHARGE_ON;
            add_bounds(bounds, machine, account, charged);
        } catch (const RequestError &error) {
            // Whoever may not see it is not told what it leaves.
            if (error.failure() != Failure::permission)
                throw;
        }
        if (path == "/")
            break;
    }
    return bounds;
}

// --- who holds it -----------------------------------------------------------------

/// What is below a cgroup is taken out of its own figures.
std::vector<Holder> holders(const Machine &machine, const std::vector<Account> &accounts) {
    std::map<std::string, Holder> by_path;

    machine.cgroups().for_each([&](const std::string &path) {
        auto stat = machine.cgroups().keyed(path, "memory.stat");

        by_path[path] = {
            .path = path, .anonymous = stat["anon"] + stat["shmem"], .cache = cache_of(stat)};
    });
    const std::map<std::string, Holder> whole = by_path;
    for (const auto &[path, holder] : whole) {
        const auto parent = by_path.find(parent_path(path));

        if (path == "/" || parent == by_path.end())
            continue;
        parent->second.anonymous -= std::min(parent->second.anonymous, holder.anonymous);
        parent->second.cache -= std::min(parent->second.cache, holder.cache);
    }
    for (const Account &account : accounts) {
        Holder &holder = by_path[account.path];

        holder.path = account.path;
        holder.driver = account.local;
    }

    std::vector<Holder> list;
    list.reserve(by_path.size());
    for (auto &[path, holder] : by_path)
        list.push_back(std::move(holder));
    return list;
}

/// The first few by what counts for the answer.
std::vector<Holder> first_of(std::vector<Holder> list, Prospect prospect) {
    const auto weight = [prospect](const Holder &holder) {
        return prospect == Prospect::none ? holder.driver + holder.anonymous : holder.cache;
    };

    std::erase_if(list, [&](const Holder &holder) { return weight(holder) == 0; });
    std::ranges::stable_sort(list, std::greater<>(), weight);
    list.resize(std::min(list.size(), holders_shown));
    return list;
}

// --- what is said -----------------------------------------------------------------

/// How a prospect is told.
struct Told {
    std::string_view text;
    std::string_view json;
    int exit_code;
};

const Told &told(Prospect prospect) {
    static constexpr std::array all{
        Told{"yes", "yes", 0}, Told{"after reclaim", "reclaim", exit_after_reclaim},
        Told{"only after compaction", "compaction", exit_after_compaction},
        Told{"no", "no", exit_no_room}};

    return all.at(static_cast<std::size_t>(prospect));
}

std::string reason_of(const Preflight &answer, const Asked &asked, std::uint64_t total) {
    std::string free = fmt::format("{} are free in blocks of {}", format_size(answer.free),
                                   format_size(asked.block));

    switch (answer.prospect) {
    case Prospect::fits:
        return free;
    case Prospect::after_reclaim:
        if (answer.bound)
            return fmt::format("{} leaves {} until page cache is given back", answer.bound->what,
                               format_size(answer.bound->left));
        return fmt::format("{}; of {} of page cache, {} would be given back", free,
                           format_size(answer.cache), format_size(answer.to_reclaim));
    case Prospect::after_compaction:
        return fmt::format("{}; {}memory would have to be moved, which may fail", free,
                           answer.to_reclaim == 0
                               ? ""
                               : fmt::format("{} of page cache would be given back, and ",
                                             format_size(answer.to_reclaim)));
    case Prospect::none:
        break;
    }
    if (asked.bytes > total)
        return fmt::format("{} is more than the machine's memory", format_size(asked.bytes));
    if (answer.bound)
        return fmt::format("{} leaves {}", answer.bound->what,
                           format_size(answer.bound->after_reclaim));
    return fmt::format("{}, and {} of page cache could be given back; {} are missing", free,
                       format_size(answer.cache), format_size(answer.missing));
}

void print_holders(const Machine &machine, const Output &output, const std::vector<Holder> &list) {
    Table table({{"CGROUP"},
                 {"DRIVER", Align::right},
                 {"ANON", Align::right},
                 {"PAGE CACHE", Align::right}});

    for (const Holder &holder : list)
        table.add({display_path(machine.owners(), holder.path), format_size(holder.driver),
                   format_size(holder.anonymous), format_size(holder.cache)});
    if (!table.empty())
        table.print(output);
}

Json holders_json(const Machine &machine, const std::vector<Holder> &list) {
    Json json = Json::array();

    for (const Holder &holder : list)
        json.push_back({{"path", holder.path},
                        {"owner", to_json(machine.owners().nearest(holder.path))},
                        {"driver_bytes", holder.driver},
                        {"anonymous_bytes", holder.anonymous},
                        {"cache_bytes", holder.cache}});
    return json;
}

Json answer_json(const Preflight &answer, const Asked &asked, const std::optional<Fixed> &fixed) {
    return {{"answer", told(answer.prospect).json},
            {"wanted_bytes", asked.bytes},
            {"block_bytes", asked.block},
            {"free_bytes", answer.free},
            {"cache_bytes", answer.cache},
            {"to_reclaim_bytes", answer.to_reclaim},
            {"missing_bytes", answer.missing},
            {"bound", answer.bound ? Json(answer.bound->what) : Json()},
            {"fixed", fixed ? Json({{"reclaimed_bytes", fixed->reclaimed},
                                    {"compactions", fixed->compactions},
                                    {"took_ns", fixed->took_ns}})
                            : Json()}};
}

// --- the verb ---------------------------------------------------------------------

Fixed fix(const Machine &machine, const Asked &asked, bool anonymous) {
    using Clock = std::chrono::steady_clock;

    const auto start = Clock::now();
    Reclaimer reclaimer(machine.cgroups(), machine.proc(), machine.root(), anonymous);
    Refill refill(need_of_driver(asked.bytes, asked.block));
    Fixed fixed;

    for (;;) {
        const Zones before = Zones::read(machine.proc());
        const Refill::Step step = refill.next(before);

        if (step.action == Refill::Action::reclaim) {
            refill.reclaimed(reclaimer.reclaim(step.bytes));
            const std::uint64_t free = Zones::read(machine.proc()).usable();
            fixed.reclaimed += (free - std::min(free, before.usable())) * page_size();
        } else if (step.action == Refill::Action::compact) {
            reclaimer.compact();
            ++fixed.compactions;
        } else {
            break;
        }
    }
    fixed.took_ns = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
    return fixed;
}

Preflight ask(const Machine &machine, const Asked &asked, const std::vector<Bound> &bounds) {
    const Zones zones = Zones::read(machine.proc());
    const Need need = need_of_driver(asked.bytes, asked.block);
    const bool look = !shortfall(need, zones).none();

    if (need.order > zones.largest_order())
        throw Error(Failure::usage, fmt::format("--blocks: the kernel has none of more than {}",
                                                format_size(page_size() << zones.largest_order())));
    return preflight(asked.bytes, asked.block, zones,
                     look ? survey_blocks(machine.proc(), zones, need.order) : std::nullopt,
                     bounds);
}

int preflight(Session &session, const Options &options) {
    const Machine &machine = session.machine;
    const Output &output = session.output;
    const Asked asked{.bytes = read_argument("SIZE", options.size, parse_size),
                      .block = options.blocks
                                   ? read_argument("--blocks", *options.blocks, parse_block)
                                   : default_block};
    std::vector<Account> accounts;
    std::vector<Bound> bounds;
    std::optional<Fixed> fixed;

    try {
        const Status status = session.module().status();

        if (!status.tells_all())
            output.note("the reserve is not visible to you, and not reckoned with");
        bounds = bounds_of(session.module(), status, machine, asked.bytes);
        accounts = session.module().accounts();
    } catch (const Error &error) {
        if (error.failure() != Failure::missing)
            throw;
        output.note("the umacct module is not loaded: nothing is known of the driver's memory");
    }
    Preflight answer = ask(machine, asked, bounds);
    if (options.fix && answer.prospect != Prospect::fits && answer.prospect != Prospect::none) {
        fixed = fix(machine, asked, options.anonymous);
        answer = ask(machine, asked, bounds);
    }

    const std::string reason = reason_of(answer, asked, machine.meminfo().total());
    const auto shown = first_of(holders(machine, accounts), answer.prospect);
    if (output.json) {
        Json json = answer_json(answer, asked, fixed);

        json["reason"] = reason;
        json["holders"] = holders_json(machine, shown);
        output.document(json);
        return told(answer.prospect).exit_code;
    }
    if (fixed)
        fmt::print(
            output.out, "{} of page cache given back, {}, in {}\n", format_size(fixed->reclaimed),
            counted(fixed->compactions, "compaction", "compactions"), format_time(fixed->took_ns));
    fmt::print(output.out, "{}: {}\n", told(answer.prospect).text, reason);
    if (answer.prospect != Prospect::fits)
        print_holders(machine, output, shown);
    return told(answer.prospect).exit_code;
}

} // namespace

Action add_preflight(CLI::App &verb) {
    auto options = std::make_shared<Options>();

    verb.add_option("SIZE", options->size, "how much the driver will be asked for")->required();
    verb.add_option("--blocks", options->blocks, "in blocks of this size; 2M unless told")
        ->type_name("SIZE");
    verb.add_flag("--fix", options->fix, "give back page cache and compact, and ask again");
    verb.add_flag("--anonymous", options->anonymous, "with --fix: programs' memory may be swapped");
    verb.footer("Exit codes: 0 yes, 6 after reclaim, 7 only after compaction, 8 no.\n");
    add_examples(verb, "umacct preflight 96G\n"
                       "umacct preflight 96G --fix\n"
                       "umacct preflight 40G --blocks 64K --json");
    return [options](Session &session) { return preflight(session, *options); };
}

} // namespace umacct::tool
