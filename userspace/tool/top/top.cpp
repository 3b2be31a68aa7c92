// SPDX-License-Identifier: GPL-2.0-or-later
#include <charconv>
#include <chrono>
#include <map>
#include <memory>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/history/reader.h"
#include "lib/history/sampler.h"
#include "lib/json.h"
#include "lib/machine.h"
#include "lib/units.h"
#include "tool/arguments.h"
#include "tool/print/text.h"
#include "tool/session.h"
#include "tool/top/model.h"
#include "tool/top/ui.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double delay_least = 0.1;
constexpr double delay_most = 86400;

struct TopOptions {
    std::optional<std::string> target;
    double delay = 1;
    std::optional<std::uint64_t> iterations;
    bool batch = false;
    bool processes = false;
    bool all = false;
    ListOptions list{.columns = {}, .sort = "total"};

    /// 0 for no end. Without a terminal or -n, one is printed.
    std::uint64_t refreshes(const Output &output) const {
        return iterations.value_or(batch || output.json || output.terminal ? 0 : 1);
    }

    std::chrono::milliseconds interval() const {
        return std::chrono::duration_cast<std::chrono::milliseconds>(
            std::chrono::duration<double>(delay));
    }
};

/// Takes readings of one subtree, or of everything.
class Reader {
public:
    Reader(Connection &connection, Machine &machine, const TopOptions &options)
        : connection_(connection), machine_(machine), wanted_(options.target) {}

    /// A module that was loaded anew is found again, and so is a target that was.
    TopSample read() {
        // Containers come and go, and may be renamed.
        machine_.refresh_owners();
        follow();
        try {
            return read_once();
        } catch (const Error &) {
            connection_.reset();
        }
        return read_once();
    }

    std::string path() const { return target_ ? target_->path : ""; }

private:
    /// A service that restarts has another cgroup by the same name. A process is in no
    /// second one: then it is the cgroup that is followed.
    void follow() {
        const Cgroups &cgroups = machine_.cgroups();

        if (!wanted_ ||
            (target_ && cgroups.exists(target_->path) && cgroups.id(target_->path) == target_->id))
            return;
        target_ = machine_.resolve(target_ && target_->pid ? target_->path : *wanted_);
    }

    TopSample read_once() {
        const std::optional<std::uint64_t> subtree =
            target_ ? std::optional(target_->id) : std::nullopt;
        TopSample sample;

        sample.status = connection_.module().status();
        sample.accounts = connection_.module().accounts(subtree);
        sample.clients = connection_.module().clients(subtree);
        sample.binders = {connection_.module(), machine_.owners(), sample.accounts};
        sample.time = Clock::now();
        const Meminfo memory = machine_.meminfo(sample.status);
        sample.total = memory.total();
        sample.free = memory.free();
        sample.available = memory.available();
        if (target_)
            sample.division = {.total = memory.total(), .available = memory.available()};
        else
            sample.division = divide(machine_, memory, sample.status, sample.accounts);
        for (const Account &account : sample.accounts)
            sample.memory.emplace(account.id, memory_controller(machine_.cgroups(), account,
                                                                {.total = is_busy(account),
                                                                 .pressure = is_busy(account)}));
        for (auto &[id, each] : sample.memory) {
            if (each.current || each.total)
                continue;
            const auto root = std::ranges::find(sample.accounts, id, &Account::id);
            if (root != sample.accounts.end() && root->path == "/")
                each.total = sample.total - std::min(sample.total, sample.available);
        }
        for (const Client &client : sample.clients)
            sample.processes.emplace(key_of(client), process_memory(machine_.proc(), client));
        return sample;
    }

    Connection &connection_;
    Machine &machine_;
    std::optional<std::string> wanted_;
    std::optional<Target> target_;
};

/// Takes the next reading, or why there is none.
void refresh(Reader &reader, TopModel &model) {
    try {
        model.take(reader.read());
    } catch (const Error &error) {
        model.lose(error.what());
    }
}

/// Adds the recorder's samples, at the times of earlier refreshes.
void recall(TopModel &model, const Machine &machine, std::chrono::milliseconds delay) {
    const std::string current = boot_id(machine.proc());
    // Two samples may be two seconds apart: a shorter interval would mix their times.
    const std::int64_t interval_ms = std::max<std::int64_t>(
        delay.count(), std::chrono::milliseconds(history::sample_interval).count());
    const std::int64_t gap_ms = 3 * interval_ms;
    const std::int64_t now_ms = history::milliseconds_of(CLOCK_REALTIME);
    const auto length = static_cast<std::int64_t>(TopModel::history_length);
    std::map<std::uint32_t, std::vector<std::uint64_t>> usage;
    std::map<std::uint32_t, history::Named> names;
    std::size_t taken = 0;
    std::int64_t last_ms = 0;

    try {
        history::Reader reader(machine.root());

        for (const history::Boot &boot : reader.boots()) {
            if (boot.boot_id != current)
                continue;
            names = reader.accounts(boot);
            reader.for_each(boot, {.since_ms = now_ms - length * interval_ms, .until_ms = now_ms},
                            [&](const history::Moment &moment) {
                                if (moment.time_ms - last_ms > gap_ms) {
                                    usage.clear();
                                    taken = 0;
                                } else if (moment.time_ms - last_ms < interval_ms - 500) {
                                    return;
                                }
                                last_ms = moment.time_ms;
                                for (const auto &[key, holdings] : moment.state.accounts) {
                                    usage[key].resize(taken);
                                    usage[key].push_back(holdings[history::Holding::driver]);
                                }
                                ++taken;
                            });
        }
    } catch (const Error &) {
        return; // not recorded, or not readable by this user
    }
    if (now_ms - last_ms > gap_ms)
        return;
    for (auto &[key, values] : usage) {
        values.resize(taken);
        if (const auto named = names.find(key); named != names.end())
            model.recall(named->second.id, values);
    }
}

// --- one refresh after the other, for pipes and for terminals without a screen --------

/// null where the caller may not see it.
Json if_told(const Status &status, std::uint64_t bytes) {
    return status.tells_all() ? Json(bytes) : Json(nullptr);
}

void print_document(const Machine &machine, const Output &output, const TopModel &model) {
    const TopSample &sample = *model.sample();
    const Status &status = sample.status;

    print_json(output, machine.owners(),
               {{"memory",
                 {{"total_bytes", sample.total},
                  {"free_bytes", sample.free},
                  {"available_bytes", sample.available}}},
                {"usage_bytes", status.usage},
                {"charged_bytes", status.charged},
                {"uncharged_bytes", status.uncharged()},
                {"driver_usage_bytes", if_told(status, status.driver_usage)},
                {"managed_bytes", status.managed},
                {"reserve_bytes", if_told(status, status.reserve)}},
               model.processes ? "clients" : "accounts", model.all_rows(),
               [](std::string &text, const Row &row) {
                   text += ",\"rate_bytes_per_second\":" +
                           (row.rate ? std::to_string(*row.rate) : "null");
               });
}

void print_machine(const Output &output, const TopSample &sample) {
    const Status &status = sample.status;

    fmt::print(output.out, "memory  {} available of {}, reserve {}\n",
               format_size(sample.available), format_size(sample.total),
               reserve_text(status, format_size));
    fmt::print(output.out, "driver  {} uncharged, {} charged{}\n\n",
               format_size(status.uncharged()), format_size(status.charged),
               status.tells_all() ? fmt::format(", {} its own", format_size(status.driver_usage))
                                  : " in your cgroup and below it");
}

/// Throws Error (usage) where there is no such column.
std::vector<const Column *> columns_of(const ListOptions &options, bool processes) {
    return processes ? chosen_columns(options, Of::processes,
                                      {"pid", "total", "usage", "limit", "percent", "peak", "rate",
                                       "memory.current", "uncharged", "name", "account"})
                     : chosen_columns(options, Of::accounts,
                                      {"name", "total", "usage", "limit", "percent", "peak", "rate",
                                       "memory.current", "uncharged", "pressure"});
}

void print_table(const Machine &machine, const Output &output, const TopModel &model,
                 const ListOptions &options) {
    const Of of = model.processes ? Of::processes : Of::accounts;
    const auto shown = columns_of(options, model.processes);
    std::vector<Row> rows = model.all_rows();

    if (model.processes)
        describe_processes(machine, rows, shown);
    if (rows.empty() && !options.csv)
        fmt::print(output.out, "{}\n",
                   model.processes ? "no process holds memory"
                                   : "no account holds memory or has settings");
    else
        print_rows(output, rows, shown, of, options);
}

void run_batch(const Machine &machine, const Output &output, const TopOptions &options,
               Reader &reader, TopModel &model) {
    const std::uint64_t iterations = options.refreshes(output);
    std::string problem;

    output.warn_if_degraded(model.sample()->status);
    for (std::uint64_t done = 1;; ++done) {
        if (model.sample() == nullptr) {
            // Said once; it goes on when there is something again.
            if (problem != model.problem())
                output.note(model.problem() + "; trying again");
        } else if (output.json) {
            print_document(machine, output, model);
        } else {
            if (done > 1 && !options.list.csv)
                fmt::print(output.out, "\n");
            if (!options.list.csv)
                print_machine(output, *model.sample());
            print_table(machine, output, model, options.list);
        }
        problem = model.problem();
        output.flush();
        for (const TopNotice &notice : model.notices())
            output.note(notice.text);
        if (done == iterations)
            break;
        std::this_thread::sleep_for(options.interval());
        refresh(reader, model);
    }
}

// --- the full screen --------------------------------------------------------------

void run_screen(Terminal &terminal, const TopOptions &options, Reader &reader, TopModel &model,
                TopUi &ui) {
    const std::uint64_t iterations = options.iterations.value_or(0);
    auto next = Clock::now() + options.interval();

    for (std::uint64_t done = 1;;) {
        terminal.show(ui.draw(terminal.size()));

        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            std::max(next - Clock::now(), Clock::duration::zero()));
        const std::optional<Key> key = terminal.wait(left);
        const TopUi::Wish wish = key ? ui.press(*key) : TopUi::Wish::nothing;

        if (wish == TopUi::Wish::quit || (!key && done == iterations))
            return;
        if (wish == TopUi::Wish::refresh || (!key && !ui.paused())) {
            refresh(reader, model);
            ui.refreshed();
            done += key ? 0 : 1;
        }
        if (!key || wish == TopUi::Wish::refresh)
            next = Clock::now() + options.interval();
    }
}

/// Also where none of them would be printed.
void check_columns(const TopOptions &options, bool on_screen) {
    columns_of(options.list, options.processes);
    const ListOptions &list = options.list;
    const char *given = !list.columns.empty() ? "-o"
                        : list.no_header      ? "--no-header"
                        : list.bytes          ? "--bytes"
                        : list.csv            ? "--csv"
                                              : nullptr;

    if (on_screen && given != nullptr)
        throw Error(Failure::usage, fmt::format("{}: not possible on the screen", given),
                    "with --batch they are printed as you choose them");
}

int top(Session &session, const TopOptions &options) {
    Machine &machine = session.machine;
    const Output &output = session.output;
    Reader reader(session.connection, machine, options);
    TopModel model(machine.owners());
    const bool wants_screen = !options.batch && !output.json && session.open_terminal;

    model.processes = options.processes;
    model.all = options.all;
    model.sort = &column(options.list.sort, Of::both, "--sort");
    // Errors of the start are printed plainly, before there is a screen.
    check_columns(options, wants_screen && output.terminal);
    if (options.refreshes(output) != 1)
        session.count_meanwhile();
    if (wants_screen)
        recall(model, machine, options.interval());
    model.take(reader.read());
    std::unique_ptr<Terminal> terminal = wants_screen ? session.open_terminal() : nullptr;
    if (!terminal) {
        run_batch(machine, output, options, reader, model);
        return 0;
    }

    TopUi ui(model, session, reader.path(), options.interval());
    run_screen(*terminal, options, reader, model, ui);
    return 0;
}

std::string check_delay(const std::string &text) {
    double seconds = 0;

    // Written so that "nan" is refused too.
    if (CLI::detail::lexical_cast(text, seconds) && seconds >= delay_least && seconds <= delay_most)
        return {};
    return fmt::format("'{}' is not a number of seconds from {:g} to {:g}", text, delay_least,
                       delay_most);
}

std::string check_iterations(const std::string &text) {
    std::uint64_t count = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), count);

    return read.ec == std::errc() && read.ptr == text.data() + text.size()
               ? ""
               : fmt::format("'{}' is not a number of refreshes: a whole number from 0", text);
}

} // namespace

Action add_top(CLI::App &verb) {
    auto options = std::make_shared<TopOptions>();

    // -b is --batch here, as other programs of the kind have it.
    add_list_options(verb, options->list, Of::both, "--bytes");
    verb.add_option("TARGET", options->target, subtree_help);
    verb.add_option("-d,--delay", options->delay, "time from one refresh to the next")
        ->type_name("SECONDS")
        ->check(CLI::Validator(check_delay, "", ""))
        ->capture_default_str();
    verb.add_option("-n,--iterations", options->iterations, "number of refreshes; 0 for no end")
        ->type_name("N")
        ->check(CLI::Validator(check_iterations, "", ""));
    verb.add_flag("-b,--batch", options->batch, "plain text, one refresh below the other");
    verb.add_flag("-P,--processes", options->processes, "processes instead of cgroups");
    verb.add_flag("-a,--all", options->all, "also accounts that hold nothing and have no settings");
    add_examples(verb, "umacct top\n"
                       "umacct top ollama.service -P --sort rate\n"
                       "umacct top --json -d 10 >>usage.log");
    return [options](Session &session) { return top(session, *options); };
}

} // namespace umacct::tool
