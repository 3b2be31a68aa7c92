// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/doctor/spark_steps.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/arithmetic.h"
#include "lib/error.h"
#include "lib/host/file_descriptor.h"
#include "lib/host/process.h"
#include "lib/host/scope.h"
#include "lib/units.h"
#include "tool/doctor/cuda.h"
#include "tool/session.h"

namespace umacct::tool::doctor {

namespace {

using namespace std::chrono_literals;
using Time = std::chrono::steady_clock::time_point;

constexpr std::uint64_t small_block = 2ULL << 20;
constexpr std::uint64_t largest_unit = 512ULL << 20;
/// The largest step takes four units; so much of what is available is left alone.
constexpr std::uint64_t units_available = 16;

constexpr auto longest = 55s;
constexpr auto rest = 500ms;
constexpr auto exit_takes = 2s;
constexpr auto poll_interval = 100ms;

/// Memory that the kernel may have charged ahead, or that the process needs for itself.
constexpr std::uint64_t noise = 8ULL << 20;
constexpr std::uint64_t noise_of_machine = 32ULL << 20;

/// Ways to take memory.
enum class Way : std::uint8_t {
    context,
    plain,
    small,
    async,
    created,
    created_on_host,
    managed_by_cpu,
    managed_by_gpu,
    host,
    registered,
    ats,
    exported,
    imported,
    give_back,
};

struct Kind {
    Way way;
    const char *name;
    std::uint64_t units;
};

constexpr std::array kinds{
    Kind{Way::context, "cuInit and a context", 0},
    Kind{Way::plain, "cuMemAlloc", 4},
    Kind{Way::small, "cuMemAlloc, 2 MiB each", 1},
    Kind{Way::async, "cuMemAllocAsync", 2},
    Kind{Way::created, "cuMemCreate", 1},
    Kind{Way::created_on_host, "cuMemCreate, host", 1},
    Kind{Way::managed_by_cpu, "cuMemAllocManaged, CPU", 1},
    Kind{Way::managed_by_gpu, "cuMemAllocManaged, GPU", 1},
    Kind{Way::host, "cuMemHostAlloc", 1},
    Kind{Way::registered, "cuMemHostRegister", 1},
    Kind{Way::ats, "malloc, GPU writes", 1},
    Kind{Way::exported, "shared, creator freed", 1},
};

int take(Cuda &cuda, Way way, std::uint64_t unit, int socket);

/// A process that takes memory through CUDA, as told, in a cgroup of its own where it may have one.
class Subject {
public:
    Subject(const Machine &machine, const char *role, std::uint64_t unit, int socket)
        : unit_(unit), socket_(socket), process_([this] { serve(); }) {
        questions_.close_read();
        answers_.close_write();
        try {
            scope_.emplace(machine.cgroups(), fmt::format("umacct-spark-{}-{}", role, getpid()),
                           "umacct doctor --spark-report", std::vector{process_.pid()});
            id_ = machine.cgroups().id(scope_->path());
        } catch (const Error &) {
            // The machine's figures are all there is if a cgroup can't be made.
            scope_.reset();
        }
    }

    /// CUDA's answer. Throws Error where there is none.
    int ask(Way way, Time until) {
        questions_.put(static_cast<int>(way));
        while (!answers_.wait(poll_interval)) {
            if (SignalGuard::interrupted())
                throw Error(Failure::failed, "interrupted");
            if (std::chrono::steady_clock::now() >= until)
                throw Error(Failure::failed, "the minute is over");
        }
        if (const auto answer = answers_.get())
            return *answer;
        throw Error(Failure::failed, "the process that takes the memory has ended");
    }

    bool has_cgroup() const { return scope_.has_value(); }

    /// Adds what is counted for it.
    void add_to(Sight &sight, Module *module, const Machine &machine) const {
        if (!scope_)
            return;
        if (const auto current = machine.cgroups().number(scope_->path(), "memory.current")) {
            auto stat = machine.cgroups().keyed(scope_->path(), "memory.stat");

            sight.cgroup = sight.cgroup.value_or(0) +
                           without(*current, stat["active_file"] + stat["inactive_file"]);
        }
        if (module == nullptr || !sight.counted)
            return;
        const Account account = read_account(*module, machine.cgroups(),
                                             {.path = scope_->path(), .id = id_, .pid = {}});
        sight.counted->usage += account.usage;
        sight.counted->managed += account.managed;
        sight.counted->metadata += account.metadata;
        sight.counted->charged += account.charged;
        for (const Client &client : module->clients(id_))
            sight.counted->processes += client.usage;
    }

    /// Has the process end, and waits until it has. Whether it did in time.
    bool end(Time until) {
        questions_.close_write();
        while (!process_.exit_code()) {
            if (std::chrono::steady_clock::now() >= until)
                return false;
            std::this_thread::sleep_for(poll_interval);
        }
        return true;
    }

private:
    /// Answers questions, in the child.
    void serve() {
        std::optional<Cuda> cuda;

        die_with_parent();
        questions_.close_write();
        answers_.close_read();
        while (const auto question = questions_.get()) {
            // The process is in its cgroup by now.
            if (!cuda)
                cuda.emplace();
            answers_.put(take(*cuda, static_cast<Way>(*question), unit_, socket_));
        }
        std::_Exit(0);
    }

    std::uint64_t unit_;
    int socket_;
    Pipe questions_;
    Pipe answers_;
    Process process_;
    std::optional<Scope> scope_;
    std::uint64_t id_ = 0;
};

/// Hands a file over, or takes one: a message of one byte with it. -1 where there is none.
int pass_file(int socket, int file, bool sends) {
    char byte = 0;
    iovec part{.iov_base = &byte, .iov_len = 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};

    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (!sends && recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != 1)
        return -1;
    cmsghdr *header = CMSG_FIRSTHDR(&message); // NOLINT: the C library's cast
    if (header == nullptr)
        return -1;
    if (!sends)
        return *reinterpret_cast<int *>(CMSG_DATA(header));
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    *reinterpret_cast<int *>(CMSG_DATA(header)) = file;
    return sendmsg(socket, &message, 0) == 1 ? 0 : -1;
}

int export_to(Cuda &cuda, std::uint64_t size, int socket) {
    int file = -1;
    const int error = cuda.export_memory(size, file);
    const FileDescriptor owned(file);

    if (error != 0)
        return error;
    return pass_file(socket, file, true) == 0 ? 0 : Cuda::bad_file;
}

int import_from(Cuda &cuda, int socket) {
    const FileDescriptor file(pass_file(socket, -1, false));

    return cuda.import_memory(file.get());
}

int take(Cuda &cuda, Way way, std::uint64_t unit, int socket) {
    switch (way) {
    case Way::context:
        return cuda.open();
    case Way::plain:
        return cuda.allocate(4 * unit);
    case Way::small:
        return cuda.allocate(small_block, unit / small_block);
    case Way::async:
        return cuda.allocate_async(2 * unit);
    case Way::created:
        return cuda.create(unit, false);
    case Way::created_on_host:
        return cuda.create(unit, true);
    case Way::managed_by_cpu:
        return cuda.allocate_managed(unit, false);
    case Way::managed_by_gpu:
        return cuda.allocate_managed(unit, true);
    case Way::host:
        return cuda.allocate_host(unit);
    case Way::registered:
        return cuda.register_host(unit);
    case Way::ats:
        return cuda.has_ats() ? cuda.touch_by_ats(unit) : Cuda::no_function;
    case Way::exported:
        return export_to(cuda, unit, socket);
    case Way::imported:
        return import_from(cuda, socket);
    case Way::give_back:
        break;
    }
    return cuda.free_all();
}

std::string text_of_answer(int answer) {
    switch (answer) {
    case Cuda::no_library:
        return "libcuda.so.1 can't be loaded here";
    case Cuda::no_function:
        return "this GPU or its libcuda has no such thing";
    case Cuda::no_host_memory:
        return "the process got no memory of its own";
    case Cuda::bad_file:
        return "the memory could not be handed over";
    default:
        return fmt::format("CUDA's answer is {}", answer);
    }
}

std::uint64_t iommu_pages(const Machine &machine) {
    std::ifstream file(machine.proc() / "vmstat");
    std::uint64_t value = 0;

    for (std::string key; file >> key >> value;) {
        if (key == "nr_iommu_pages")
            return value * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    }
    return 0;
}

/// Runs the steps, one after the other.
class Trial {
public:
    Trial(Module *module, const Machine &machine, std::uint64_t unit,
          const std::array<int, 2> &ends)
        : module_(module),
          machine_(machine),
          unit_(unit),
          until_(std::chrono::steady_clock::now() + longest),
          main_(machine, "taker", unit, ends[0]),
          other_(machine, "other", unit, ends[1]) {}

    std::vector<SparkStep> run() {
        std::vector<SparkStep> steps;
        const Sight first = look();
        std::string ended;

        for (const Kind &kind : kinds) {
            steps.push_back({.name = kind.name,
                             .size = kind.units * unit_,
                             .before = steps.empty() ? first : steps.back().after,
                             .during = {},
                             .after = {},
                             .text = ended});
            SparkStep &step = steps.back();
            if (ended.empty()) {
                try {
                    if (!run(step, kind.way) && kind.way == Way::context)
                        ended = "there is no context";
                } catch (const Error &error) {
                    step.text = ended = error.what();
                }
            }
            if (!ended.empty())
                step.after = step.before;
        }
        steps.push_back(end(first));
        return steps;
    }

private:
    /// Looks once the machine has come to rest.
    Sight look() {
        Sight sight;
        std::optional<Status> status;

        std::this_thread::sleep_for(rest);
        if (module_ != nullptr) {
            status = module_->status();
            if (main_.has_cgroup())
                sight.counted = Sight::Counted{};
        }
        const Meminfo meminfo = status ? machine_.meminfo(*status) : machine_.meminfo();
        sight.available = status ? status->available : meminfo.available();
        sight.free = meminfo.free();
        sight.slab = meminfo.bytes("Slab");
        sight.vmalloc = meminfo.bytes("VmallocUsed");
        sight.page_tables = meminfo.bytes("PageTables");
        sight.sec_page_tables = meminfo.bytes("SecPageTables");
        sight.iommu = iommu_pages(machine_);
        main_.add_to(sight, module_, machine_);
        other_.add_to(sight, module_, machine_);
        return sight;
    }

    /// Whether CUDA did it.
    bool run(SparkStep &step, Way way) {
        int answer = 0;

        if (way == Way::exported) {
            answer = other_.ask(Way::context, until_);
            step.before = look();
        }
        answer = answer != 0 ? answer : main_.ask(way, until_);
        if (way == Way::exported && answer == 0) {
            answer = other_.ask(Way::imported, until_);
            main_.ask(Way::give_back, until_);
        }
        step.during = look();
        if (way == Way::context) {
            step.after = step.during;
        } else {
            (way == Way::exported && answer == 0 ? other_ : main_).ask(Way::give_back, until_);
            step.after = look();
        }
        step.verdict = answer == 0 ? judge(step) : Verdict::skipped;
        step.text = answer == 0 ? "" : text_of_answer(answer);
        return answer == 0;
    }

    SparkStep end(const Sight &first) {
        SparkStep step{.name = "exit", .before = first, .during = first, .after = {}, .text = ""};
        const auto until = std::chrono::steady_clock::now() + exit_takes;
        // The other one also holds the first one's pipe.
        const bool ended = other_.end(until) && main_.end(until);

        step.after = look();
        step.verdict = ended && judge(step) != Verdict::kept ? Verdict::right : Verdict::kept;
        return step;
    }

    Module *module_;
    const Machine &machine_;
    std::uint64_t unit_;
    Time until_;
    Subject main_;
    Subject other_;
};

std::int64_t difference(std::uint64_t to, std::uint64_t from) {
    return static_cast<std::int64_t>(to) - static_cast<std::int64_t>(from);
}

std::string signed_size(std::uint64_t to, std::uint64_t from) {
    return (to < from ? "-" : "+") + format_size(to < from ? from - to : to - from);
}

/// "cgroup +2.00 GiB", and so on, of what changed.
std::string changes(const Sight &from, const Sight &to) {
    std::string text;
    const auto add = [&text](const char *name, std::uint64_t now, std::uint64_t then) {
        if (now != then)
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, signed_size(now, then));
    };

    add("available", to.available, from.available);
    add("MemFree", to.free, from.free);
    if (from.counted && to.counted) {
        add("umacct usage", to.counted->usage, from.counted->usage);
        add("managed", to.counted->managed, from.counted->managed);
        add("metadata", to.counted->metadata, from.counted->metadata);
        add("charged", to.counted->charged, from.counted->charged);
        add("of processes", to.counted->processes, from.counted->processes);
    }
    if (from.cgroup && to.cgroup)
        add("memory.current", *to.cgroup, *from.cgroup);
    add("Slab", to.slab, from.slab);
    add("VmallocUsed", to.vmalloc, from.vmalloc);
    add("PageTables", to.page_tables, from.page_tables);
    add("SecPageTables", to.sec_page_tables, from.sec_page_tables);
    add("nr_iommu_pages", to.iommu, from.iommu);
    return text;
}

} // namespace

std::optional<std::uint64_t> Sight::sum() const {
    if (!counted)
        return std::nullopt;
    return without(counted->usage, counted->metadata + (cgroup ? counted->charged : 0)) +
           cgroup.value_or(0);
}

std::string_view name_of(Verdict verdict) {
    static constexpr std::array<std::string_view, 7> names{
        "right", "doubled", "blind", "not given back", "elsewhere", "not counted", "not tried"};

    return names.at(static_cast<std::size_t>(verdict));
}

Verdict judge(const SparkStep &step) {
    const std::int64_t fell = difference(step.before.available, step.during.available);
    const auto size =
        step.size > 0 ? static_cast<std::int64_t>(step.size) : std::max<std::int64_t>(fell, 0);
    const auto tolerance =
        size / 50 + static_cast<std::int64_t>(step.size > 0 ? noise : noise_of_machine);
    const auto from = step.before.sum();
    const auto to = step.during.sum();

    if (step.size > 0 || step.name == "exit") {
        const auto left = step.after.sum();
        const auto most = static_cast<std::int64_t>(noise_of_machine) + size / 50;

        if (difference(step.before.available, step.after.available) > most ||
            (left && from && difference(*left, *from) > most))
            return Verdict::kept;
    }
    if (!from || !to)
        return fell < size / 2 ? Verdict::elsewhere : Verdict::uncounted;
    const std::int64_t counted = difference(*to, *from);
    if (fell < size / 2)
        return counted < size / 2 ? Verdict::elsewhere : Verdict::doubled;
    if (counted > size + tolerance)
        return Verdict::doubled;
    return counted + tolerance < size ? Verdict::blind : Verdict::right;
}

std::vector<SparkStep> run_spark_steps(Connection &connection, const Machine &machine) {
    std::array<int, 2> ends{-1, -1};
    std::uint64_t reserve = 0;
    std::uint64_t available = machine.meminfo().available();
    Module *module = nullptr;

    try {
        const Status status = connection.module().status();

        module = &connection.module();
        reserve = status.reserve;
        available = status.available;
    } catch (const Error &) {
        // The machine's figures are all there is.
    }
    const std::uint64_t unit = std::min(
        without(available, reserve) / units_available / small_block * small_block, largest_unit);
    if (unit < 4 * small_block)
        throw Error(Failure::failed,
                    fmt::format("{} are available, too little to try it", format_size(available)));
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
        throw std::system_error(errno, std::generic_category(), "socketpair");
    const FileDescriptor first(ends[0]);
    const FileDescriptor second(ends[1]);
    // A signal that ends this program waits until the processes and their memory are gone.
    const SignalGuard signals;
    return Trial(module, machine, unit, ends).run();
}

std::string text_of(const std::vector<SparkStep> &steps) {
    std::string text;

    for (const SparkStep &step : steps) {
        text += fmt::format("{:<24}{:>12}  {}{}{}\n", step.name,
                            step.size > 0 ? format_size(step.size) : "", name_of(step.verdict),
                            step.text.empty() ? "" : ": ", step.text);
        if (step.verdict == Verdict::skipped)
            continue;
        const bool is_exit = step.name == "exit";
        if (const std::string taken = changes(step.before, step.during); !is_exit && !taken.empty())
            text += "    taken: " + taken + '\n';
        if (const std::string left = changes(step.before, step.after);
            (step.size > 0 || is_exit) && !left.empty())
            text += "    after: " + left + '\n';
    }
    return text;
}

} // namespace umacct::tool::doctor
