// SPDX-License-Identifier: GPL-2.0-or-later
/// What the doctor looks at, and what a check finds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/json.h"
#include "lib/machine.h"
#include "lib/module/model.h"

namespace umacct::tool::doctor {

enum class Health : std::uint8_t { ok, warn, fail };

struct Found {
    Health health = Health::ok;
    std::string check;
    std::string text;
    std::string hint; ///< what fixes it; empty where nothing is to be done
    std::vector<std::pair<const char *, std::uint64_t>> values; ///< the numbers in the text
};

struct Findings {
    std::vector<Found> all;

    void add(Health health, std::string check, const std::string &text,
             const std::string &hint = "",
             std::vector<std::pair<const char *, std::uint64_t>> values = {});

    /// What the library says of that check, or that it is well, in these words. hint: a
    /// better one than the library's, where there is one.
    void add(const Status &status, const std::string &check, const std::string &well,
             std::vector<std::pair<const char *, std::uint64_t>> values = {},
             const std::string &hint = "");
};

/// The machine, and the module where it answers.
struct Examined {
    const Machine &machine;
    std::optional<Status> status;

    std::filesystem::path file(const char *path) const { return machine.root() / path; }

    /// Of the kernel that runs.
    std::string release() const;
};

using Check = void (*)(const Examined &at, Findings &found);

/// In the order in which they are shown.
std::span<const Check> module_checks();
std::span<const Check> machine_checks();
/// Those that ask the module; at.status is there.
std::span<const Check> driver_checks();

/// First line of a file; empty where it can't be read.
std::string line_of(const std::filesystem::path &file);
std::string contents_of(const std::filesystem::path &file);
bool has_word(const std::string &line, const std::string &word);
/// Also false where it can't be seen.
bool is_there(const std::filesystem::path &path);

} // namespace umacct::tool::doctor
