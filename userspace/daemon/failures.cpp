// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/failures.h"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

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

void FailureLog::take(const Event &event, const FirstHolder &holder, Clock::time_point now) {
    if (!waiting_.contains(event.path) && waiting_.size() >= most)
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
