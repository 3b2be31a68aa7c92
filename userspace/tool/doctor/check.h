// SPDX-License-Identifier: GPL-2.0-or-later
/// The doctor's checks, and their findings.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "lib/host/text_file.h"
#include "lib/json.h"
#include "lib/machine.h"
#include "lib/module/model.h"

namespace umacct::tool::doctor {

enum class Health : std::uint8_t { ok, warn, fail };

struct Found {
    Health health = Health::ok;
    std::string_view group; ///< healthy checks are one line for each group
    std::string check;
    std::string text;
    std::string hint;                    ///< remedy; empty if nothing needs to be done
    Json values;                         ///< the numbers in the text
    std::vector<std::string> names = {}; ///< names in the text that others chose
};

struct Findings {
    std::vector<Found> all;
    std::string_view group; ///< group of the checks that follow

    std::size_t count(Health health) const;

    void add(Health health, std::string check, const std::string &text,
             const std::string &hint = "", Json values = Json::object());

    /// Adds a healthy check, or a warning with its remedy.
    void warn_unless(bool well, std::string check, const std::string &text, const std::string &hint,
                     Json values = Json::object());

    /// Adds the library's problems of that name, or a healthy check with this text. hint: a
    /// better one than the library's, where there is one.
    void add(const std::optional<Status> &status, const std::string &check, const std::string &well,
             const Json &values = Json::object(), const std::string &hint = "");
};

/// The machine, and the module where it answers.
struct Examined {
    const Machine &machine;
    std::optional<Status> status;
    std::optional<std::uint64_t> failed{}; ///< requests, of all accounts; where the caller sees all
    std::vector<Account> accounts{};       ///< those that the caller sees

    std::filesystem::path file(const char *path) const { return machine.root() / path; }

    /// The machine's memory. Throws Error.
    Meminfo meminfo() const { return status ? machine.meminfo(*status) : machine.meminfo(); }

    /// The release of the running kernel.
    std::string release() const;
};

/// The group of what the machine goes through, whoever's fault: it is shown first, and in full.
inline constexpr std::string_view machines_state = "memory";

/// Whether memory is short, and who holds most.
void check_memory(const Examined &at, Findings &found);
void check_steps(const Examined &at, Findings &found);
/// Processes that the kernel killed for lack of memory, and the driver's complaints.
void check_kernel_log(const Examined &at, Findings &found);
/// Requests for which the driver had no memory.
void check_failures(const Examined &at, Findings &found);
void check_module(const Examined &at, Findings &found);
void check_machine(const Examined &at, Findings &found);
void check_nvml(const Examined &at, Findings &found);
/// Memory that the kernel has set aside, and that neither the driver nor RDMA can have.
void check_set_aside(const Examined &at, Findings &found);
/// Ray's own killer, where a view or a limit makes it act early.
void check_ray(const Examined &at, Findings &found);
/// Checks the driver by the module's answer: at.status has a value.
void check_driver(const Examined &at, Findings &found);

struct Diagnosis {
    Findings found;
    std::optional<Status> status; ///< the module's, where it answers
    int absence = 0;              ///< the exit code where it doesn't
};

/// Runs all checks.
Diagnosis diagnose(Connection &connection, const Machine &machine);

/// Returns what others need to know to add this machine to the table of what umacct works with: no
/// names, paths or sizes.
std::string spark_facts(const Machine &machine, const Diagnosis &made);

/// "ok", "warn", "fail"
std::string_view word_of(Health health);

bool has_word(const std::string &line, const std::string &word);

} // namespace umacct::tool::doctor
