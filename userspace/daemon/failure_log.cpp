// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/failure_log.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lib/owners/tenant.h"
#include "lib/text.h"

namespace umacct {

void FailureLog::tell(const Waiting &waiting) const {
    const Event &event = waiting.newest;
    const FirstHolder &holder = waiting.holder;

    tell_({{"type", name_of(event.type)},
           {"path", event.path},
           {"pid", event.pid},
           {"comm", event.comm},
           {"size_bytes", event.size},
           {"available_bytes", event.usage},
           {"holder_path", holder.path},
           {"holder_bytes", holder.bytes},
           {"count", waiting.count}},
          fmt::format(
              "{}: pid {} ({}): {}{}", printable(event.path), event.pid, printable(event.comm),
              failed_text(event.size, event.usage, printable(holder.path), holder.bytes),
              waiting.count > 1 ? fmt::format(", the last of {} requests", waiting.count) : ""));
}

/// Takes a place from the tenant that has most of them, if it has at least two more than the one of
/// this path: with less of a difference they would push each other out for ever.
bool FailureLog::make_room(const std::string &path) {
    std::map<std::string_view, std::size_t> counts;

    for (const auto &[each, waiting] : waiting_)
        ++counts[tenant_of(each)];
    const auto most_of =
        std::ranges::max_element(counts, {}, [](const auto &count) { return count.second; });
    if (most_of->second < counts[tenant_of(path)] + 2)
        return false;
    const auto one = std::ranges::find_if(
        waiting_, [&](const auto &each) { return tenant_of(each.first) == most_of->first; });
    waiting_.erase(one);
    return true;
}

void FailureLog::take(const Event &event, const FirstHolder &holder, Clock::time_point now) {
    if (!waiting_.contains(event.path) && waiting_.size() >= most && !make_room(event.path))
        return;
    Waiting &waiting = waiting_[event.path];
    waiting.newest = event;
    waiting.holder = holder;
    waiting.count += event.count;
    look(now);
}

void FailureLog::look(Clock::time_point now) {
    for (auto it = waiting_.begin(); it != waiting_.end();) {
        Waiting &waiting = it->second;

        if (now < waiting.next) {
            ++it;
        } else if (waiting.count == 0) {
            it = waiting_.erase(it);
        } else {
            tell(waiting);
            waiting.count = 0;
            waiting.next = now + quiet;
            ++it;
        }
    }
}

} // namespace umacct
