// SPDX-License-Identifier: GPL-2.0-or-later
#include <chrono>
#include <memory>

#include <fmt/chrono.h>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/json.h"
#include "lib/text.h"
#include "lib/units.h"
#include "tool/print/text.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

using namespace std::chrono_literals;

/// How long it must be quiet after an overrun before what was lost is counted.
constexpr auto quiet_time = 200ms;
constexpr auto for_ever = -1ms;
/// How long names that were read are good for.
constexpr auto names_age = 1s;

class Watcher {
public:
    explicit Watcher(Context &context) : context_(context) {
        context_.module().subscribe();
        last_ = context_.module().status().events_sent;
    }

    /// Prints events until the module goes away.
    [[noreturn]] void run() {
        bool overrun = false;

        while (true) {
            const EventBatch batch = context_.module().receive(
                overrun ? quiet_time : std::chrono::milliseconds(for_ever));

            refresh_names();
            for (const Event &event : batch.events)
                take(event);
            if (batch.gone)
                throw Error(Failure::missing, "the umacct kernel module was unloaded",
                            "watch again when it is loaded");
            if (overrun && batch.events.empty() && !batch.overrun) {
                count_lost(context_.module().status().events_sent);
                overrun = false;
            }
            overrun = overrun || batch.overrun;
        }
    }

private:
    /// Containers come and go meanwhile; a burst of events is of the same ones.
    void refresh_names() {
        const auto now = std::chrono::steady_clock::now();

        if (now - named_ < names_age)
            return;
        context_.refresh_owners();
        named_ = now;
    }

    void take(const Event &event) {
        // A burst that ended the queue's room shows as a gap before what came after.
        if (event.sequence > 0)
            count_lost(event.sequence - 1);
        last_ = std::max(last_, event.sequence);
        if (context_.json)
            print_json(context_.out(), merged(json_document(), to_json(context_.owners(), event)));
        else
            print(event);
        context_.out().flush();
    }

    /// Says how many events up to that number never came.
    void count_lost(std::uint64_t newest) {
        if (newest <= last_)
            return;

        const std::uint64_t lost = newest - last_;
        last_ = newest;
        if (context_.json)
            print_json(context_.out(),
                       merged(json_document(), {{"type", "lost"}, {"count", lost}}));
        else
            fmt::print(context_.out(),
                       "{} events were lost: they came faster than they were read\n", lost);
        context_.out().flush();
    }

    void print(const Event &event) {
        using Clock = std::chrono::system_clock;

        const auto time = Clock::to_time_t(Clock::time_point(
            std::chrono::duration_cast<Clock::duration>(std::chrono::nanoseconds(event.time_ns))));
        fmt::print(context_.out(), "{:%F %T}  {:<15}  {}  pid {} ({})  {}\n", fmt::localtime(time),
                   name_of(event.type), display_path(context_.owners(), event.path), event.pid,
                   printable(event.comm), describe(event));
    }

    std::string describe(const Event &event) {
        const std::string where = event.limit_path == event.path || event.limit_path.empty()
                                      ? ""
                                      : " of " + display_path(context_.owners(), event.limit_path);

        switch (event.type) {
        case UMACCT_EVENT_SOFT_CROSSED:
            return fmt::format("uses {}, above the soft limit {}{}", format_size(event.usage),
                               format_size(event.limit), where);
        case UMACCT_EVENT_SOFT_RECOVERED:
            return fmt::format("uses {}, within the soft limit {}{}", format_size(event.usage),
                               format_size(event.limit), where);
        case UMACCT_EVENT_HARD_REFUSED:
            return fmt::format("refused {}: {} used of the hard limit {}{}",
                               format_size(event.size), format_size(event.usage),
                               format_size(event.limit), where);
        case UMACCT_EVENT_RESERVE_REFUSED:
            return fmt::format("refused {}: {} available, reserve {}", format_size(event.size),
                               format_size(event.usage), format_size(event.limit));
        }
        return fmt::format("size {}, usage {}, limit {}{}", format_size(event.size),
                           format_size(event.usage), format_size(event.limit), where);
    }

    Context &context_;
    std::chrono::steady_clock::time_point named_ = std::chrono::steady_clock::now();
    std::uint64_t last_ = 0; ///< number of the newest event that was seen or given up
};

} // namespace

void add_watch(CLI::App &app, Context &context) {
    CLI::App *verb = app.add_subcommand("watch", "print events as they happen");

    verb->footer(
        "Events: soft_crossed, soft_recovered, hard_refused, reserve_refused. With --json one\n"
        "object a line. Says how many events were lost when they come faster than they are read:\n"
        "a line {\"type\": \"lost\", \"count\": N} then. Takes CAP_NET_ADMIN, and the host's own\n"
        "network namespace.\n"
        "\n"
        "Examples:\n"
        "  umacct watch\n"
        "  umacct watch --json | jq 'select(.type == \"hard_refused\") | .path'");
    verb->callback([&context] { Watcher(context).run(); });
}

} // namespace umacct::tool
