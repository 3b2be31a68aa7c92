// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/history/steps.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lib/arithmetic.h"
#include "lib/host/path.h"
#include "lib/json.h"
#include "lib/owners/tenant.h"
#include "lib/units.h"

namespace umacct::history {

namespace {

constexpr std::int64_t second_ms = 1000;
/// Samples come a little late.
constexpr std::int64_t late_ms = second_ms / 2;
/// Samples farther apart than this begin anew.
constexpr std::int64_t gap_ms = 3 * second_ms;
/// Less growth than this part of the machine in ten seconds is none.
constexpr std::uint64_t small_part = 256;
/// A tenant's accounts are reported once in this time.
constexpr std::int64_t told_again_after_ms = 600 * second_ms;
/// Number of accounts that are known, and of a tenant's, who can make any number of cgroups.
constexpr std::size_t most_known = 256;
constexpr std::ptrdiff_t most_of_tenant = most_known / 4;

std::uint64_t number_in(const Json &object, const char *key) {
    const auto found = object.find(key);

    return found != object.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

Json to_json(const Steps &steps) {
    Json list = Json::array();

    for (std::size_t i = 0; i < step_seconds.size(); ++i)
        list.push_back({{"seconds", step_seconds.at(i)},
                        {"bytes", steps.largest.at(i).bytes},
                        {"time_ms", static_cast<std::uint64_t>(steps.largest.at(i).time_ms)}});
    return {{"path", steps.path}, {"steps", list}};
}

/// Empty where it is no such object.
std::optional<Steps> steps_in(const Json &object) {
    Steps steps;

    if (!object.is_object() || !object.contains("path") || !object["path"].is_string() ||
        !object.contains("steps") || !object["steps"].is_array())
        return std::nullopt;
    steps.path = object["path"].get<std::string>();
    for (const Json &each : object["steps"]) {
        if (!each.is_object())
            return std::nullopt;
        const auto *const at =
            std::ranges::find(step_seconds, static_cast<std::int64_t>(number_in(each, "seconds")));

        if (at != step_seconds.end())
            steps.largest.at(static_cast<std::size_t>(at - step_seconds.begin())) = {
                .bytes = number_in(each, "bytes"),
                .time_ms = static_cast<std::int64_t>(number_in(each, "time_ms"))};
    }
    return steps;
}

} // namespace

KnownSteps KnownSteps::read(const std::filesystem::path &root) {
    std::ifstream file(root / steps_file);
    const Json json = Json::parse(std::string(std::istreambuf_iterator<char>(file), {}), nullptr,
                                  /*allow_exceptions=*/false);
    KnownSteps known;

    if (!json.is_object() || !json.contains("accounts") || !json["accounts"].is_array())
        return known;
    known.floor = number_in(json, "floor_bytes");
    for (const Json &each : json["accounts"]) {
        auto steps = steps_in(each);

        if (steps && known.accounts.size() < most_known)
            known.accounts.push_back(std::move(*steps));
    }
    return known;
}

std::string KnownSteps::text() const {
    Json list = Json::array();

    for (const Steps &steps : accounts)
        list.push_back(to_json(steps));
    return json_text({{"floor_bytes", floor}, {"accounts", list}}) + "\n";
}

std::optional<NextStep> NextStep::find(const KnownSteps &known, std::uint64_t available,
                                       std::uint64_t reserve,
                                       const std::function<bool(const std::string &)> &exists) {
    std::vector<const Steps *> there;

    for (const Steps &steps : known.accounts) {
        if (steps.longest().bytes > 0 && exists(steps.path))
            there.push_back(&steps);
    }
    const Steps *next = nullptr;
    for (const Steps *each : there) {
        if (next == nullptr || each->longest().bytes > next->longest().bytes)
            next = each;
    }
    if (next == nullptr)
        return std::nullopt;
    for (const Steps *outer = nullptr; outer != next;) {
        outer = next;
        for (const Steps *each : there) {
            if (is_below(each->path, outer->path) &&
                each->longest().bytes > outer->longest().bytes / 2 &&
                (next == outer || each->longest().bytes > next->longest().bytes))
                next = each;
        }
    }
    return NextStep{.steps = *next,
                    .left = without(available, reserve + known.floor),
                    .reserve = reserve,
                    .floor = known.floor};
}

std::string NextStep::text() const {
    const std::string above = reserve > 0 && floor > 0 ? " above the reserve and the guard's floor"
                              : reserve > 0            ? " above the reserve"
                              : floor > 0              ? " above the guard's floor"
                                                       : "";

    return fmt::format("grew by {} within {} s before; {} is available{}", format_size(longest()),
                       step_seconds.back(), format_size(left), above);
}

std::optional<NextStep> next_step(const Machine &machine, const Status &status) {
    if (!status.tells_all())
        return std::nullopt;
    return NextStep::find(KnownSteps::read(machine.root()), status.available, status.reserve,
                          [&](const std::string &path) { return machine.cgroups().exists(path); });
}

void StepWatch::Course::add(std::int64_t time_ms, std::uint64_t total) {
    if (count == looks.size()) {
        std::move(looks.begin() + 1, looks.end(), looks.begin());
        --count;
    }
    looks.at(count++) = {time_ms, total};
}

std::uint64_t StepWatch::Course::growth(std::int64_t ms) const {
    const auto [now_ms, now] = looks.at(count - 1);
    std::uint64_t least = now;

    for (std::size_t i = 0; i < count; ++i) {
        if (looks.at(i).first >= now_ms - ms - late_ms)
            least = std::min(least, looks.at(i).second);
    }
    return now - least;
}

void StepWatch::set_floor(std::uint64_t bytes) {
    changed_ = changed_ || known_.floor != bytes;
    known_.floor = bytes;
}

void StepWatch::take(const Sample &sample) {
    const bool anew =
        sample.uptime_ms - std::exchange(last_ms_, sample.uptime_ms) > gap_ms || courses_.empty();
    const std::uint64_t least =
        std::max<std::uint64_t>(sample.machine[Figure::total] / small_part, 1);
    Paths there;

    ++round_;
    if (anew)
        courses_.clear();
    for (std::size_t i = 0; i < sample.count; ++i) {
        const Sample::Account &account = sample.accounts[i];

        if (account.path == "/")
            continue;
        const std::uint64_t now = total(account.holdings);
        const bool has_cache = account.holdings[Holding::cache] > 0;
        auto [found, is_new] = courses_.try_emplace(account.id);
        Course &course = found->second;
        // Page cache isn't read of all accounts: TOTAL jumps where that changes.
        if (!is_new && course.has_cache != has_cache)
            course = {};
        // A new account held nothing a moment ago.
        if (is_new && !anew)
            course.add(sample.uptime_ms - second_ms, 0);
        else if (course.count == 0)
            course.from = now;
        course.add(sample.uptime_ms, now);
        course.has_cache = has_cache;
        course.round = round_;
        const std::uint64_t grown = course.growth(step_seconds.back() * second_ms);
        if (grown < least)
            course.from = now - grown;
        else if (now <= 2 * course.from) // more is a start
            learn(sample, account.path, course, there);
    }
    std::erase_if(courses_, [this](const auto &each) { return each.second.round != round_; });
}

/// Keeps what it has grown by, where that is more than ever.
void StepWatch::learn(const Sample &sample, const std::string &path, const Course &course,
                      Paths &there) {
    auto found = std::ranges::find(known_.accounts, path, &Steps::path);

    if (found == known_.accounts.end()) {
        for (std::size_t i = there.size(); i < sample.count; ++i)
            there.insert(sample.accounts[i].path);
        if (!make_room(path, course.growth(step_seconds.back() * second_ms), there))
            return;
        known_.accounts.push_back({.path = path});
        found = std::prev(known_.accounts.end());
    }
    for (std::size_t i = 0; i < step_seconds.size(); ++i) {
        const std::uint64_t bytes = course.growth(step_seconds.at(i) * second_ms);

        if (bytes <= found->largest.at(i).bytes)
            continue;
        found->largest.at(i) = {.bytes = bytes, .time_ms = sample.time_ms};
        changed_ = true;
    }
}

/// Forgets an account for one more that has made such a step: first one that is gone, perhaps for
/// ever. One that is there goes only for a larger step, or two would push each other out for ever.
bool StepWatch::make_room(const std::string &path, std::uint64_t bytes, const Paths &there) {
    std::vector<Steps> &known = known_.accounts;
    const auto is_tenants = [tenant = tenant_of(path)](const Steps &each) {
        return tenant_of(each.path) == tenant;
    };
    const bool has_part = std::ranges::count_if(known, is_tenants) >= most_of_tenant;

    if (!has_part && known.size() < most_known)
        return true;
    const auto last = std::ranges::min_element(known, {}, [&](const Steps &each) {
        const bool is_there = there.contains(each.path);

        return std::tuple(has_part && !is_tenants(each), is_there,
                          is_there ? each.longest().bytes
                                   : static_cast<std::uint64_t>(each.longest().time_ms));
    });
    if (there.contains(last->path) && last->longest().bytes >= bytes)
        return false;
    known.erase(last);
    return true;
}

std::optional<NextStep> StepWatch::ahead(const Sample &sample) {
    const auto is_there = [&](const std::string &path) {
        return std::any_of(sample.accounts.begin(),
                           sample.accounts.begin() + static_cast<std::ptrdiff_t>(sample.count),
                           [&](const Sample::Account &each) { return each.path == path; });
    };
    auto next = NextStep::find(known_, obtainable(sample.machine), sample.machine[Figure::reserve],
                               is_there);

    // A step is reported again only after it has fitted with room to spare.
    if (!next || next->longest() + next->longest() / 8 <= next->left)
        told_.clear();
    if (!next || next->fits() || next->steps.path == told_)
        return std::nullopt;
    // A tenant can make a cgroup that grows so far go and come.
    std::erase_if(told_at_, [&](const auto &each) {
        return sample.uptime_ms - each.second >= told_again_after_ms;
    });
    if (!told_at_.try_emplace(std::string(tenant_of(next->steps.path)), sample.uptime_ms).second)
        return std::nullopt;
    told_ = next->steps.path;
    return next;
}

std::optional<KnownSteps> StepWatch::changes() {
    return std::exchange(changed_, false) ? std::optional(known_) : std::nullopt;
}

} // namespace umacct::history
