// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/print/holders.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include <fmt/ostream.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "lib/arithmetic.h"
#include "lib/host/task.h"
#include "lib/text.h"
#include "lib/units.h"
#include "tool/output.h"
#include "tool/print/text.h"

namespace umacct::tool {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t least_file = 16ULL << 20;
constexpr std::size_t files_shown = 8;

/// Anonymous and shared memory of a process, without page cache of files; 0 if it is gone.
std::uint64_t resident(const fs::path &process) {
    const TaskMemory memory = TaskMemory::read(process).value_or(TaskMemory());

    return memory.anonymous + memory.shared;
}

std::set<std::uint32_t> processes_of(const Cgroups &cgroups, const std::string &path) {
    std::set<std::uint32_t> pids;

    if (const auto directory = cgroups.directory(path)) {
        std::ifstream file(*directory / "cgroup.procs");

        for (std::uint32_t pid = 0; file >> pid;)
            pids.insert(pid);
    }
    return pids;
}

std::string process_words(const Machine &machine, std::uint32_t pid) {
    const auto task = TaskStat::read(machine.proc() / std::to_string(pid));

    return task ? fmt::format("pid {} ({})", pid, printable(task->name))
                : fmt::format("pid {}", pid);
}

std::string pids_words(const Machine &machine, const std::vector<std::uint32_t> &pids) {
    return process_words(machine, pids.front()) +
           (pids.size() > 1 ? fmt::format(" and {} more", pids.size() - 1) : "");
}

std::string file_words(const Machine &machine, const SharedFile &file) {
    const char *deleted = file.deleted ? "deleted, " : "";

    if (!file.mapped.empty())
        return fmt::format("{}mapped by {}", deleted, pids_words(machine, file.mapped));
    if (!file.open.empty())
        return fmt::format("{}open in {}", deleted, pids_words(machine, file.open));
    return "not mapped";
}

} // namespace

std::vector<Holder> holders(const Machine &machine, const std::vector<Account> &accounts) {
    std::map<std::string, Holder> by_path;

    machine.cgroups().for_each([&](const std::string &path) {
        auto stat = machine.cgroups().keyed(path, "memory.stat");

        by_path[path] = {.path = path,
                         .anonymous = stat["anon"],
                         .shared = stat["shmem"],
                         .cache = cache_of(stat)};
    });
    const std::map<std::string, Holder> whole = by_path;
    for (const auto &[path, holder] : whole) {
        const auto parent = by_path.find(parent_path(path));

        if (path == "/" || parent == by_path.end())
            continue;
        parent->second.anonymous -= std::min(parent->second.anonymous, holder.anonymous);
        parent->second.shared -= std::min(parent->second.shared, holder.shared);
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

std::optional<HoldingProcess> first_process(const Machine &machine, const std::string &path,
                                            const std::vector<Client> &clients) {
    std::map<std::uint32_t, HoldingProcess> by_pid;

    for (const std::uint32_t pid : processes_of(machine.cgroups(), path))
        if (pid != static_cast<std::uint32_t>(getpid())) // it will be gone
            by_pid[pid].bytes = resident(machine.proc() / std::to_string(pid));
    for (const Client &client : clients) {
        if (client.path != path || client.pid == 0 || client.exited)
            continue;
        std::uint64_t &bytes = by_pid[client.pid].bytes;
        bytes = without(bytes, driver_in_rss(machine.proc(), client)) + client.usage;
        by_pid[client.pid].name = client.comm;
    }
    const auto first =
        std::ranges::max_element(by_pid, {}, [](const auto &each) { return each.second.bytes; });
    if (first == by_pid.end() || first->second.bytes == 0)
        return std::nullopt;

    HoldingProcess process = first->second;
    const fs::path directory = machine.proc() / std::to_string(first->first);

    struct stat info {};

    process.pid = first->first;
    process.path = path;
    process.user = stat(directory.c_str(), &info) == 0 ? name_of_user(info.st_uid) : "-";
    if (const auto task = TaskStat::read(directory))
        process.name = task->name;
    process.orphaned = is_orphaned(machine.proc(), process.pid);
    process.exiting = is_exiting(machine.proc(), process.pid);
    return process;
}

std::vector<SharedFile> holding_files(const Machine &machine) {
    std::vector<SharedFile> files = shared_files(machine.proc(), least_file);

    files.resize(std::min(files.size(), files_shown));
    return files;
}

void print_holders(const Machine &machine, const Output &output,
                   const std::vector<std::optional<HoldingProcess>> &processes,
                   const std::vector<SharedFile> &files) {
    const auto print_files = [&](bool nobodys) {
        for (const SharedFile &file : files) {
            if (file.is_nobodys() == nobodys)
                fmt::print(output.out, "  {}, {}, {}\n", printable(file.path),
                           format_size(file.bytes), file_words(machine, file));
        }
    };

    const auto print_processes = [&](bool orphaned) {
        for (const auto &process : processes) {
            if (process && process->orphaned == orphaned)
                fmt::print(output.out, "  pid {} ({}) of {}{}{}: {} in {}\n", process->pid,
                           printable(process->name), process->user, orphaned ? ", parent gone" : "",
                           process->exiting ? ", exiting" : "", format_size(process->bytes),
                           display_path(machine.owners(), process->path));
        }
    };

    print_files(true);
    print_processes(true);
    print_processes(false);
    print_files(false);
}

Json holder_json(const std::optional<HoldingProcess> &process) {
    if (!process)
        return nullptr;
    return {{"pid", process->pid},           {"comm", printable(process->name)},
            {"user", process->user},         {"bytes", process->bytes},
            {"orphaned", process->orphaned}, {"exiting", process->exiting}};
}

Json files_json(const std::vector<SharedFile> &files) {
    Json json = Json::array();

    for (const SharedFile &file : files)
        json.push_back({{"path", printable(file.path)},
                        {"bytes", file.bytes},
                        {"deleted", file.deleted},
                        {"mapped_pids", file.mapped},
                        {"open_pids", file.open}});
    return json;
}

} // namespace umacct::tool
