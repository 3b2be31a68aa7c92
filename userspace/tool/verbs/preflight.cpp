// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/memory/preflight.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <unordered_set>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/arithmetic.h"
#include "lib/error.h"
#include "lib/json.h"
#include "lib/memory/keeper.h"
#include "lib/memory/reclaim.h"
#include "lib/units.h"
#include "tool/arguments.h"
#include "tool/exit_code.h"
#include "tool/print/holders.h"
#include "tool/print/table.h"
#include "tool/print/text.h"
#include "tool/session.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t holders_shown = 5;

/// How often --wait looks, so that what comes back is seen well within 100 ms.
constexpr std::chrono::milliseconds look_interval{50};

/// And how often at what seldom changes: watermarks, and what is kept for devices.
constexpr std::chrono::seconds rest_interval{1};

/// Pause before --wait with --fix tries again, unless ten times
/// as long as it took.
constexpr std::chrono::seconds fix_interval{1};

struct PreflightOptions {
    std::string size;
    std::optional<std::string> blocks;
    std::optional<std::string> wait;
    bool fix = false;
    bool anonymous = false;
};

struct Asked {
    std::uint64_t bytes = 0;
    std::uint64_t block = 0;
};

/// Result of --fix.
struct Fixed {
    std::uint64_t reclaimed = 0;
    std::uint64_t compactions = 0;
    std::uint64_t took_ns = 0;

    Fixed &operator+=(const Fixed &other) {
        reclaimed += other.reclaimed;
        compactions += other.compactions;
        took_ns += other.took_ns;
        return *this;
    }
};

// --- what may be in the way -------------------------------------------------------

/// Adds the rest that limits of one account leave.
void add_bounds(std::vector<Bound> &bounds, const Machine &machine, const Account &account,
                bool charged, const Protection &protection) {
    const std::string name = display_path(machine.owners(), account.path);

    if (account.hard) {
        const std::uint64_t left = without(*account.hard, account.usage);

        bounds.push_back(
            {.what = "the hard limit of " + name, .left = left, .after_reclaim = left});
    }
    const MemoryController memory = memory_controller(machine.cgroups(), account);
    if (charged && memory.current && memory.max.value_or(UMACCT_UNLIMITED) != UMACCT_UNLIMITED) {
        const std::uint64_t left = without(*memory.max, *memory.current);
        const std::uint64_t cache = cache_of(machine.cgroups().keyed(account.path, "memory.stat"));
        const std::uint64_t kept = std::min(cache, protection.below(account.path));

        bounds.push_back({.what = "memory.max of " + name,
                          .left = left,
                          .after_reclaim = std::min(*memory.max, left + cache - kept)});
    }
}

/// Adds the rest that the reserve and others' guarantees leave, as the module compares them. own:
/// what is kept for the one that asks, and not used yet.
void add_reserve(std::vector<Bound> &bounds, const Status &status, std::uint64_t bytes,
                 std::uint64_t own) {
    const std::uint64_t others = status.kept - std::min(status.kept, own);

    // The reserve does not refuse memory that is guaranteed to it.
    if ((status.reserve == 0 && others == 0) || bytes <= own)
        return;
    const std::uint64_t kept = status.reserve + others + bytes / overhead_share;
    const std::uint64_t left = status.available - std::min(status.available, kept);

    bounds.push_back({.what = others == 0 ? "the reserve"
                              : status.reserve == 0
                                  ? "what guarantees keep for others"
                                  : "the reserve, and what guarantees keep for others",
                      .left = left,
                      .after_reclaim = left});
}

/// Bounds of the caller: a service's own cgroup, in its ExecStartPre=.
std::vector<Bound> bounds_of(Module &module, const Status &status, const Machine &machine,
                             std::uint64_t bytes, const Protection &protection) {
    const Cgroups &cgroups = machine.cgroups();
    std::vector<Bound> bounds;

    const std::string self = cgroups.of_self();
    bool charged = false;
    std::uint64_t own = 0; // own part of guarantees
    for (std::string path = self; cgroups.exists(path); path = parent_path(path)) {
        Target at;

        at.path = path;
        at.id = cgroups.id(path);
        try {
            const Account account = read_account(module, cgroups, at);

            charged |= path == self && account.charge_effective == UMACCT_CHARGE_ON;
            own = std::max(own, account.keep - std::min(account.keep, account.usage));
            add_bounds(bounds, machine, account, charged, protection);
        } catch (const RequestError &error) {
            // Hidden from a reader that may not see all.
            if (error.failure() != Failure::permission)
                throw;
        }
        if (path == "/")
            break;
    }
    add_reserve(bounds, status, bytes, own);
    return bounds;
}

// --- who holds it -----------------------------------------------------------------

/// The first few by what counts for the answer.
std::vector<Holder> first_of(std::vector<Holder> list, Prospect prospect) {
    const auto weight = [prospect](const Holder &holder) {
        return prospect == Prospect::none ? holder.held() : holder.cache;
    };

    std::erase_if(list, [&](const Holder &holder) { return weight(holder) == 0; });
    std::ranges::stable_sort(list, std::greater<>(), weight);
    list.resize(std::min(list.size(), holders_shown));
    return list;
}

// --- what is said -----------------------------------------------------------------

/// Words for a prospect.
struct Words {
    std::string_view text;
    std::string_view json;
    int exit_code;
};

const Words &words_of(Prospect prospect) {
    static constexpr std::array all{
        Words{"yes", "yes", 0}, Words{"after reclaim", "reclaim", exit_after_reclaim},
        Words{"only after compaction", "compaction", exit_after_compaction},
        Words{"no", "no", exit_no_room}};

    return all.at(static_cast<std::size_t>(prospect));
}

/// The cgroup whose memory.min keeps the answer from being better.
std::string kept_note(const Preflight &answer, const Owners &owners) {
    return answer.kept_by.empty()
               ? ""
               : fmt::format("; memory.min of {} keeps {} of page cache",
                             display_path(owners, answer.kept_by), format_size(answer.kept));
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
    return fmt::format(
        "{}, and {} of page cache could be given back; with the driver's metadata, {} "
        "are missing",
        free, format_size(answer.cache), format_size(answer.missing));
}

void print_cgroups(const Machine &machine, const Output &output, const std::vector<Holder> &list) {
    Table table({{"CGROUP"},
                 {"DRIVER", Align::right},
                 {"ANON", Align::right},
                 {"SHARED", Align::right},
                 {"PAGE CACHE", Align::right}});

    for (const Holder &holder : list)
        table.add({display_path(machine.owners(), holder.path), format_size(holder.driver),
                   format_size(holder.anonymous), format_size(holder.shared),
                   format_size(holder.cache)});
    if (!table.empty())
        table.print(output);
}

/// The largest process of each, if it is looked for.
std::vector<std::optional<HoldingProcess>> processes_of(const Machine &machine,
                                                        const std::vector<Holder> &list,
                                                        const std::vector<Client> &clients) {
    std::vector<std::optional<HoldingProcess>> processes;

    processes.reserve(list.size());
    for (const Holder &holder : list)
        processes.push_back(first_process(machine, holder.path, clients));
    return processes;
}

Json holders_json(const Machine &machine, const std::vector<Holder> &list,
                  const std::vector<std::optional<HoldingProcess>> &processes) {
    Json json = Json::array();

    for (std::size_t i = 0; i < list.size(); ++i)
        json.push_back({{"path", list[i].path},
                        {"owner", to_json(machine.owners().nearest(list[i].path))},
                        {"driver_bytes", list[i].driver},
                        {"anonymous_bytes", list[i].anonymous + list[i].shared},
                        {"shared_bytes", list[i].shared},
                        {"cache_bytes", list[i].cache},
                        {"process", i < processes.size() ? holder_json(processes[i]) : Json()}});
    return json;
}

std::uint64_t ns_since(Clock::time_point start) {
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
}

Json answer_json(const Preflight &answer, const Asked &asked, const std::optional<Fixed> &fixed,
                 std::uint64_t waited_ns) {
    return {{"answer", words_of(answer.prospect).json},
            {"wanted_bytes", asked.bytes},
            {"block_bytes", asked.block},
            {"free_bytes", answer.free},
            {"cache_bytes", answer.cache},
            {"to_reclaim_bytes", answer.to_reclaim},
            {"missing_bytes", answer.missing},
            {"kept_bytes", answer.kept},
            {"kept_by", answer.kept_by.empty() ? Json() : Json(answer.kept_by)},
            {"waited_ns", waited_ns},
            {"bound", answer.bound ? Json(answer.bound->what) : Json()},
            {"fixed", fixed ? Json({{"reclaimed_bytes", fixed->reclaimed},
                                    {"compactions", fixed->compactions},
                                    {"took_ns", fixed->took_ns}})
                            : Json()}};
}

// --- the verb ---------------------------------------------------------------------

Fixed fix(const Machine &machine, const Asked &asked, bool anonymous) {
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
            fixed.reclaimed += without(free, before.usable()) * page_size();
        } else if (step.action == Refill::Action::compact) {
            reclaimer.compact();
            ++fixed.compactions;
        } else {
            break;
        }
    }
    fixed.took_ns = ns_since(start);
    return fixed;
}

/// Asks, as often as is needed, with what is known at that moment.
class Question {
public:
    Question(Session &session, const Asked &asked)
        : session_(session), machine_(session.machine), asked_(asked) {
        const std::size_t largest = Zones::read(machine_.proc()).largest_order();

        if (need().order > largest)
            throw Error(Failure::usage, fmt::format("--blocks: the largest block is {}",
                                                    format_size(page_size() << largest)));
        try {
            if (!session_.module().status().tells_all())
                session_.output.note("you cannot see the reserve; the answer does not include it");
        } catch (const Error &error) {
            if (error.failure() != Failure::missing)
                throw;
            loaded_ = false;
            session_.output.note(
                "the umacct module is not loaded: nothing is known of the driver's memory");
        }
    }

    /// Looks into the blocks, too, where that matters: it takes two seconds for 100 GB.
    Preflight ask_closely() const {
        const Zones zones = Zones::read(machine_.proc());

        if (shortfall(need(), zones).none())
            return answer(zones, {}, {});
        const Protection protection = Protection::read(machine_.cgroups());
        return answer(zones,
                      survey_blocks(machine_.proc(), zones, need().order, keepers(protection)),
                      protection);
    }

    /// The same without: what page cache and compaction would give is a guess then. For many
    /// times a second: what is free is read each time, the rest, which costs ten times as much,
    /// each second and before a yes.
    Preflight ask() {
        const auto now = Clock::now();

        if (zones_)
            zones_->refresh(machine_.proc());
        if (!zones_ || now - read_at_ >= rest_interval || shortfall(need(), *zones_).none()) {
            zones_ = Zones::read(machine_.proc());
            read_at_ = now;
        }
        return answer(*zones_, {},
                      shortfall(need(), *zones_).none() ? Protection()
                                                        : Protection::read(machine_.cgroups()));
    }

    std::string reason(const Preflight &answer) const {
        return reason_of(answer, asked_, machine_.meminfo().total()) +
               kept_note(answer, machine_.owners());
    }

    /// No wait gets that.
    bool exceeds_machine() const { return asked_.bytes > machine_.meminfo().total(); }

    /// Prints the progress for the log of a waiting service.
    void tell_why(const Preflight &answer) const {
        session_.output.note("not yet: " + reason(answer));
    }

    std::vector<Account> accounts() const {
        return loaded_ ? session_.module().accounts() : std::vector<Account>();
    }

    /// Others' files are hidden from a user who may not see them.
    std::vector<Client> clients() const {
        return loaded_ ? session_.module().clients() : std::vector<Client>();
    }

private:
    Need need() const { return need_of_driver(asked_.bytes, asked_.block); }

    std::unordered_set<std::uint64_t> keepers(const Protection &protection) const {
        std::unordered_set<std::uint64_t> ids;

        for (const ProtectedCache &each : protection.list()) {
            if (machine_.cgroups().exists(each.path))
                ids.insert(machine_.cgroups().id(each.path));
        }
        return ids;
    }

    Preflight answer(const Zones &zones, const std::optional<Survey> &survey,
                     const Protection &protection) const {
        const auto bounds = loaded_ ? bounds_of(session_.module(), session_.module().status(),
                                                machine_, asked_.bytes, protection)
                                    : std::vector<Bound>();

        return preflight(asked_.bytes, asked_.block, zones, survey, bounds, protection);
    }

    Session &session_;
    const Machine &machine_;
    Asked asked_;
    bool loaded_ = true;
    std::optional<Zones> zones_;
    Clock::time_point read_at_;
};

/// The answer, once it is yes; empty when the time is up.
std::optional<Preflight> wait_for(Question &question, const std::function<Fixed()> &fix,
                                  std::chrono::nanoseconds time, std::optional<Fixed> &fixed) {
    const auto start = Clock::now();
    Clock::time_point next_fix;
    bool said = false;

    for (;;) {
        Preflight answer = question.ask();
        const auto now = Clock::now();

        if (fix && answer.prospect != Prospect::fits && answer.prospect != Prospect::none &&
            now >= next_fix) {
            fixed = fixed.value_or(Fixed()) += fix();
            next_fix =
                Clock::now() + std::max<Clock::duration>(fix_interval, 10 * (Clock::now() - now));
            answer = question.ask();
        }
        if (answer.prospect == Prospect::fits)
            return answer;
        if (now - start >= time)
            return std::nullopt;
        if (!std::exchange(said, true))
            question.tell_why(answer);
        std::this_thread::sleep_for(
            std::min<std::chrono::nanoseconds>(look_interval, time - (now - start)));
    }
}

} // namespace

int empty_pools(Session &session) {
    const Reclaim made = session.module().reclaim();

    if (session.output.json)
        session.output.document(to_json(made));
    else
        fmt::print(session.output.out, "{} reclaimed, {} left in the driver's pools\n",
                   format_size(made.reclaimed), size_or_unknown(made.pools));
    return 0;
}

namespace {

int preflight(Session &session, const PreflightOptions &options) {
    const Machine &machine = session.machine;
    const Output &output = session.output;

    if (options.size.empty() && !options.fix)
        throw Error(Failure::usage, "SIZE is required: how much will the driver be asked for?",
                    "for example: umacct preflight 96G");
    if (options.size.empty() && (options.blocks || options.wait || options.anonymous))
        throw Error(Failure::usage, "SIZE is missing: without it, --fix takes no other option",
                    "for example: umacct preflight 96G --fix");
    if (options.size.empty())
        return empty_pools(session);

    const Asked asked{.bytes = read_argument("SIZE", options.size,
                                             [&](const std::string &text) {
                                                 return parse_machine_size(text, machine);
                                             }),
                      .block = options.blocks
                                   ? read_argument("--blocks", *options.blocks, parse_block)
                                   : default_block};
    const std::chrono::nanoseconds time(
        options.wait ? read_argument("--wait", *options.wait, parse_time) : 0);
    Question question(session, asked);
    const auto mend = [&] { return fix(machine, asked, options.anonymous); };
    std::optional<Preflight> answer;
    std::optional<Fixed> fixed;

    const auto start = Clock::now();
    if (options.wait && !question.exceeds_machine())
        answer = wait_for(question, options.fix ? mend : std::function<Fixed()>(), time, fixed);
    const std::uint64_t waited_ns = options.wait ? ns_since(start) : 0;
    if (!answer)
        answer = question.ask_closely();
    if (options.fix && answer->prospect != Prospect::fits && answer->prospect != Prospect::none) {
        fixed = fixed.value_or(Fixed()) += mend();
        answer = question.ask_closely();
    }

    const std::string reason = question.reason(*answer);
    // Holders matter only if it doesn't fit, and finding them would delay one that waited.
    const auto shown = answer->prospect == Prospect::fits
                           ? std::vector<Holder>()
                           : first_of(holders(machine, question.accounts()), answer->prospect);
    // Names processes if some have to end.
    const bool named = answer->prospect == Prospect::none;
    const auto processes = named ? processes_of(machine, shown, question.clients())
                                 : std::vector<std::optional<HoldingProcess>>();
    const auto files = named ? holding_files(machine) : std::vector<SharedFile>();
    if (output.json) {
        Json json = answer_json(*answer, asked, fixed, waited_ns);

        json["reason"] = reason;
        json["holders"] = holders_json(machine, shown, processes);
        json["shared_files"] = files_json(files);
        output.document(json);
        return words_of(answer->prospect).exit_code;
    }
    if (fixed)
        fmt::print(
            output.out, "{} of page cache given back, {}, in {}\n", format_size(fixed->reclaimed),
            counted(fixed->compactions, "compaction", "compactions"), format_time(fixed->took_ns));
    fmt::print(output.out, "{}: {}{}\n", words_of(answer->prospect).text, reason,
               options.wait ? fmt::format("; waited {}", format_elapsed(waited_ns)) : "");
    if (answer->prospect != Prospect::fits)
        print_cgroups(machine, output, shown);
    print_holders(machine, output, processes, files);
    return words_of(answer->prospect).exit_code;
}

} // namespace

Action add_preflight(CLI::App &verb) {
    auto options = std::make_shared<PreflightOptions>();

    verb.add_option("SIZE", options->size,
                    "how much the driver will be asked for, such as 96G or 80%; with --fix alone, "
                    "the driver's pools are emptied");
    verb.add_option("--blocks", options->blocks, "in blocks of this size; default: 2M")
        ->type_name("SIZE");
    verb.add_flag("--fix", options->fix, "give back page cache and compact, and ask again");
    verb.add_flag("--anonymous", options->anonymous, "with --fix: programs' memory may be swapped");
    verb.add_option("--wait", options->wait,
                    "wait until it fits, at most this long, such as 5min; with --fix, until it can "
                    "be made to fit")
        ->type_name("TIME");
    verb.footer("Exit codes: 0 yes, 6 after reclaim, 7 only after compaction, 8 no.\n");
    add_examples(verb,
                 "umacct preflight 96G\n"
                 "umacct preflight 96G --fix\n"
                 "umacct preflight 96G --fix --wait 10min\n"
                 "umacct preflight --fix                give back what the driver's pools have\n"
                 "umacct preflight 40G --blocks 64K --json");
    return [options](Session &session) { return preflight(session, *options); };
}

} // namespace umacct::tool
