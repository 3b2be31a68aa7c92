// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/policy/validate.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "lib/error.h"
#include "lib/memory/zones.h"
#include "lib/owners/owner.h"
#include "lib/text.h"
#include "lib/units.h"

namespace umacct {

namespace {

constexpr std::string_view letters_and_digits =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
constexpr std::string_view wildcards = "*?";

/// A pattern of a rule, and the characters that what it is for can have, beside letters and
/// digits.
struct Pattern {
    const char *key;
    std::optional<std::string> Rule::*member;
    std::string_view others;
};

// Characters that systemd, runtimes and Kubernetes allow. A label may have any.
constexpr std::array patterns{
    Pattern{"unit", &Rule::unit, ":-_.\\@"},      Pattern{"container", &Rule::container, "_.-"},
    Pattern{"image", &Rule::image, "_.-/:@"},     Pattern{"pod", &Rule::pod, ".-_"},
    Pattern{"namespace", &Rule::name_space, "-"},
};

class Validation {
public:
    Validation(const Policy &policy, const MachineFacts &facts) : policy_(policy), facts_(facts) {}

    std::vector<Diagnostic> run() {
        check_machine();
        check_guard();
        for (const Rule &rule : policy_.rules)
            check_rule(rule);
        return std::move(problems_);
    }

private:
    void add(const Place &place, std::string text) {
        problems_.push_back({place, std::move(text)});
    }

    /// key: as in Policy::places.
    void add(std::string_view key, std::string text) {
        const auto place = policy_.places.find(key);

        add(place == policy_.places.end() ? Place{} : place->second, std::move(text));
    }

    static const Place &place_of(const Rule &rule, std::string_view key) {
        const auto place = rule.places.find(key);

        return place == rule.places.end() ? rule.place : place->second;
    }

    std::uint64_t bytes_of(const std::optional<Amount> &amount) const {
        return amount ? amount->of(facts_.total) : 0;
    }

    /// True, with a line about it, if it is as much as the machine has.
    bool is_all(const char *key, const char *what, std::uint64_t bytes) {
        if (bytes < facts_.total)
            return false;
        add(key, fmt::format("{} is {}, and the machine has {}", what, format_size(bytes),
                             format_size(facts_.total)));
        return true;
    }

    void check_machine() {
        is_all("machine.reserve", "reserve", bytes_of(policy_.reserve));
        is_all("machine.headroom", "headroom", bytes_of(policy_.headroom));
        if (facts_.largest_block != 0 && policy_.headroom_blocks.value_or(0) > facts_.largest_block)
            add("machine.headroom_blocks",
                fmt::format("headroom_blocks is {}, and the kernel's largest block is {}",
                            format_size(*policy_.headroom_blocks),
                            format_size(facts_.largest_block)));
    }

    void check_guard() {
        if (!policy_.guard)
            return;
        const GuardPolicy &guard = *policy_.guard;
        const std::uint64_t floor = bytes_of(guard.floor);
        const std::uint64_t reserve = bytes_of(policy_.reserve);

        if (guard.floor && floor == 0)
            add("guard.floor", "floor is 0: the guard would never act by it");
        if (!is_all("guard.floor", "floor", floor) && floor != 0 && reserve < facts_.total &&
            floor + reserve >= facts_.total)
            add("guard.floor",
                fmt::format("floor and reserve are {} together, and the machine has {}: the guard "
                            "would always act",
                            format_size(floor + reserve), format_size(facts_.total)));
        if (guard.for_ns == 0)
            add("guard.for",
                "for is 0: the guard would act for a moment's shortage; 100ms is short");
        if (guard.wait_ns == 0)
            add("guard.wait", "wait is 0: no step would have time to help before the next one");
        for (const std::string &pattern : guard.protect)
            check_path("guard.protect", pattern);
    }

    void check_path(std::string_view key, const std::string &pattern) {
        if (const std::string why = path_mistake(pattern); !why.empty())
            add(key, fmt::format("'{}' never matches: {}", printable(pattern), why));
    }

    /// Why a pattern for paths can fit none; empty where it can.
    static std::string path_mistake(std::string_view pattern) {
        if (pattern.size() > 1 && pattern.ends_with('/'))
            return "a cgroup's path does not end with '/'; what is below it is '" +
                   printable(pattern) + "**'";
        if (pattern.find("//") != std::string_view::npos)
            return "a cgroup's path has no '//'";
        for (std::size_t at = 0; at < pattern.size();) {
            const std::size_t end = std::min(pattern.find('/', at + 1), pattern.size());
            const std::string_view name = pattern.substr(at + 1, end - at - 1);

            if (name == "." || name == "..")
                return "a cgroup's path has no '" + std::string(name) + "'";
            at = end;
        }
        return class_mistake(pattern);
    }

    /// Characters that are special in a shell, but not here.
    static std::string class_mistake(std::string_view pattern) {
        const auto has_pair = [&](char open, char close) {
            const auto at = pattern.find(open);

            return at != std::string_view::npos &&
                   pattern.find(close, at) != std::string_view::npos;
        };

        if (has_pair('[', ']'))
            return "'[' is no set of characters here; '?' is any one, '*' any number";
        if (has_pair('{', '}'))
            return "'{' is no list of choices here; write a rule for each";
        return "";
    }

    void check_rule(const Rule &rule) {
        for_each_setting([&]<class Change, class Value, class Neutral>(
                             const Setting<Change, Value, Neutral> &setting) {
            const Change &value = rule.settings.exact.*setting.change;

            if (value && static_cast<std::uint64_t>(*value) > setting.most)
                add(place_of(rule, setting.policy),
                    fmt::format("{} is {}, and {} is the most", setting.policy,
                                words_of(setting, *value),
                                words_of(setting, static_cast<Neutral>(setting.most))));
        });
        check_soft(rule);
        if (rule.cgroup) {
            if (const std::string why = path_mistake(*rule.cgroup); !why.empty())
                never(rule, "cgroup", *rule.cgroup, why);
        }
        for (const Pattern &pattern : patterns)
            check_pattern(rule, pattern);
        check_suffix(rule);
        check_order(rule);
    }

    void check_soft(const Rule &rule) {
        const auto limit = rule.settings.amount(UMACCT_A_ACCOUNT_HARD);
        const std::uint64_t soft = bytes_of(rule.settings.amount(UMACCT_A_ACCOUNT_SOFT));
        const std::uint64_t hard = limit ? bytes_of(limit) : UMACCT_UNLIMITED;

        if (soft != UMACCT_UNLIMITED && soft > hard)
            add(rule.place, fmt::format("soft is above hard on this machine: {}, and {}",
                                        format_size(soft), format_size(hard)));
    }

    void never(const Rule &rule, const char *key, const std::string &pattern,
               const std::string &why) {
        add(place_of(rule, key),
            fmt::format("{} '{}' never matches: {}", key, printable(pattern), why));
    }

    void check_pattern(const Rule &rule, const Pattern &each) {
        const std::optional<std::string> &pattern = rule.*each.member;

        if (!pattern)
            return;
        if (const std::string why = class_mistake(*pattern); !why.empty()) {
            never(rule, each.key, *pattern, why);
            return;
        }
        const auto wrong = std::ranges::find_if(*pattern, [&](char c) {
            return letters_and_digits.find(c) == std::string_view::npos &&
                   each.others.find(c) == std::string_view::npos &&
                   wildcards.find(c) == std::string_view::npos;
        });
        if (wrong != pattern->end())
            never(rule, each.key, *pattern,
                  fmt::format("such a name has no '{}'", printable(std::string(1, *wrong))));
    }

    /// A unit's kind is the end of its name, and not every kind has a cgroup.
    void check_suffix(const Rule &rule) {
        const auto dot = rule.unit ? rule.unit->rfind('.') : std::string::npos;

        if (dot == std::string::npos)
            return;
        const std::string end = rule.unit->substr(dot);
        if (end.find_first_of(wildcards) == std::string::npos && !owner_of("/a" + end))
            never(rule, "unit", *rule.unit,
                  fmt::format("units of type '{}' have no cgroup; if a service's name contains a "
                              "dot, append '.service'",
                              printable(end)));
    }

    /// Two equal rules in one file are a mistake; a drop-in may well go before another
    /// file's.
    void check_order(const Rule &rule) {
        for (const Rule &earlier : policy_.rules) {
            if (&earlier == &rule)
                return;
            if (earlier.place.file == rule.place.file && covers(earlier, rule)) {
                add(rule.place,
                    fmt::format(
                        "this rule is never reached: {} ({}) matches everything that it matches",
                        printable(earlier.name), earlier.place.text()));
                return;
            }
        }
    }

    static bool covers(const Rule &earlier, const Rule &rule) {
        const bool same = earlier.cgroup == rule.cgroup && earlier.unit == rule.unit &&
                          earlier.container == rule.container && earlier.image == rule.image &&
                          earlier.pod == rule.pod && earlier.name_space == rule.name_space &&
                          earlier.label == rule.label;

        return same || (earlier.cgroup == "/**" && !earlier.unit && !earlier.needs_name());
    }

    const Policy &policy_;
    const MachineFacts &facts_;
    std::vector<Diagnostic> problems_;
};

} // namespace

MachineFacts MachineFacts::of(const Machine &machine, std::uint64_t total) {
    MachineFacts facts{.total = total};

    try {
        const Zones zones = Zones::read(machine.proc());

        if (!zones.list().empty())
            facts.largest_block = page_size() << zones.largest_order();
    } catch (const Error &) {
        // It is not known then, and blocks are not judged.
    }
    return facts;
}

std::uint64_t MachineFacts::block_of(std::uint64_t wanted) const {
    return largest_block == 0 ? wanted : std::min(wanted, largest_block);
}

std::vector<Diagnostic> validate(const Policy &policy, const MachineFacts &facts) {
    return Validation(policy, facts).run();
}

} // namespace umacct
