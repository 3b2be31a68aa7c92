// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/permanent.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <type_traits>
#include <vector>

#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/hints.h"
#include "lib/host/replace_file.h"
#include "lib/policy/policy.h"
#include "lib/policy/validate.h"
#include "lib/settings.h"
#include "lib/text.h"
#include "tool/found.h"
#include "tool/machine_order.h"
#include "tool/session.h"
#include "tool/settings.h"

namespace umacct::tool {

namespace {

namespace fs = std::filesystem;

/// A rule of the file's, by the lines of its patterns.
struct WrittenRule {
    std::string whom;
    AccountChange settings;
    std::optional<std::uint64_t> total;
};

fs::path file_of(const Machine &machine) {
    return machine.root() / "etc/umacct.toml.d/00-umacct-set.toml";
}

/// Returns the patterns of a rule, as lines.
std::string whom_of(const Rule &rule) {
    std::string lines;

    for (const auto &[key, pattern] :
         {std::pair("cgroup", &rule.cgroup), std::pair("unit", &rule.unit),
          std::pair("container", &rule.container), std::pair("image", &rule.image),
          std::pair("pod", &rule.pod), std::pair("namespace", &rule.name_space),
          std::pair("label", &rule.label)}) {
        if (*pattern)
            lines += fmt::format("{} = {}\n", key, quoted(**pattern));
    }
    return lines;
}

std::string whom_of(const Found &found) {
    const auto is = [&](OwnerKind kind) {
        return found.owner && found.owner->kind == kind && !found.inside;
    };
    Rule rule;

    if (is(OwnerKind::pod)) {
        rule.pod = found.owner->pod;
        if (!found.owner->kube_namespace.empty())
            rule.name_space = found.owner->kube_namespace;
    } else if (is(OwnerKind::container) && !found.owner->name.empty()) {
        rule.container = found.owner->name;
    } else if (is(OwnerKind::unit) && user_of(found.target.path).value_or(0) == 0) {
        rule.unit = found.owner->id;
    } else {
        rule.cgroup = found.target.path;
    }
    for (const auto &pattern : {rule.pod, rule.container, rule.unit, rule.cgroup}) {
        if (pattern &&
            (printable(*pattern) != *pattern || pattern->find_first_of("*?") != std::string::npos))
            throw Error(Failure::usage,
                        fmt::format("--permanent: no rule can name '{}'", printable(*pattern)));
    }
    return whom_of(rule);
}

std::optional<std::uint64_t> total_of(const Rule &rule, std::uint64_t total) {
    return rule.total ? std::optional(rule.total->of(total)) : std::nullopt;
}

std::vector<WrittenRule> read_rules(const fs::path &file, std::uint64_t total) {
    std::vector<WrittenRule> rules;

    if (fs::exists(file)) {
        for (const Rule &rule : read_policy({file}).rules)
            rules.push_back({.whom = whom_of(rule),
                             .settings = rule.change(total),
                             .total = total_of(rule, total)});
    }
    return rules;
}

std::string text_of(const WrittenRule &rule) {
    return fmt::format("[[rule]]\n{}{}{}", rule.whom, rule_lines(rule.settings),
                       !rule.total ? ""
                       : *rule.total == UMACCT_UNLIMITED
                           ? "total = \"max\"\n"
                           : fmt::format("total = \"{}B\"\n", *rule.total));
}

void write_rules(const fs::path &file, const std::vector<WrittenRule> &rules) {
    std::string text = "# SPDX-License-Identifier: CC0-1.0\n"
                       "# By 'umacct set --permanent', which writes all of it anew.\n";

    for (const WrittenRule &rule : rules)
        text += '\n' + text_of(rule);
    std::error_code error;
    if (rules.empty())
        fs::remove(file, error);
    const int code = rules.empty() ? error.value() : replace_file(file, text);
    if (code != 0)
        throw Error(failure_of(code),
                    fmt::format("cannot write {}: {}", file.string(),
                                std::generic_category().message(code)),
                    run_as_root);
}

} // namespace

std::string quoted(const std::string &text) {
    std::string out = "\"";

    for (const char c : text)
        out += (c == '"' || c == '\\' ? "\\" : "") + std::string(1, c);
    return out + '"';
}

std::string rule_lines(const AccountChange &change) {
    std::string lines;

    for_each_setting([&](const auto &setting) {
        const auto &value = change.*setting.change;
        std::string text;

        if (!value)
            return;
        if constexpr (std::is_same_v<decltype(setting.neutral), bool>)
            text = *value ? "true" : "false";
        else if constexpr (std::is_same_v<decltype(setting.neutral), umacct_charge_mode>)
            text = quoted(std::string(name_of(*value)));
        else if (*value == UMACCT_UNLIMITED)
            text = quoted("max");
        else
            text = quoted(std::to_string(*value) +
                          (setting.attribute == UMACCT_A_ACCOUNT_THROTTLE ? "ns" : "B"));
        lines += fmt::format("{} = {}\n", setting.policy, text);
    });
    return lines;
}

int change_for_good(Session &session, const std::string &target, const PersonChange &asked,
                    std::optional<std::uint64_t> total_memory) {
    if (!asked.taken_back.empty())
        throw Error(Failure::usage, "--permanent: '-' takes back what holds until the next start",
                    fmt::format("take the rule out of {}", file_of(session.machine).string()));

    const AccountChange &change = asked.asked;
    const Machine &machine = session.machine;
    const Output &output = session.output;
    const fs::path file = file_of(machine);
    const PolicyLock lock = lock_policy(machine);
    const std::uint64_t total = machine.meminfo().total();
    const Found found = Found::of(machine, read_policy(policy_files(machine.root())), target);
    const std::string whom = whom_of(found);
    const std::vector<WrittenRule> before = read_rules(file, total);
    std::vector<WrittenRule> rules = before;
    auto at = std::ranges::find(rules, whom, &WrittenRule::whom);

    // The rule that matched until now goes on for the other settings.
    if (at == rules.end()) {
        WrittenRule rule;

        rule.whom = whom;
        if (found.rule != nullptr) {
            rule.settings = found.rule->change(total);
            rule.total = total_of(*found.rule, total);
        }
        at = rules.insert(rules.end(), rule);
    }
    for_each_setting([&](const auto &setting) {
        if (change.*setting.change)
            at->settings.*setting.change = change.*setting.change;
    });
    if (total_memory)
        at->total = total_memory;
    write_rules(file, rules);

    Policy policy;
    try {
        policy = read_policy(policy_files(machine.root()));
        if (auto problems = validate(policy, MachineFacts::of(machine, total)); !problems.empty())
            throw PolicyError(std::move(problems));
    } catch (const PolicyError &) {
        write_rules(file, before);
        throw;
    }
    if (!output.json)
        fmt::print(output.out, "{}:\n{}", file.string(), text_of(*at));
    if (total_memory)
        output.note("'systemctl daemon-reload' has systemd read total, and set it");
    const Found next = Found::of(machine, policy, target);
    if (next.rule == nullptr || next.rule->place.file != file.string())
        output.note(fmt::format("{} comes first, and holds",
                                next.rule == nullptr ? "no rule" : next.orders.rule.rule));
    const bool has_daemon = reload_daemon(machine).has_value();
    if (!next.runs) {
        output.note("it does not run; the rule is for when it does");
        return has_daemon ? 0 : report_no_umacctd(output);
    }

    // The rule holds from now on, in place of what a person asked for before.
    PersonChange back;
    for_each_setting([&](const auto &setting) {
        if (change.*setting.change)
            back.taken_back.push_back(setting.attribute);
    });
    const int code = change_account(session, next.target, back, next.orders.rule);
    return has_daemon || code != 0 ? code : report_no_umacctd(output);
}

} // namespace umacct::tool
