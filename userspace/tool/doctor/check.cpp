// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/doctor/check.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lib/module/health.h"
#include "lib/text.h"

namespace umacct::tool::doctor {

bool has_word(const std::string &line, const std::string &word) {
    return (" " + line + " ").find(" " + word + " ") != std::string::npos;
}

std::string Examined::release() const {
    return line_of(machine.proc() / "sys/kernel/osrelease");
}

std::size_t Findings::count(Health health) const {
    return static_cast<std::size_t>(std::ranges::count(all, health, &Found::health));
}

void Findings::add(Health health, std::string check, const std::string &text,
                   const std::string &hint, Json values) {
    all.push_back({.health = health,
                   .group = group,
                   .check = std::move(check),
                   .text = printable(text),
                   .hint = printable(hint),
                   .values = std::move(values)});
}

void Findings::warn_unless(bool well, std::string check, const std::string &text,
                           const std::string &hint, Json values) {
    add(well ? Health::ok : Health::warn, std::move(check), text, well ? "" : hint,
        std::move(values));
}

void Findings::add(const std::optional<Status> &status, const std::string &check,
                   const std::string &well, const Json &values, const std::string &hint) {
    const std::size_t before = all.size();

    for (const Problem &problem : status ? problems(*status) : std::vector<Problem>()) {
        if (problem.check == check)
            add(problem.fatal ? Health::fail : Health::warn, check, problem.text,
                hint.empty() ? problem.hint : hint, values);
    }
    if (all.size() == before)
        add(Health::ok, check, well, "", values);
}

std::string_view word_of(Health health) {
    static constexpr std::array<std::string_view, 3> names{"ok", "warn", "fail"};

    return names.at(static_cast<std::size_t>(health));
}

} // namespace umacct::tool::doctor
