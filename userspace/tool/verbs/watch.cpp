// SPDX-License-Identifier: GPL-2.0-or-later
#include <chrono>
#include <ctime>
#include <functional>
#include <iomanip>
#include <memory>
#include <sstream>

#include <CLI/CLI.hpp>
#include <fmt/chrono.h>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/host/umacctd.h"
#include "lib/json.h"
#include "lib/module/failure_event.h"
#include "lib/policy/last_good.h"
#include "lib/text.h"
#include "lib/units.h"
#include "tool/arguments.h"
#include "tool/notify.h"
#include "tool/print/text.h"
#include "tool/session.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

using namespace std::chrono_literals;

/// How long it must be quiet after an overrun before what was lost is counted.
constexpr auto quiet_time = 200ms;
/// Interval of looks at umacctd's file of events, which wakes no reader.
constexpr auto look_interval = 500ms;
/// How long names that were read are good for.
constexpr auto names_age = 1s;

class Watcher {
public:
    /// Called after each event.
    using Printed = std::function<void()>;

    /// path: the only cgroup whose events are printed, with those below it. each_turn: called at
    /// least every look_interval.
    Watcher(Module &module, Machine &machine, const Output &output, std::string path,
            Printed printed, std::function<void()> each_turn)
        : module_(module),
          machine_(machine),
          output_(output),
          path_(std::move(path)),
          printed_(std::move(printed)),
          each_turn_(std::move(each_turn)),
          steps_(machine.root()) {
        module_.subscribe();
        last_ = module_.status().events_sent;
    }

    /// Prints events until the module goes away.
    [[noreturn]] void run() {
        bool overrun = false;

        while (true) {
            const Received<Event> batch =
                module_.receive(overrun ? quiet_time : std::chrono::milliseconds(look_interval));
            const std::vector<std::string> steps = steps_.take();

            if (!batch.events.empty() || !steps.empty())
                refresh_names();
            for (const Event &event : batch.events)
                take(event);
            for (const std::string &step : steps)
                take_step(step);
            if (batch.gone)
                throw Error(Failure::missing,
                            "there are no more events: the umacct kernel module was loaded or "
                            "unloaded",
                            "watch again");
            if (overrun && batch.events.empty() && !batch.overrun) {
                count_lost(module_.status().events_sent);
                overrun = false;
            }
            overrun = overrun || batch.overrun;
            each_turn_();
        }
    }

private:
    /// Containers come and go meanwhile; a burst of events is of the same ones.
    void refresh_names() {
        const auto now = std::chrono::steady_clock::now();

        if (now - named_ < names_age)
            return;
        machine_.refresh_owners();
        named_ = now;
    }

    void take(const Event &event) {
        // A burst that ended the queue's room shows as a gap before what came after.
        if (event.sequence > 0)
            count_lost(event.sequence - 1);
        last_ = std::max(last_, event.sequence);
        if (!concerns(event.path))
            return;
        const auto holder = event.type == UMACCT_EVENT_FAILED ? first_now() : std::nullopt;
        if (output_.json)
            output_.document(document(event, holder));
        else
            print(event, holder.value_or(FirstHolder()));
        printed_();
    }

    /// A burst of failures is described by one look at the accounts.
    std::optional<FirstHolder> first_now() {
        const auto now = std::chrono::steady_clock::now();

        if (!accounts_ || now - accounts_read_ >= names_age) {
            accounts_ = module_.accounts();
            accounts_read_ = now;
        }
        return first_holder(*accounts_);
    }

    Json document(const Event &event, const std::optional<FirstHolder> &holder) {
        Json json = to_json(machine_.owners(), event);

        if (event.type == UMACCT_EVENT_FAILED) {
            json["holder_path"] = holder ? Json(holder->path) : Json();
            json["holder_bytes"] = holder ? Json(holder->bytes) : Json();
        }
        return json;
    }

    bool concerns(const std::string &path) const {
        return path_.empty() || path_ == "/" || (path + "/").starts_with(path_ + "/");
    }

    /// Prints an event of umacctd's own from its file: a step of the guard's, or one that may come.
    void take_step(const std::string &line) {
        Json step = Json::parse(line, nullptr, false);
        const auto text = [&step](const char *key) {
            const auto found = step.find(key);

            return found != step.end() && found->is_string() ? found->get<std::string>() : "";
        };

        if (!step.is_object() || !concerns(text("path")))
            return;
        if (output_.json) {
            step.erase("boot_id"); // the document's own
            step["owner"] = to_json(machine_.owners().nearest(text("path")));
            output_.document(step);
        } else {
            std::tm time{};

            std::istringstream(text("time")) >> std::get_time(&time, "%Y-%m-%dT%T");
            const bool ahead = text("type") == "step_ahead";
            const std::string path = text("path");
            const std::string name = path.empty() ? "" : display_path(machine_.owners(), path);

            fmt::print(output_.out, "{}  {}{}\n",
                       head(timegm(&time), ahead ? "step_ahead" : "guard"),
                       ahead ? name + "  " : "", printable(with_name(text("text"), path, name)));
        }
        printed_();
    }

    /// Says how many events up to that number never came.
    void count_lost(std::uint64_t newest) {
        if (newest <= last_)
            return;

        const std::uint64_t lost = newest - last_;
        last_ = newest;
        if (output_.json)
            output_.document({{"type", "lost"}, {"count", lost}});
        else
            fmt::print(output_.out, "{} events were lost: they came faster than they were read\n",
                       lost);
        printed_();
    }

    static std::string head(std::time_t time, std::string_view type) {
        return fmt::format("{:%F %T}  {:<15}", fmt::localtime(time), type);
    }

    void print(const Event &event, const FirstHolder &holder) {
        using Clock = std::chrono::system_clock;

        const auto time = Clock::to_time_t(Clock::time_point(
            std::chrono::duration_cast<Clock::duration>(std::chrono::nanoseconds(event.time_ns))));
        fmt::print(output_.out, "{}  {}  pid {} ({})  {}{}\n", head(time, name_of(event.type)),
                   display_path(machine_.owners(), event.path), event.pid, printable(event.comm),
                   describe(event, holder),
                   event.count > 1 ? fmt::format(", the last of {}", event.count) : "");
    }

    std::string describe(const Event &event, const FirstHolder &holder) {
        const std::string where = event.limit_path == event.path || event.limit_path.empty()
                                      ? ""
                                      : " of " + display_path(machine_.owners(), event.limit_path);

        switch (event.type) {
        case UMACCT_EVENT_SOFT_CROSSED:
        case UMACCT_EVENT_SOFT_RECOVERED:
            return fmt::format("uses {}, {} the soft limit {}{}", format_size(event.usage),
                               event.type == UMACCT_EVENT_SOFT_CROSSED ? "above" : "within",
                               format_size(event.limit), where);
        case UMACCT_EVENT_HARD_REFUSED:
            return fmt::format("refused {}: {} used of the hard limit {}{}",
                               format_size(event.size), format_size(event.usage),
                               format_size(event.limit), where);
        case UMACCT_EVENT_RESERVE_REFUSED:
            return fmt::format("refused {}: {} available, reserve {}", format_size(event.size),
                               format_size(event.usage), format_size(event.limit));
        case UMACCT_EVENT_FAILED:
            return failed_text(event.size, event.usage,
                               holder.path.empty() ? ""
                                                   : display_path(machine_.owners(), holder.path),
                               holder.bytes);
        }
        return fmt::format("size {}, usage {}, limit {}{}", format_size(event.size),
                           format_size(event.usage), format_size(event.limit), where);
    }

    Module &module_;
    Machine &machine_;
    const Output &output_;
    std::string path_;
    Printed printed_;
    std::function<void()> each_turn_;
    EventTail steps_; ///< umacctd's own events
    std::chrono::steady_clock::time_point named_ = std::chrono::steady_clock::now();
    std::optional<std::vector<Account>> accounts_;
    std::chrono::steady_clock::time_point accounts_read_;
    std::uint64_t last_ = 0; ///< number of the newest event that was seen or given up
};

struct WatchOptions {
    std::optional<std::string> target;
    bool notify = false;
};

/// Passes each event on to the policy's command or address.
[[noreturn]] void notify(Module &module, Session &session, const std::string &path) {
    const auto to = policy_in_force(session.machine.root()).policy.notify;
    std::ostringstream text;
    Output output{.out = text, .err = session.output.err, .json = true};

    if (!to)
        throw Error(Failure::usage, "--notify: the policy has no key 'notify' in [machine]",
                    "see umacct.toml(5)");
    output.proc = session.output.proc;
    Notifier notifier(*to, [&](const std::string &line) {
        fmt::print(session.output.err, "{}\n", line);
        session.output.err.flush();
    });
    Watcher(
        module, session.machine, output, path,
        [&] {
            notifier.put(Json::parse(text.str()));
            text.str("");
        },
        [&] { notifier.look(); })
        .run();
}

} // namespace

Action add_watch(CLI::App &verb) {
    auto options = std::make_shared<WatchOptions>();

    verb.add_option("TARGET", options->target, "only events of this cgroup and those below it");
    verb.add_flag("--notify", options->notify,
                  "pass each event as JSON to the policy's 'notify', and print none");
    add_examples(verb, "umacct watch\n"
                       "umacct watch ollama.service\n"
                       "umacct watch --json | jq 'select(.type == \"hard_refused\") | .path'");
    return [options](Session &session) -> int {
        Module &module = session.module();
        const std::string path =
            options->target ? session.machine.resolve(*options->target).path : "";

        if (options->notify)
            notify(module, session, path);
        Watcher(
            module, session.machine, session.output, path, [&] { session.output.out.flush(); },
            [] {})
            .run();
    };
}

} // namespace umacct::tool
