// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/machine.h"

#include <fstream>
#include <utility>

#include "lib/error.h"

namespace umacct {

MemoryController memory_controller(const Cgroups &cgroups, const Account &account) {
    if (account.memory_current)
        return {.current = account.memory_current, .max = account.memory_max, .pressure = {}};
    return {.current = cgroups.number(account.path, "memory.current"),
            .max = cgroups.number(account.path, "memory.max"),
            .pressure = {}};
}

MemoryController memory_and_pressure(const Cgroups &cgroups, const Account &account) {
    MemoryController memory = memory_controller(cgroups, account);

    if (const auto directory = cgroups.directory(account.path)) {
        std::ifstream file(*directory / "memory.pressure");

        memory.pressure = Pressure::read(file);
    }
    return memory;
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
      owners_(root_) {}

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
