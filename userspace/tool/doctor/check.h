// SPDX-License-Identifier: GPL-2.0-or-later
/// What the doctor looks at, and what a check finds.
#pragma once

#include <cstdint>
#include <optional>
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
    std::string check;
    std::string text;
    std::string hint;                    ///< what fixes it; empty where nothing is to be done
    Json values;                         ///< the numbers in the text
    std::vector<std::string> names = {}; ///< names in the text that others chose
};

struct Findings {
    std::vector<Found> all;

    std::size_t count(Health health) const;

    void add(Health health, std::string check, const std::string &text,
             const std::string &hint = "", Json values = Json::object());

    /// That it is well, or a warning with what fixes it.
    void warn_unless(bool well, std::string check, const std::string &text, const std::string &hint,
                     Json values = Json::object());

    /// What the library says of that check, or that it is well, in these words. hint: a
    /// better one than the library's, where there is one.
    void add(const std::optional<Status> &status, const std::string &check, const std::string &well,
             const Json &values = Json::object(), const std::string &hint = "");
};

/// The machine, and the module where it answers.
struct Examined {
    const Machine &machine;
    std::optional<Status> status;
    std::optional<std::uint64_t> failed{}; ///< requests, of all accounts; where the caller sees all

    std::filesystem::path file(const char *path) const { return machine.root() / path; }

    /// Of the kernel that runs.
    std::string release() const;
};

/// In the order in which they are shown.
void check_module(const Examined &at, Findings &found);
void check_machine(const Examined &at, Findings &found);
void check_nvml(const Examined &at, Findings &found);
/// What the module is asked for; at.status is there.
void check_driver(const Examined &at, Findings &found);
/// Requests for which the driver had no memory.
void check_failures(const Examined &at, Findings &found);

struct Diagnosis {
    Findings found;
    std::optional<Status> status; ///< the module's, where it answers
    int absence = 0;              ///< the exit code where it doesn't
};

/// All of the above.
Diagnosis diagnose(Connection &connection, const Machine &machine);

/// "ok", "warn", "fail"
std::string_view word_of(Health health);

bool has_word(const std::string &line, const std::string &word);

} // namespace umacct::tool::doctor
