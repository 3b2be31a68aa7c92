// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/verify/proof.h"

#include <algorithm>
#include <memory>

#include <fmt/ostream.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "lib/error.h"
#include "lib/host/scope.h"
#include "lib/json.h"
#include "lib/text.h"
#include "lib/units.h"
#include "tool/account.h"
#include "tool/argument.h"
#include "tool/print/table.h"
#include "tool/print/text.h"
#include "tool/verbs.h"
#include "tool/verify/driver_client.h"

namespace umacct::tool {

namespace {

constexpr std::uint64_t chunk = 1ULL << 20;
constexpr std::uint64_t least_size = 8 * chunk;
constexpr std::uint64_t most_size = 64 * chunk;
constexpr const char *usual_size = "32M";

/// So many times the size must be available beside the reserve: the machine is
/// not to feel it.
constexpr std::uint64_t times_available = 8;

/// The machine's own: a throw-away cgroup, the driver, the module.
class RealBench : public Bench {
public:
    explicit RealBench(Context &context)
        : context_(context),
          client_(chunk),
          cgroup_(context.cgroups(), fmt::format("umacct-verify-{}", getpid()), {client_.pid()}),
          id_(context.cgroups().id(cgroup_.path())) {}

    const std::string &path() const { return cgroup_.path(); }

    void set_memory_max(std::uint64_t bytes) override {
        context_.cgroups().write(cgroup_.path(), "memory.max",
                                 bytes == UMACCT_UNLIMITED ? "max" : std::to_string(bytes));
    }

    void set_account(const AccountChange &change) override {
        context_.module().set_account(id_, change);
    }

    Allocation allocate(std::uint64_t bytes) override { return client_.allocate(bytes); }

    void free_all() override { client_.free_all(); }

    Figures figures() override {
        const Account account =
            read_account(context_, {.path = cgroup_.path(), .id = id_, .pid = {}});

        return {.memory_current = context_.cgroups().number(path(), "memory.current").value_or(0),
                .memory_free = context_.meminfo().free(),
                .usage = account.usage,
                .charged = account.charged};
    }

    MemoryEvents events() override {
        auto events = context_.cgroups().keyed(path(), "memory.events");

        return {.max = events["max"], .oom_kills = events["oom_kill"]};
    }

private:
    Context &context_;
    DriverClient client_;
    Scope cgroup_;
    std::uint64_t id_;
};

std::uint64_t size_of(const std::string &text) {
    const std::uint64_t size = read_argument("--size", text, parse_size);

    if (size < least_size || size > most_size)
        throw Error(
            Failure::usage, fmt::format("--size: {} is not possible", text),
            fmt::format("it takes {} to {}", format_size(least_size), format_size(most_size)));
    return size / (2 * chunk) * (2 * chunk);
}

/// Throws Error where the proof can't be made, or would hurt.
void require(Context &context, const Status &status, std::uint64_t size) {
    const std::uint64_t available = context.meminfo().available();
    const std::uint64_t needed = status.reserve + times_available * size;

    if (status.driver_state == UMACCT_DRIVER_ABSENT)
        throw Error(Failure::missing, "the NVIDIA driver is not loaded", "modprobe nvidia");
    if (status.driver_state != UMACCT_DRIVER_HOOKED)
        throw Error(Failure::failed,
                    fmt::format("umacct does not account driver {}: {}",
                                printable(status.driver_version), printable(status.reason)),
                    "see 'umacct doctor'");
    if (available < needed)
        throw Error(Failure::failed,
                    fmt::format("{} are available, and it wants {} to be safe",
                                format_size(available), format_size(needed)),
                    "try a smaller --size, or when the machine is less busy");
    if (geteuid() != 0)
        throw Error(Failure::permission, "it makes a cgroup and sets limits on it",
                    "it takes root on the host (CAP_SYS_ADMIN)");
}

/// Why charging can't be tried; empty if it can.
std::string no_charging(const Status &status) {
    if (status.has(UMACCT_STATUS_CHARGE_READY))
        return "";
    if (status.has(UMACCT_STATUS_NATIVE_CHARGE))
        return "this driver charges its pages itself";
    return "charging can't be switched on here: see 'umacct charge'";
}

bool passed(const std::vector<Step> &steps) {
    return std::ranges::none_of(steps, [](const Step &step) {
        return step.finding == Finding::fails || step.finding == Finding::unclear;
    });
}

Json figures_json(const Figures &figures) {
    return {{"memory_current", figures.memory_current},
            {"memory_free", figures.memory_free},
            {"usage", figures.usage},
            {"charged", figures.charged}};
}

Json step_json(const Step &step) {
    return {
        {"step", step.name},
        {"finding", name_of(step.finding)},
        {"says", step.says},
        {"memory_max", step.memory_max == UMACCT_UNLIMITED ? Json(nullptr) : Json(step.memory_max)},
        {"hard", step.hard ? Json(*step.hard) : Json(nullptr)},
        {"charging", step.charging},
        {"asked", step.asked},
        {"allocated", step.got.bytes},
        {"driver_status", step.got.status},
        {"seen", step.seen()},
        {"events_max", step.events.max},
        {"events_oom_kill", step.events.oom_kills},
        {"before", figures_json(step.before)},
        {"during", figures_json(step.during)},
        {"after", figures_json(step.after)}};
}

std::string title_of(const Step &step) {
    if (step.name == "plain")
        return fmt::format("As the machine is, with memory.max = {}", format_size(step.memory_max));
    if (step.name == "limit")
        return fmt::format("With a umacct limit: --hard {}", format_size(*step.hard));
    return fmt::format("With charging on, and memory.max = {}", format_size(step.memory_max));
}

void print_step(std::ostream &out, const Step &step) {
    Table table({{}, {"BEFORE", Align::right}, {"DURING", Align::right}, {"AFTER", Align::right}});
    const auto add = [&](const char *label, std::uint64_t Figures::*figure) {
        table.add({label, format_size(step.before.*figure), format_size(step.during.*figure),
                   format_size(step.after.*figure)});
    };

    fmt::print(out, "\n{}\n", title_of(step));
    if (step.finding != Finding::skipped) {
        fmt::print(out, "  asked the driver for {}, got {}", format_size(step.asked),
                   format_size(step.got.bytes));
        if (step.got.status != 0)
            fmt::print(out, ", then the answer {:#x}", step.got.status);
        fmt::print(out, "; memory.events: max {}, oom_kill {}\n", step.events.max,
                   step.events.oom_kills);
        add("memory.current", &Figures::memory_current);
        add("MemFree", &Figures::memory_free);
        add("umacct usage", &Figures::usage);
        add("  charged", &Figures::charged);
        table.print(out, 2);
    }
    fmt::print(out, "  => {}: {}\n", name_of(step.finding), step.says);
}

void print_result(Context &context, const Status &status, const std::string &path,
                  const std::vector<Step> &steps) {
    const Finding verdict = steps.front().finding;

    if (context.json) {
        Json rows = Json::array();

        for (const Step &step : steps)
            rows.push_back(step_json(step));
        print_json(context.out(),
                   merged(json_document(), {{"verdict", name_of(verdict)},
                                            {"passed", passed(steps)},
                                            {"driver_version", status.driver_version},
                                            {"cgroup", path},
                                            {"chunk", chunk},
                                            {"steps", rows}}));
        return;
    }
    fmt::print(context.out(),
               "driver {}, cgroup {}, allocations of {} by an unprivileged process\n",
               printable(status.driver_version), path, format_size(chunk));
    for (const Step &step : steps)
        print_step(context.out(), step);
    fmt::print(context.out(), "\nVerdict: {}\n",
               verdict == Finding::blind
                   ? "blind. The kernel's memory controller does not see the driver's memory here."
               : verdict == Finding::charged
                   ? "charged. The kernel's memory controller sees the driver's memory here."
                   : "unclear. See the first step.");
}

void verify_machine(Context &context, const std::string &size_text) {
    const std::uint64_t size = size_of(size_text);
    const Status status = context.module().status();
    std::string path;
    std::vector<Step> steps;

    require(context, status, size);
    {
        // What ends us waits until the cgroup, its process and its memory are gone.
        const SignalGuard signals;
        RealBench bench(context);

        path = bench.path();
        steps = verify(bench, size, chunk, no_charging(status));
    }
    print_result(context, status, path, steps);
    if (!passed(steps))
        context.exit_code = static_cast<int>(Failure::failed);
}

} // namespace

void add_verify(CLI::App &app, Context &context) {
    auto size = std::make_shared<std::string>(usual_size);
    CLI::App *verb =
        app.add_subcommand("verify", "prove the blind spot on this machine, or its absence");

    verb->add_option("--size", *size, "how much to take: 8M to 64M, 32M unless told");
    verb->footer(
        "An unprivileged process in a cgroup of its own takes a little memory through the driver,\n"
        "three times: as the machine is, under a umacct limit, and with charging on. Each time\n"
        "memory.current and MemFree are read before, during and after. No GPU and no CUDA are\n"
        "needed. The cgroup goes at the end, whatever happens; nothing else is touched. Takes "
        "root\n"
        "and a few seconds. The exit code is 1 if a limit or charging does not hold; the verdict\n"
        "alone is no failure.\n"
        "\n"
        "Examples:\n"
        "  umacct verify\n"
        "  umacct verify --size 64M --json");
    verb->callback([size, &context] { verify_machine(context, *size); });
}

} // namespace umacct::tool
