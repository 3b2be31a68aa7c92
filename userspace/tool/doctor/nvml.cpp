// SPDX-License-Identifier: GPL-2.0-or-later
/// Programs that ask NVML without umacct, although it is set up.
#include "tool/doctor/check.h"

#include <algorithm>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "lib/text.h"
#include "tool/nvml/place.h"

namespace umacct::tool::doctor {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t names_shown = 3;

/// Processes of one kind.
struct Clients {
    std::size_t count = 0;
    std::string names; ///< the first ones, with their pids
    std::vector<std::string> comms;

    void add(const std::string &comm, const std::string &pid) {
        if (++count > names_shown)
            return;
        names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", comm, pid);
        comms.push_back(printable(comm));
    }
};

/// Has it the driver's control device open? False where the caller may not see that.
bool has_driver_open(const fs::path &process) {
    std::error_code error;

    for (const fs::directory_entry &file : fs::directory_iterator(process / "fd", error)) {
        if (fs::read_symlink(file, error) == "/dev/nvidiactl")
            return true;
    }
    return false;
}

bool is_number(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

} // namespace

void check_nvml(const Examined &at, Findings &found) {
    const fs::path place = nvml::machine_place(at.machine.root());
    Clients without; ///< NVML is the real one's alone there
    Clients apart;   ///< they have no library that could be another one
    std::error_code error;

    found.group = "nvml";
    if (!fs::exists(place, error)) {
        found.add(Health::ok, "nvml",
                  "not set up; 'umacct setup nvml' makes NVML's answers umacct's for all users, "
                  "'umacct run --nvml CMD' one program");
        return;
    }
    if (!nvml::is_whole(place)) {
        found.add(
            Health::warn, "nvml",
            fmt::format("it is set up, and a library that {} leads to is gone", place.string()),
            "umacct setup nvml, which finds it anew");
        return;
    }
    for (const fs::directory_entry &process : fs::directory_iterator(at.machine.proc(), error)) {
        const std::string pid = process.path().filename().string();

        if (!is_number(pid))
            continue;
        const std::string maps = contents_of(process.path() / "maps");
        const auto has = [&maps](const char *part) { return maps.find(part) != std::string::npos; };
        const std::string comm = line_of(process.path() / "comm");
        if (has("/libnvidia-ml.so")) {
            if (!has("/umacct/nvml/"))
                without.add(comm, pid);
        } else if (!maps.empty() && !has("/libcuda.so") && !has("/libnvidia-") &&
                   has_driver_open(process.path())) {
            apart.add(comm, pid);
        }
    }
    if (without.count > 0) {
        found.add(Health::warn, "nvml",
                  fmt::format("{} asked NVML without umacct: {}", without.count, without.names),
                  "start them anew, with the LD_LIBRARY_PATH that a login has now",
                  {{"processes", without.count}});
        found.all.back().names = without.comms;
    }
    if (apart.count > 0) {
        found.add(Health::warn, "nvml",
                  fmt::format("{} ask the driver without NVML's library, as a static program "
                              "does: {}",
                              apart.count, apart.names),
                  "nothing can be answered for them; 'umacct ps' has what they would show",
                  {{"processes", apart.count}});
        found.all.back().names = apart.comms;
    }
    if (without.count + apart.count == 0)
        found.add(Health::ok, "nvml", "set up; no running program uses NVML without umacct");
}

} // namespace umacct::tool::doctor
