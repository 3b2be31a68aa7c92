// SPDX-License-Identifier: GPL-2.0-or-later
/// The library with NVML's soname, over a real one that answers as a GB10's does; and what it
/// makes of the module's answers.
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/module/message.h"
#include "lib/module/model.h"
#include "nvml/ask.h"
#include "nvml/known.h"
#include "nvml/nvml.h"
#include "tests/sandbox.h"

namespace umacct {
namespace {

constexpr std::uint64_t mib = 1ULL << 20;
constexpr std::uint64_t gib = 1ULL << 30;

constexpr std::array variables{"STAND_IN_TOTAL",    "STAND_IN_BAR1", "STAND_IN_COMPUTE",
                               "STAND_IN_GRAPHICS", "STAND_IN_MPS",  "STAND_IN_REFUSES",
                               "KNOWN_TOTAL",       "KNOWN_FREE",    "KNOWN_MACHINE",
                               "KNOWN_PROCESSES"};

// --- the library --------------------------------------------------------------------

class Nvml : public testing::Test {
protected:
    using Processes = std::map<unsigned, unsigned long long>;

    Nvml() : library_(dlopen(UMACCT_NVML_TESTED, RTLD_NOW | RTLD_LOCAL)) {
        EXPECT_NE(library_, nullptr) << dlerror();
        function<int()>("nvmlInit_v2")();
        function<int(unsigned, nvml_device **)>("nvmlDeviceGetHandleByIndex_v2")(0, &device_);
    }

    void TearDown() override {
        dlclose(library_);
        for (const char *variable : variables)
            unsetenv(variable);
    }

    template <class Type>
    Type *function(const char *name) {
        void *address = dlsym(library_, name);

        EXPECT_NE(address, nullptr) << name;
        return reinterpret_cast<Type *>(address);
    }

    static void set(const char *variable, std::uint64_t value) {
        setenv(variable, std::to_string(value).c_str(), 1);
    }

    /// umacct's figures.
    static void knows(std::uint64_t total, std::uint64_t free, const char *processes = "") {
        set("KNOWN_TOTAL", total);
        set("KNOWN_FREE", free);
        set("KNOWN_MACHINE", 128 * gib);
        setenv("KNOWN_PROCESSES", processes, 1);
    }

    /// The total, and its parts are what they should be; minus what it answers, if it fails.
    long long total() {
        nvml_memory memory{};
        nvml_memory_v2 second{.version = NVML_VERSION(nvml_memory_v2, 2)};
        const int result =
            function<nvml_memory_function>("nvmlDeviceGetMemoryInfo")(device_, &memory);

        EXPECT_EQ(function<nvml_memory_v2_function>("nvmlDeviceGetMemoryInfo_v2")(device_, &second),
                  result);
        if (result != NVML_SUCCESS)
            return -result;
        EXPECT_EQ(memory.used + memory.free, memory.total);
        EXPECT_EQ(second.total, memory.total);
        EXPECT_EQ(second.free, memory.free);
        EXPECT_EQ(second.used, memory.used);
        EXPECT_EQ(second.reserved, 0U);
        return static_cast<long long>(memory.total);
    }

    /// Asks as clients do: for the number first, then for that many.
    template <class Entry>
    Processes list(const std::string &name) {
        auto *ask = function<nvml_list_function>(name.c_str());
        unsigned count = 0;
        const int first = ask(device_, &count, nullptr);
        Processes found;

        if (first == NVML_SUCCESS)
            return found;
        EXPECT_EQ(first, NVML_INSUFFICIENT_SIZE) << name;
        std::vector<Entry> entries(count + 1);
        count += 1;
        EXPECT_EQ(ask(device_, &count, entries.data()), NVML_SUCCESS) << name;
        for (unsigned i = 0; i < count && i < entries.size(); ++i) {
            nvml_process process{};

            std::memcpy(&process, &entries[i], sizeof(process));
            EXPECT_TRUE(found.emplace(process.pid, process.bytes).second)
                << name << " has a pid twice";
        }
        return found;
    }

    /// Asks by all versions, which must agree.
    Processes processes(const std::string &mode, unsigned number) {
        const std::string name = "nvmlDeviceGet" + mode + "RunningProcesses";
        Processes found = list<nvml_process>(name);
        nvml_detail_list details{.version = NVML_VERSION(nvml_detail_list, 1), .mode = number};
        std::vector<nvml_process_detail> entries(64);
        Processes detailed;

        EXPECT_EQ(list<nvml_process_v2>(name + "_v2"), found);
        EXPECT_EQ(list<nvml_process_v2>(name + "_v3"), found);
        details.count = static_cast<unsigned>(entries.size());
        details.array = entries.data();
        EXPECT_EQ(function<nvml_detail_function>("nvmlDeviceGetRunningProcessDetailList")(device_,
                                                                                          &details),
                  NVML_SUCCESS);
        for (unsigned i = 0; i < details.count; ++i)
            detailed.emplace(entries.at(i).process.pid, entries.at(i).process.bytes);
        EXPECT_EQ(detailed, found);
        return found;
    }

    Processes compute() { return processes("Compute", NVML_COMPUTE); }

    Processes graphics() { return processes("Graphics", NVML_GRAPHICS); }

    void *library_;
    nvml_device *device_ = nullptr;
};

TEST_F(Nvml, EverythingElseIsTheRealOnes) {
    EXPECT_EQ(function<int(int)>("nvmlOfTomorrow")(41), 42);
    EXPECT_EQ(dlsym(library_, "nvmlOfNoDay"), nullptr);
}

TEST_F(Nvml, WithoutUmacctEveryAnswerIsTheRealOnes) {
    setenv("STAND_IN_COMPUTE", "7,8=5", 1);
    EXPECT_EQ(total(), -NVML_NOT_SUPPORTED);
    EXPECT_EQ(compute(), (Processes{{7, NVML_NOT_AVAILABLE}, {8, 5}}));
    EXPECT_EQ(graphics(), Processes{});
    set("STAND_IN_TOTAL", 0);
    EXPECT_EQ(total(), 0);
}

TEST_F(Nvml, MemoryThatTheRealOneCantTell) {
    knows(119 * gib, 79 * gib);
    EXPECT_EQ(total(), 119LL * gib);
    set("STAND_IN_TOTAL", 0);
    EXPECT_EQ(total(), 119LL * gib) << "zero is no answer";
    set("STAND_IN_TOTAL", 8128 * mib);
    set("KNOWN_MACHINE", 46477 * mib);
    EXPECT_EQ(total(), 119LL * gib) << "what an N1X says of 46,477 MiB is none";
    set("STAND_IN_TOTAL", 40000 * mib);
    EXPECT_EQ(total(), 40000LL * mib) << "half of the machine or more may be right";
}

TEST_F(Nvml, ACardsMemoryIsItsOwnHoweverLittleItIs) {
    knows(119 * gib, 79 * gib, "7=5000");
    set("STAND_IN_TOTAL", 8 * gib);
    set("STAND_IN_BAR1", 256 * mib);
    EXPECT_EQ(total(), 8LL * gib);
    EXPECT_EQ(compute(), Processes{}) << "what a card's processes hold is not the machine's";
    unsetenv("STAND_IN_BAR1");
    EXPECT_EQ(total(), 8LL * gib) << "a card is asked once";
}

TEST_F(Nvml, ProcessesAreListedOnceAndWithTheirBytes) {
    knows(119 * gib, 79 * gib, "7=5000,8=6000,9=7000,10=8000");
    EXPECT_EQ(compute(), (Processes{{7, 5000}, {8, 6000}, {9, 7000}, {10, 8000}}))
        << "the real one has none, in a container";
    setenv("STAND_IN_COMPUTE", "7,8=0,11", 1);
    setenv("STAND_IN_GRAPHICS", "9,12=3", 1);
    EXPECT_EQ(compute(), (Processes{{7, 5000}, {8, 6000}, {10, 8000}, {11, NVML_NOT_AVAILABLE}}));
    EXPECT_EQ(graphics(), (Processes{{9, 7000}, {12, 3}}));
    setenv("STAND_IN_COMPUTE", "7=4096", 1);
    EXPECT_EQ(compute().at(7), 4096U) << "what the real one says stays";
}

TEST_F(Nvml, AListThatIsTooShortSaysHowLongItMustBe) {
    nvml_process_v2 entry{};
    unsigned count = 1;

    knows(119 * gib, 79 * gib, "7=5000,8=6000");
    EXPECT_EQ(function<nvml_list_function>("nvmlDeviceGetComputeRunningProcesses_v3")(
                  device_, &count, &entry),
              NVML_INSUFFICIENT_SIZE);
    EXPECT_EQ(count, 2U);
    EXPECT_EQ(entry.process.pid, 0U) << "and nothing is written";
    count = 1;
    setenv("KNOWN_PROCESSES", "7=5000", 1);
    EXPECT_EQ(function<nvml_list_function>("nvmlDeviceGetComputeRunningProcesses_v3")(
                  device_, &count, &entry),
              NVML_SUCCESS);
    EXPECT_EQ(entry.gpu_instance, 0xffffffffU);
    EXPECT_EQ(entry.compute_instance, 0xffffffffU);
}

TEST_F(Nvml, ListsThatAreNotSupported) {
    knows(119 * gib, 79 * gib, "7=5000");
    set("STAND_IN_REFUSES", NVML_NOT_SUPPORTED);
    EXPECT_EQ(compute(), (Processes{{7, 5000}}));
    unsigned count = 0;
    EXPECT_EQ(function<nvml_list_function>("nvmlDeviceGetGraphicsRunningProcesses_v3")(
                  device_, &count, nullptr),
              NVML_NOT_SUPPORTED)
        << "umacct doesn't know who draws";
    set("STAND_IN_REFUSES", 15);
    EXPECT_EQ(function<nvml_list_function>("nvmlDeviceGetComputeRunningProcesses_v3")(
                  device_, &count, nullptr),
              15)
        << "a GPU that is lost is lost";
}

TEST_F(Nvml, WhatMakesNoSenseIsForTheRealOne) {
    nvml_memory_v2 second{.version = 77};
    nvml_detail_list details{.version = NVML_VERSION(nvml_detail_list, 1), .mode = 9};

    knows(119 * gib, 79 * gib, "7=5000");
    EXPECT_EQ(function<nvml_memory_function>("nvmlDeviceGetMemoryInfo")(nullptr, nullptr), 2);
    EXPECT_EQ(function<nvml_memory_v2_function>("nvmlDeviceGetMemoryInfo_v2")(device_, &second),
              NVML_NOT_SUPPORTED);
    EXPECT_EQ(
        function<nvml_detail_function>("nvmlDeviceGetRunningProcessDetailList")(device_, &details),
        2);
    EXPECT_EQ(function<nvml_list_function>("nvmlDeviceGetComputeRunningProcesses_v3")(
                  device_, nullptr, nullptr),
              2);
}

TEST(NvmlLibrary, LoadsWithTheCLibraryOfOlderImages) {
    std::ifstream file(UMACCT_NVML_INSTALLED, std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const std::string_view prefix = "GLIBC_2.";
    int newest = 0;

    for (auto at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at + 1))
        newest = std::max(newest, std::atoi(text.c_str() + at + prefix.size()));
    EXPECT_GT(newest, 0);
    EXPECT_LE(newest, 17) << "as of 2012";
}

TEST_F(Nvml, ThreadsAndForks) {
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    auto *ask = function<nvml_list_function>("nvmlDeviceGetComputeRunningProcesses_v3");

    knows(119 * gib, 79 * gib, "7=5000,8=6000");
    threads.reserve(4);
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            for (int j = 0; j < 1000; ++j) {
                std::array<nvml_process_v2, 8> entries{};
                unsigned count = entries.size();

                if (ask(device_, &count, entries.data()) != NVML_SUCCESS || count != 2)
                    ++wrong;
            }
        });
    for (int i = 0; i < 20; ++i) {
        const pid_t child = fork();
        int status = 0;

        if (child == 0) {
            unsigned count = 0;

            _exit(ask(device_, &count, nullptr) == NVML_INSUFFICIENT_SIZE ? 0 : 1);
        }
        waitpid(child, &status, 0);
        EXPECT_EQ(status, 0);
    }
    for (std::thread &thread : threads)
        thread.join();
    EXPECT_EQ(wrong, 0);
}

/// Bytes from malloc, in all of its heaps.
std::size_t allocated() {
    return mallinfo2().uordblks + mallinfo2().hblkhd;
}

std::size_t open_files() {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

/// Loads the library, has an answer of it, and unloads it. The one that is installed: it asks
/// the kernel itself.
void load_and_unload(Lmid_t space) {
    void *library = dlmopen(space, UMACCT_NVML_INSTALLED, RTLD_NOW | RTLD_LOCAL);
    nvml_device *device = nullptr;
    nvml_memory memory{};
    unsigned count = 0;

    ASSERT_NE(library, nullptr) << dlerror();
    const auto call = [&](const char *name, auto... arguments) {
        return reinterpret_cast<int (*)(decltype(arguments)...)>(dlsym(library, name))(
            arguments...);
    };
    call("nvmlInit_v2");
    call("nvmlDeviceGetHandleByIndex_v2", 0U, &device);
    call("nvmlDeviceGetMemoryInfo", device, &memory);
    call("nvmlDeviceGetComputeRunningProcesses_v3", device, &count, static_cast<void *>(nullptr));
    EXPECT_EQ(call("nvmlOfTomorrow", 1), 2);
    dlclose(library);
}

TEST(NvmlLoading, NothingStaysOfTenThousandLoads) {
    constexpr int loads = 10'000;

    for (int i = 0; i < 20; ++i)
        load_and_unload(LM_ID_BASE);
    const std::size_t before = allocated();
    const std::size_t files = open_files();
    for (int i = 0; i < loads && !testing::Test::HasFailure(); ++i)
        load_and_unload(LM_ID_BASE);
    EXPECT_LT(allocated(), before + loads) << "less than a byte for each load";
    EXPECT_EQ(open_files(), files);
}

TEST(NvmlLoading, InANamespaceOfItsOwn) {
    for (int i = 0; i < 100 && !testing::Test::HasFailure(); ++i)
        load_and_unload(LM_ID_NEWLM);
}

// --- what it makes of the module's answers ------------------------------------------

/// A module that answers in place of the kernel's; null where none is loaded.
struct FakeAnswers {
    Status status;
    std::map<std::uint64_t, Account> accounts;
    std::vector<std::uint64_t> hidden; ///< accounts that the caller may not see
    std::vector<Client> clients;
    int interruptions = 0;
    bool is_tenant = false;
};

FakeAnswers *answers = nullptr;

/// Figures that the module hides from a tenant.
Payload without(const Payload &attributes, std::uint16_t type) {
    Payload kept;
    std::size_t at = 0;

    while (at < attributes.size()) {
        nlattr attribute{};

        std::memcpy(&attribute, &attributes[at], sizeof(attribute));
        const std::size_t size = NLA_ALIGN(attribute.nla_len);
        if ((attribute.nla_type & NLA_TYPE_MASK) != type)
            kept.insert(kept.end(), attributes.begin() + static_cast<std::ptrdiff_t>(at),
                        attributes.begin() + static_cast<std::ptrdiff_t>(at + size));
        at += size;
    }
    return kept;
}

void give(const Payload &attributes, ask_answer *answer, void *to) {
    answer(reinterpret_cast<const nlattr *>(attributes.data()), attributes.size(), to);
}

class NvmlKnown : public testing::Test {
protected:
    NvmlKnown() : root_(sandbox_.root().string()) {
        answers = &answers_;
        known_root = root_.c_str();
        answers_.status.driver_state = UMACCT_DRIVER_HOOKED;
        answers_.status.available = 90 * gib;
        meminfo(119 * gib, 3 * gib, 95 * gib);
        sandbox_.write("proc/self/cgroup", "0::/pod/container\n");
        sandbox_.write("sys/fs/cgroup/cgroup.procs", "");
        std::filesystem::create_directories(sandbox_.root() / "sys/fs/cgroup/pod/container");
    }

    void TearDown() override {
        answers = nullptr;
        known_root = "";
    }

    void meminfo(std::uint64_t total, std::uint64_t free, std::uint64_t available) {
        const auto line = [](const char *name, std::uint64_t bytes) {
            return std::string(name) + ":       " + std::to_string(bytes >> 10) + " kB\n";
        };

        sandbox_.write("proc/meminfo", line("MemTotal", total) + line("MemFree", free) +
                                           line("MemAvailable", available) +
                                           line("CmaFree", 5 * gib));
    }

    /// Adds an account for the cgroup of that path; returns its id.
    std::uint64_t account(const std::string &path, std::uint64_t usage, std::uint64_t hard,
                          std::uint64_t effective, std::uint64_t effective_id = 0) {
        struct stat file {};

        Account account;

        stat((root_ + "/sys/fs/cgroup" + path).c_str(), &file);
        account.id = file.st_ino;
        account.usage = usage;
        if (hard != UMACCT_UNLIMITED)
            account.hard = hard;
        if (effective != UMACCT_UNLIMITED) {
            account.effective = effective;
            account.effective_id = effective_id == 0 ? account.id : effective_id;
        }
        answers_.accounts[account.id] = account;
        return account.id;
    }

    static void expect(std::uint64_t total, std::uint64_t free) {
        known_memory known{};

        ASSERT_TRUE(read_known_memory(&known));
        EXPECT_EQ(known.total, total);
        EXPECT_EQ(known.free, free);
    }

    test::Sandbox sandbox_;
    std::string root_;
    FakeAnswers answers_;
};

TEST_F(NvmlKnown, WithoutAModuleNothingIs) {
    known_memory memory{};
    known_processes processes{};

    answers = nullptr;
    EXPECT_FALSE(read_known_memory(&memory));
    EXPECT_FALSE(read_known_processes(&processes));
    answers = &answers_;
    answers_.status.driver_state = UMACCT_DRIVER_UNKNOWN;
    EXPECT_FALSE(read_known_memory(&memory)) << "of a driver that isn't accounted";
}

TEST_F(NvmlKnown, MemoryWithoutLimits) {
    expect(119 * gib, 90 * gib);
    answers_.status.reserve = 8 * gib;
    expect(119 * gib, 82 * gib);
    answers_.is_tenant = true;
    answers_.status.available = 0;
    expect(119 * gib, 90 * gib); // MemAvailable, less CmaFree
}

TEST_F(NvmlKnown, MemoryAsTheViewHasIt) {
    meminfo(40 * gib, 12 * gib, 12 * gib);
    answers_.is_tenant = true;
    expect(40 * gib, 12 * gib);
    answers_.is_tenant = false;
    expect(40 * gib, 12 * gib);
}

TEST_F(NvmlKnown, MemoryWithinLimits) {
    const std::uint64_t pod = account("/pod", 30 * gib, 50 * gib, 50 * gib);

    expect(50 * gib, 20 * gib); // the container has no account yet
    account("/pod/container", 10 * gib, UMACCT_UNLIMITED, 50 * gib, pod);
    expect(50 * gib, 20 * gib);
    account("/pod/container", 10 * gib, 15 * gib, 15 * gib);
    expect(15 * gib, 5 * gib);
    account("/", 116 * gib, 118 * gib, 118 * gib);
    expect(15 * gib, 2 * gib); // the highest limit may leave least
    account("/pod", 60 * gib, 50 * gib, 50 * gib);
    expect(15 * gib, 0); // held before the limit was set
}

TEST_F(NvmlKnown, ALimitOfSomebodyWhoCantBeSeen) {
    const std::uint64_t pod = account("/pod", 30 * gib, 50 * gib, 50 * gib);

    account("/pod/container", 10 * gib, UMACCT_UNLIMITED, 50 * gib, pod);
    answers_.hidden = {pod};
    expect(50 * gib, 40 * gib);
}

TEST_F(NvmlKnown, NoCgroupsHere) {
    account("/pod", 30 * gib, 50 * gib, 50 * gib);
    sandbox_.write("proc/self/cgroup", "0::/../other\n");
    expect(119 * gib, 90 * gib);
    sandbox_.write("proc/self/cgroup", "4:memory:/pod\n");
    expect(119 * gib, 90 * gib);
    sandbox_.write("proc/self/cgroup", "4:memory:/x\n0::/pod\n");
    expect(50 * gib, 20 * gib);
}

TEST_F(NvmlKnown, TheMachinesMemoryWhateverTheView) {
    sandbox_.write("proc/zoneinfo", "Node 0, zone DMA\n  present  9\n        managed  100\n"
                                    "Node 0, zone Normal\n        managed  3000\n");
    EXPECT_EQ(known_machine_memory(), 3100 * static_cast<std::uint64_t>(getpagesize()));
}

TEST_F(NvmlKnown, ProcessesAreThoseThatLiveAndHold) {
    const auto client = [this](std::uint32_t pid, std::uint64_t usage, bool exited = false) {
        Client made;

        made.pid = pid;
        made.usage = usage;
        made.exited = exited;
        answers_.clients.push_back(made);
    };
    known_processes known{};

    client(7, 5 * mib);
    client(8, 6 * mib);
    client(7, 1 * mib); // memory in another account
    client(0, 9 * mib); // pid of another namespace
    client(9, 9 * mib, true);
    client(10, 0);
    for (std::uint32_t pid = 100; pid < 200; ++pid)
        client(pid, pid);
    for (const int interruptions : {0, 1, 99}) {
        answers_.interruptions = interruptions;
        ASSERT_TRUE(read_known_processes(&known)) << interruptions;
        ASSERT_EQ(known.count, 102U);
        EXPECT_EQ(known.all[0].pid, 7U);
        EXPECT_EQ(known.all[0].bytes, 6 * mib);
        EXPECT_EQ(known.all[1].bytes, 6 * mib);
        EXPECT_EQ(known.all[101].bytes, 199U);
        free(known.all);
    }
}

TEST(NvmlAttribute, OnesThatAreCutOffAreNone) {
    const std::array<std::uint16_t, 8> words{12, 3, 1, 2, 3, 4, 40, 5};
    const auto *attributes = reinterpret_cast<const nlattr *>(words.data());

    EXPECT_NE(ask_attribute(attributes, sizeof(words), 3, 8), nullptr);
    EXPECT_EQ(ask_attribute(attributes, sizeof(words), 3, 9), nullptr);
    EXPECT_EQ(ask_attribute(attributes, sizeof(words), 5, 0), nullptr);
    EXPECT_EQ(ask_attribute(attributes, 11, 3, 0), nullptr);
    EXPECT_EQ(ask_attribute(attributes, 0, 3, 0), nullptr);
}

} // namespace
} // namespace umacct

// Stands in for nvml/ask.c.

int ask_open(ask * /*ask*/) {
    return umacct::answers == nullptr ? -ENOENT : 0;
}

void ask_close(ask * /*ask*/) {}

int ask_one(ask * /*ask*/, umacct_cmd command, std::uint16_t id_type, std::uint64_t id,
            ask_answer *answer, void *to) {
    umacct::FakeAnswers &from = *umacct::answers;

    if (command == UMACCT_CMD_STATUS_GET) {
        const umacct::Payload all = umacct::encode(from.status);

        umacct::give(from.is_tenant ? umacct::without(all, UMACCT_A_STATUS_AVAILABLE) : all, answer,
                     to);
        return 0;
    }
    EXPECT_EQ(command, UMACCT_CMD_ACCOUNT_GET);
    EXPECT_EQ(id_type, UMACCT_A_ACCOUNT_ID);
    for (const std::uint64_t hidden : from.hidden)
        if (hidden == id)
            return -EPERM;
    if (!from.accounts.contains(id))
        return -ENOENT;
    umacct::give(umacct::encode(from.accounts.at(id)), answer, to);
    return 0;
}

int ask_all(ask * /*ask*/, umacct_cmd command, ask_answer *answer, void *to) {
    EXPECT_EQ(command, UMACCT_CMD_CLIENT_GET);
    for (const umacct::Client &client : umacct::answers->clients)
        umacct::give(umacct::encode(client), answer, to);
    return umacct::answers->interruptions-- > 0 ? -EINTR : 0;
}
