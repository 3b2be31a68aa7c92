// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/verify/proof.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "lib/error.h"
#include "lib/host/process.h"
#include "lib/host/scope.h"
#include "lib/json.h"
#include "lib/text.h"
#include "lib/units.h"
#include "tool/arguments.h"
#include "tool/print/table.h"
#include "tool/session.h"
#include "tool/verbs.h"

extern "C" {
#include "rmclient.h"
}

namespace umacct::tool {

namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t chunk = 1ULL << 20; ///< bytes of one allocation
constexpr std::uint64_t least_size = 8 * chunk;
constexpr std::uint64_t most_size = 64 * chunk;
constexpr const char *usual_size = "32M";

/// Multiple of the size that must be available beside the reserve: the machine is
/// not to feel it.
constexpr std::uint64_t times_available = 8;

constexpr auto poll_interval = 100ms;
constexpr int poll_attempts = 100;
constexpr std::uint32_t first_handle = 0x1000;

/// A question to free everything, beside how many allocations to make.
constexpr int free_everything = -1;

/// The machine's own: a throw-away cgroup with an unprivileged process in it, which takes
/// memory through the driver, on request.
class RealCgroup : public TestCgroup {
public:
    /// The process gives its privileges up before it opens the driver.
    RealCgroup(Module &module, const Machine &machine)
        : module_(module),
          machine_(machine),
          process_([this] { serve(); }),
          cgroup_(machine.cgroups(), fmt::format("umacct-verify-{}", getpid()),
                  "The proof that umacct verify makes", {process_.pid()}),
          id_(machine.cgroups().id(cgroup_.path())) {
        questions_.close_read();
        answers_.close_write();
    }

    const std::string &path() const { return cgroup_.path(); }

    void set_memory_max(std::uint64_t bytes) override {
        machine_.cgroups().write(path(), "memory.max",
                                 bytes == UMACCT_UNLIMITED ? "max" : std::to_string(bytes));
    }

    void set_account(const AccountChange &change) override { module_.set_account(id_, change); }

    /// Throws Error when the driver can't be spoken to, or on SIGTERM.
    Allocation allocate(std::uint64_t bytes) override {
        const int held = ask(static_cast<int>(bytes / chunk));
        const int status = answers_.get().value_or(-EPIPE);

        if (status < 0)
            throw Error(Failure::failed,
                        fmt::format("cannot speak to the driver as an unprivileged user: {}",
                                    std::generic_category().message(-status)),
                        "is " RM_CONTROL_DEVICE " there, and readable and writable by everyone?");
        return {.bytes = static_cast<std::uint64_t>(held) * chunk,
                .status = static_cast<std::uint32_t>(status)};
    }

    void free_all() override {
        if (ask(free_everything) != 0 || answers_.get().value_or(-1) != 0)
            throw Error(Failure::failed, "the driver did not take the memory back");
    }

    Figures figures() override {
        const Account account =
            read_account(module_, machine_.cgroups(), {.path = path(), .id = id_, .pid = {}});

        return {.memory_current = machine_.cgroups().number(path(), "memory.current").value_or(0),
                .memory_free = machine_.meminfo().free(),
                .usage = account.usage,
                .charged = account.charged,
                .metadata = account.metadata};
    }

    MemoryEvents events() override {
        auto events = machine_.cgroups().keyed(path(), "memory.events");

        return {.max = events["max"], .oom_kills = events["oom_kill"]};
    }

private:
    void serve();
    int ask(int count);

    Module &module_;
    const Machine &machine_;
    Pipe questions_;
    Pipe answers_;
    Process process_;
    Scope cgroup_;
    std::uint64_t id_;
};

/// Runs in the child. Each question has two answers: the number of allocations now, and the status
/// of the refused one, or -errno.
void RealCgroup::serve() {
    rm_client driver{};
    std::uint32_t held = 0;

    die_with_parent();
    questions_.close_write();
    answers_.close_read();

    int status = drop_privileges(nobodys_uid) ? 0 : -EPERM;
    bool open = false;
    while (const auto question = questions_.get()) {
        if (status == 0 && !open) {
            status = rm_open(&driver);
            open = status == 0;
        }
        int refusal = status;
        if (open && *question == free_everything) {
            for (; held > 0; --held)
                rm_free(&driver, first_handle + held - 1);
        } else if (open) {
            for (int i = 0; i < *question && refusal == 0; ++i) {
                refusal = rm_alloc(&driver, first_handle + held, chunk);
                held += refusal == 0 ? 1 : 0;
            }
        }
        answers_.put(static_cast<int>(held));
        answers_.put(refusal);
    }
    if (open)
        rm_close(&driver);
}

int RealCgroup::ask(int count) {
    questions_.put(count);
    for (int attempt = 0; attempt < poll_attempts; ++attempt) {
        if (SignalGuard::interrupted())
            throw Error(Failure::failed, "interrupted");
        if (answers_.wait(poll_interval)) {
            if (const auto answer = answers_.get())
                return *answer;
            throw Error(Failure::failed, "the allocating process was killed",
                        "the kernel log may name the reason");
        }
    }
    throw Error(Failure::failed, "the driver did not answer within 10 s",
                "the machine may be short of memory; the kernel log may say more");
}

std::uint64_t size_of(const std::string &text) {
    const std::uint64_t size = read_argument("--size", text, parse_size);

    if (size < least_size || size > most_size)
        throw Error(Failure::usage, fmt::format("--size: {} is not possible", text),
                    fmt::format("give {} to {}", format_size(least_size), format_size(most_size)));
    return size / (2 * chunk) * (2 * chunk);
}

/// Nothing can be set without the module: only the blind spot is shown.
Obstacles obstacles_of(const Status &status) {
    if (!status.has(UMACCT_STATUS_OBSERVER))
        return {.limits = {}, .charging = status.charge_reason};
    const std::string reason = "the module is needed, and not loaded: see 'umacct doctor'";
    return {.limits = reason, .charging = reason};
}

/// Throws Error where the proof can't be made, or would hurt.
void require(const Machine &machine, const Status &status, std::uint64_t size) {
    const std::uint64_t available = machine.meminfo(status).available();
    const std::uint64_t needed = status.reserve + times_available * size;

    if (status.driver_state == UMACCT_DRIVER_ABSENT)
        throw Error(Failure::missing, "the NVIDIA driver is not loaded", "modprobe nvidia");
    if (status.driver_state != UMACCT_DRIVER_HOOKED)
        throw Error(Failure::failed,
                    fmt::format("cannot verify driver {}, which umacct does not account: {}",
                                printable(status.driver_version), printable(status.reason)),
                    "see 'umacct doctor'");
    if (available < needed)
        throw Error(Failure::failed,
                    fmt::format("{} are available, and it wants {} to be safe",
                                format_size(available), format_size(needed)),
                    "try a smaller --size, or when the machine is less busy");
    if (geteuid() != 0)
        throw Error(Failure::permission, "it makes a cgroup and sets limits on it",
                    "run as root on the host (CAP_SYS_ADMIN)");
}

bool passed(const std::vector<Step> &steps) {
    return std::ranges::none_of(steps, [](const Step &step) {
        return step.finding == Finding::fails || step.finding == Finding::unclear;
    });
}

Json figures_json(const Figures &figures) {
    return {{"memory_current_bytes", figures.memory_current},
            {"memory_free_bytes", figures.memory_free},
            {"usage_bytes", figures.usage},
            {"charged_bytes", figures.charged},
            {"metadata_bytes", figures.metadata}};
}

Json step_json(const Step &step) {
    return {{"step", step.name},
            {"finding", name_of(step.finding)},
            {"text", step.text},
            {"memory_max_bytes",
             step.memory_max == UMACCT_UNLIMITED ? Json(nullptr) : Json(step.memory_max)},
            {"hard_bytes", step.hard ? Json(*step.hard) : Json(nullptr)},
            {"charging", step.charging},
            {"asked_bytes", step.asked},
            {"allocated_bytes", step.got.bytes},
            {"driver_status", step.got.status},
            {"seen_bytes", step.seen()},
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

void print_step(const Output &output, const Step &step) {
    std::ostream &out = output.out;
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
        add("  metadata", &Figures::metadata);
        table.print(output, 2);
    }
    fmt::print(out, "  => {}: {}\n", name_of(step.finding), step.text);
}

void print_result(const Output &output, const Status &status, const std::string &path,
                  const std::vector<Step> &steps) {
    const Finding verdict = steps.front().finding;

    if (output.json) {
        Json rows = Json::array();

        for (const Step &step : steps)
            rows.push_back(step_json(step));
        output.document({{"verdict", name_of(verdict)},
                         {"passed", passed(steps)},
                         {"driver_version", status.driver_version},
                         {"cgroup", path},
                         {"chunk_bytes", chunk},
                         {"steps", rows}});
        return;
    }
    fmt::print(output.out, "driver {}, cgroup {}, allocations of {} by an unprivileged process\n",
               printable(status.driver_version), printable(path), format_size(chunk));
    for (const Step &step : steps)
        print_step(output, step);
    fmt::print(output.out, "\nVerdict: {}\n",
               verdict == Finding::blind
                   ? "blind. The kernel's memory controller does not see the driver's memory here."
               : verdict == Finding::charged
                   ? "charged. The kernel's memory controller sees the driver's memory here."
                   : "unclear. See the first step.");
}

int verify_machine(Module &module, const Machine &machine, const Output &output,
                   const std::string &size_text) {
    const std::uint64_t size = size_of(size_text);
    const Status status = module.status();
    std::string path;
    std::vector<Step> steps;

    require(machine, status, size);
    {
        // Signals that would end us wait until the cgroup, its process and its memory are gone.
        const SignalGuard signals;
        RealCgroup cgroup(module, machine);

        path = cgroup.path();
        steps = verify(cgroup, size, chunk, obstacles_of(status));
    }
    print_result(output, status, path, steps);
    return passed(steps) ? 0 : static_cast<int>(Failure::failed);
}

} // namespace

Action add_verify(CLI::App &verb) {
    auto size = std::make_shared<std::string>(usual_size);

    verb.add_option("--size", *size, "how much to take: 8M to 64M (default: 32M)")
        ->type_name("SIZE");
    add_examples(verb, "umacct verify\n"
                       "umacct verify --size 64M --json");
    return [size](Session &session) {
        session.count_meanwhile();
        return verify_machine(session.module(), session.machine, session.output, *size);
    };
}

} // namespace umacct::tool
