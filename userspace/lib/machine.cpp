// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/machine.h"

#include <fstream>
#include <utility>

#include "lib/arithmetic.h"
#include "lib/error.h"
#include "lib/host/task.h"

namespace umacct {

std::uint64_t cache_of(const std::map<std::string, std::uint64_t> &stat) {
    std::uint64_t cache = 0;

    // Locked pages are "unevictable".
    for (const char *key : {"active_file", "inactive_file", "slab_reclaimable"}) {
        const auto found = stat.find(key);

        cache += found == stat.end() ? 0 : found->second;
    }
    return cache;
}

namespace {

void read_total(const Cgroups &cgroups, const Account &account, MemoryController &memory) {
    if (memory.current) {
        memory.cache = cache_of(cgroups.keyed(account.path, "memory.stat"));
        memory.swap = cgroups.number(account.path, "memory.swap.current");
        memory.total = total_of(account.usage, account.charged, *memory.current, *memory.cache);
    } else if (account.path != "/") {
        memory.total = account.usage; // the root's is the machine's
    }
}

} // namespace

MemoryController memory_controller(const Cgroups &cgroups, const Account &account, Files files) {
    MemoryController memory;

    memory.current = account.memory_current;
    memory.max = account.memory_max;
    if (!memory.current) {
        memory.current = cgroups.number(account.path, "memory.current");
        memory.max = cgroups.number(account.path, "memory.max");
    }
    if (files.total)
        read_total(cgroups, account, memory);
    if (const auto directory = cgroups.directory(account.path); directory && files.pressure) {
        std::ifstream file(*directory / "memory.pressure");

        memory.pressure = Pressure::read(file);
    }
    return memory;
}

std::uint64_t driver_in_rss(const std::filesystem::path &proc, const Client &client) {
    constexpr unsigned int first_series = 615;
    std::ifstream file(proc.parent_path() / "sys/module/nvidia/version");
    unsigned int series = 0;

    return file >> series && series >= first_series ? client.system() : 0;
}

ProcessMemory process_memory(const std::filesystem::path &proc, const Client &client) {
    const auto directory = proc / std::to_string(client.pid);
    const auto task = TaskStat::read(directory);

    const bool is_there = !client.exited && task && started_at(*task, client.start_time_ns);
    const auto memory = is_there ? TaskMemory::read(directory) : std::nullopt;
    if (!memory)
        return {.total = client.usage, .swap = {}};
    const std::uint64_t shared =
        memory->shared == 0 ? 0 : without(memory->shared, driver_in_rss(proc, client));
    return {.total = client.usage + memory->anonymous + shared + memory->tables,
            .swap = memory->swapped};
}

std::string boot_id(const std::filesystem::path &proc) {
    std::ifstream file(proc / "sys/kernel/random/boot_id");
    std::string id;

    std::getline(file, id);
    return id;
}

Machine::Machine(std::filesystem::path proc, std::filesystem::path root,
                 Connection::Connect connect)
    : proc_(std::move(proc)),
      root_(std::move(root)),
      connect_(std::move(connect)),
      cgroups_(proc_),
      owners_(root_, cgroups_) {}

Meminfo Machine::meminfo() const {
    try {
        return meminfo(connect_ ? Module(connect_()).status() : Status());
    } catch (const Error &error) {
        if (error.failure() != Failure::missing && error.failure() != Failure::permission)
            throw;
        return meminfo(Status());
    }
}

Meminfo Machine::meminfo(const Status &status) const {
    std::ifstream file(proc_ / "meminfo");
    Meminfo memory(file);

    for (const auto &[line, bytes] : {std::pair{"MemTotal", status.memory_total},
                                      {"MemFree", status.memory_free},
                                      {"MemAvailable", status.memory_available},
                                      {"Buffers", status.memory_buffers},
                                      {"Cached", status.memory_cached},
                                      {"SReclaimable", status.memory_sreclaimable},
                                      {"KReclaimable", status.memory_kreclaimable}}) {
        if (bytes)
            memory.correct(line, *bytes);
    }
    return memory;
}

std::optional<Pressure> Machine::pressure() const {
    std::ifstream file(proc_ / "pressure/memory");

    return Pressure::read(file);
}

} // namespace umacct
