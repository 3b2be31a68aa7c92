// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/verify/proof.h"

#include <array>

#include <fmt/format.h>

#include "lib/units.h"

namespace umacct {

namespace {

constexpr std::uint32_t no_memory = 0x51; ///< status that CUDA reports as out of memory

Step step_of(const char *name, std::uint64_t size, std::uint64_t memory_max) {
    Step step;

    step.name = name;
    step.asked = size;
    step.memory_max = memory_max;
    return step;
}

void run_step(TestCgroup &cgroup, Step &step) {
    const MemoryEvents events = cgroup.events();

    cgroup.set_memory_max(step.memory_max);
    step.before = cgroup.figures();
    step.got = cgroup.allocate(step.asked);
    step.during = cgroup.figures();
    step.events = cgroup.events();
    step.events.max -= events.max;
    step.events.oom_kills -= events.oom_kills;
    cgroup.free_all();
    step.after = cgroup.figures();
}

/// Most of what was taken is in memory.current; the rest may lie in per-CPU stocks.
bool is_seen(const Step &step) {
    return step.got.bytes > 0 && step.seen() >= step.got.bytes / 2;
}

/// Checks a refusal: the program gets an answer, and no process is killed.
std::string fault_of(const Step &step) {
    if (step.events.oom_kills > 0)
        return "the kernel killed in the cgroup";
    if (step.got.bytes == step.asked)
        return "nothing was refused";
    if (step.got.status != no_memory)
        return fmt::format("the driver answered {:#x} instead of {:#x}", step.got.status,
                           no_memory);
    if (step.after.usage != step.before.usage)
        return fmt::format("{} were not given back", format_size(step.after.usage));
    return "";
}

void judge_plain(Step &step) {
    if (is_seen(step)) {
        step.finding = Finding::charged;
        step.text = fmt::format("memory.current rose by {} for {} taken", format_size(step.seen()),
                                format_size(step.got.bytes));
    } else if (step.got.bytes > step.memory_max) {
        step.finding = Finding::blind;
        step.text = fmt::format("the driver took {} under a memory.max of {}, and memory.current "
                                "rose by {}",
                                format_size(step.got.bytes), format_size(step.memory_max),
                                format_size(step.seen()));
    } else {
        step.finding = Finding::unclear;
        step.text = fmt::format("only {} were given, for another reason than memory.max: a limit "
                                "above, the reserve?",
                                format_size(step.got.bytes));
    }
}

/// Judges what a limit did: that it held, unless there is a fault.
void conclude(Step &step, const std::string &fault, const std::string &holds) {
    step.finding = fault.empty() ? Finding::holds : Finding::fails;
    step.text = fault.empty() ? holds : fault;
}

/// umacct's count of one allocation: its pages and their metadata.
std::uint64_t cost_of(const Step &step, std::uint64_t chunk) {
    const std::uint64_t given = step.got.bytes / chunk;

    return given == 0 ? chunk : (step.during.usage - step.before.usage) / given;
}

void judge_limit(Step &step, std::uint64_t chunk) {
    std::string fault = fault_of(step);

    if (fault.empty() && step.during.usage > *step.hard)
        fault = fmt::format("it holds {}", format_size(step.during.usage));
    if (fault.empty() && step.during.usage + cost_of(step, chunk) <= *step.hard)
        fault = fmt::format("it was refused at {}", format_size(step.during.usage));
    conclude(step, fault,
             fmt::format("a hard limit of {} let {} and {} of metadata through and refused the "
                         "next {}",
                         format_size(*step.hard), format_size(step.got.bytes),
                         format_size(step.during.metadata), format_size(chunk)));
}

void judge_charge(Step &step) {
    std::string fault = fault_of(step);

    if (fault.empty() && !is_seen(step))
        fault = fmt::format("memory.current rose by {} only", format_size(step.seen()));
    if (fault.empty() && step.events.max == 0)
        fault = fmt::format("{} were refused for another reason than memory.max: a limit above, "
                            "the reserve?",
                            format_size(step.asked - step.got.bytes));
    if (fault.empty() && step.during.charged != step.got.bytes)
        fault = fmt::format("{} of {} are charged", format_size(step.during.charged),
                            format_size(step.got.bytes));
    conclude(step, fault,
             fmt::format("memory.current rose by {} for {} taken, and memory.max of {} refused the "
                         "next",
                         format_size(step.seen()), format_size(step.got.bytes),
                         format_size(step.memory_max)));
}

} // namespace

std::string_view name_of(Finding finding) {
    static constexpr std::array<std::string_view, 6> names{"blind", "charged", "unclear",
                                                           "holds", "fails",   "skipped"};

    return names.at(static_cast<std::size_t>(finding));
}

std::vector<Step> verify(TestCgroup &cgroup, std::uint64_t size, std::uint64_t chunk,
                         const Obstacles &obstacles) {
    const std::uint64_t half = size / 2;
    Step plain = step_of("plain", size, half);
    Step limit = step_of("limit", size, UMACCT_UNLIMITED);
    Step charge = step_of("charge", size, half);
    AccountChange change;

    run_step(cgroup, plain);
    judge_plain(plain);

    limit.hard = half;
    if (obstacles.limits.empty()) {
        change.hard = half;
        cgroup.set_account(change);
        run_step(cgroup, limit);
        judge_limit(limit, chunk);
    } else {
        limit.text = obstacles.limits;
    }

    charge.charging = true;
    if (obstacles.charging.empty()) {
        change.hard = UMACCT_UNLIMITED;
        change.charge = UMACCT_CHARGE_ON;
        cgroup.set_account(change);
        run_step(cgroup, charge);
        judge_charge(charge);
    } else {
        charge.text = obstacles.charging;
    }
    return {plain, limit, charge};
}

} // namespace umacct
