// SPDX-License-Identifier: GPL-2.0-or-later
#include <chrono>
#include <csignal>
#include <memory>
#include <set>
#include <thread>

#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "lib/error.h"
#include "lib/json.h"
#include "lib/machine.h"
#include "lib/units.h"
#include "tool/argument.h"
#include "tool/clients.h"
#include "tool/print/table.h"
#include "tool/print/text.h"
#include "tool/top/top_model.h"
#include "tool/top/top_ui.h"
#include "tool/verbs.h"

namespace umacct::tool {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double delay_least = 0.1;
constexpr double delay_most = 86400;

struct Options {
    std::optional<std::string> target;
    double delay = 1;
    std::optional<std::uint64_t> iterations;
    bool batch = false;
    bool processes = false;
    bool all = false;
    std::string sort{name_of(TopColumn::usage)};

    std::chrono::milliseconds interval() const {
        return std::chrono::duration_cast<std::chrono::milliseconds>(
            std::chrono::duration<double>(delay));
    }
};

/// Takes readings of one subtree, or of everything.
class Reader {
public:
    Reader(Context &context, const Options &options) : context_(context), wanted_(options.target) {}

    /// A module that was loaded anew is found again, and so is a target that was.
    TopSample read() {
        // Containers come and go, and may be renamed.
        context_.refresh_owners();
        follow();
        try {
            return read_once();
        } catch (const Error &) {
            context_.disconnect();
        }
        return read_once();
    }

    std::string path() const { return target_ ? target_->path : ""; }

private:
    /// A service that restarts has another cgroup by the same name. A process is in no
    /// second one: then it is the cgroup that is followed.
    void follow() {
        const Cgroups &cgroups = context_.cgroups();

        if (!wanted_ ||
            (target_ && cgroups.exists(target_->path) && cgroups.id(target_->path) == target_->id))
            return;
        target_ = context_.resolve(target_ && target_->pid ? target_->path : *wanted_);
    }

    TopSample read_once() {
        const std::optional<std::uint64_t> subtree =
            target_ ? std::optional(target_->id) : std::nullopt;
        const Meminfo memory = context_.meminfo();
        TopSample sample;

        sample.status = context_.module().status();
        sample.accounts = context_.module().accounts(subtree);
        sample.clients = context_.module().clients(subtree);
        sample.time = Clock::now();
        sample.total = memory.total();
        sample.free = memory.free();
        sample.available = memory.available();
        for (const Account &account : sample.accounts)
            sample.memory.emplace(account.id, memory_controller(context_.cgroups(), account));
        return sample;
    }

    Context &context_;
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

// --- one refresh after the other, for pipes and for terminals without a screen --------

template <class T>
Json with_rate(Json json, const TopModel &model, const T &of) {
    const std::optional<std::int64_t> rate = model.rate(key_of(of));

    json["rate"] = rate ? Json(*rate) : Json(nullptr);
    return json;
}

void print_document(Context &context, const TopModel &model) {
    const TopSample &sample = *model.sample();
    const Status &status = sample.status;
    Json rows = Json::array();
    Json json = json_document();

    json["time"] = std::chrono::duration_cast<std::chrono::nanoseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
    json["memory"] = {
        {"total", sample.total}, {"free", sample.free}, {"available", sample.available}};
    json["usage"] = status.usage;
    json["charged"] = status.charged;
    json["uncharged"] = status.uncharged();
    json["driver_usage"] = status.driver_usage;
    json["managed"] = status.managed;
    json["reserve"] = status.reserve;
    if (model.processes) {
        for (const Client *client : model.client_rows())
            rows.push_back(with_rate(to_json(context.owners(), *client), model, *client));
    } else {
        for (const AccountRow &row : model.account_rows())
            rows.push_back(with_rate(
                to_json(context.owners(), *row.account, sample.memory.at(row.account->id)), model,
                *row.account));
    }
    json[model.processes ? "clients" : "accounts"] = rows;
    print_json(context.out(), json);
}

void print_machine(Context &context, const TopSample &sample) {
    const Status &status = sample.status;

    fmt::print(context.out(), "memory  {} available of {}, reserve {}\n",
               format_size(sample.available), format_size(sample.total),
               status.reserve == 0 ? "off" : format_size(status.reserve));
    fmt::print(context.out(), "driver  {} uncharged, {} charged, {} its own\n\n",
               format_size(status.uncharged()), format_size(status.charged),
               format_size(status.driver_usage));
}

void print_table(Context &context, const TopModel &model) {
    std::vector<Column> columns{{"USAGE", Align::right},          {"LIMIT", Align::right},
                                {"PEAK", Align::right},           {"RATE", Align::right},
                                {"MEMORY.CURRENT", Align::right}, {"UNCHARGED", Align::right}};

    if (model.processes) {
        columns.insert(columns.begin(), {"PID", Align::right});
        columns.push_back({"COMMAND"});
        columns.push_back({"ACCOUNT"});
    } else {
        columns.insert(columns.begin(), {"ACCOUNT"});
    }

    Table table(std::move(columns));
    for (const TopRow &row : model.rows()) {
        std::vector<std::string> cells{
            format_size(row.usage),   format_limit(row.limit),
            format_size(row.peak),    row.rate ? format_rate(*row.rate) : "-",
            format_known(row.memory), format_size(row.uncharged)};

        if (model.processes) {
            cells.insert(cells.begin(), row.key.pid == 0 ? "-" : std::to_string(row.key.pid));
            cells.push_back(row.name);
            cells.push_back(row.shown_path);
        } else {
            cells.insert(cells.begin(),
                         std::string(static_cast<std::size_t>(row.depth) * 2, ' ') + row.name);
        }
        table.add(std::move(cells));
    }
    if (!table.empty())
        table.print(context.out());
    else
        fmt::print(context.out(), "{}\n",
                   model.processes ? "no process holds memory"
                                   : "no account holds memory or has settings");
}

void run_batch(Context &context, const Options &options, Reader &reader, TopModel &model) {
    // What nobody asked to go on is over after one.
    const std::uint64_t iterations = options.iterations.value_or(
        options.batch || context.json || context.out_is_terminal() ? 0 : 1);

    std::string problem;

    context.warn_if_degraded(model.sample()->status);
    for (std::uint64_t done = 1;; ++done) {
        if (model.sample() == nullptr) {
            // Said once; it goes on when there is something again.
            if (problem != model.problem())
                fmt::print(context.err(), "note: {}; trying again\n", printable(model.problem()));
        } else if (context.json) {
            print_document(context, model);
        } else {
            if (done > 1)
                fmt::print(context.out(), "\n");
            print_machine(context, *model.sample());
            print_table(context, model);
        }
        problem = model.problem();
        if (!context.out().flush())
            throw Error(Failure::failed, "the output could not be written");
        for (const TopNotice &notice : model.notices())
            fmt::print(context.err(), "note: {}\n", notice.text);
        if (done == iterations)
            break;
        std::this_thread::sleep_for(options.interval());
        refresh(reader, model);
    }
}

// --- the full screen --------------------------------------------------------------

/// The signal that ended it; 0 for none.
int run_screen(Terminal &terminal, const Options &options, Reader &reader, TopModel &model,
               TopUi &ui) {
    const std::uint64_t iterations = options.iterations.value_or(0);
    auto next = Clock::now() + options.interval();

    for (std::uint64_t done = 1;;) {
        terminal.show(ui.draw(terminal.size(), terminal.unicode()));

        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            std::max(next - Clock::now(), Clock::duration::zero()));
        const std::optional<Key> key = terminal.wait(left);
        const TopUi::Wish wish = key ? ui.press(*key) : TopUi::Wish::nothing;

        if (wish == TopUi::Wish::quit)
            return key->signal;
        if (!key && done == iterations)
            return 0;
        if (wish == TopUi::Wish::refresh || (!key && !ui.paused())) {
            refresh(reader, model);
            ui.refreshed();
            done += key ? 0 : 1;
        }
        if (!key || wish == TopUi::Wish::refresh)
            next = Clock::now() + options.interval();
    }
}

void set_hard_limit(Context &context, const Account &account, std::uint64_t bytes) {
    AccountChange change;

    change.hard = bytes;
    request_change(display_path(context.owners(), account.path),
                   {{UMACCT_A_ACCOUNT_HARD, "hard limit"}},
                   [&] { context.module().set_account(account.id, change); });
}

void top(Context &context, const Options &options) {
    Reader reader(context, options);
    TopModel model(context.owners());
    int signal = 0;

    model.processes = options.processes;
    model.all = options.all;
    model.sort = top_column(options.sort).value_or(TopColumn::usage);
    // What fails from the start is said plainly, before there is a screen.
    model.take(reader.read());
    std::unique_ptr<Terminal> terminal =
        options.batch || context.json ? nullptr : context.open_terminal();
    if (!terminal) {
        run_batch(context, options, reader, model);
        return;
    }

    TopUi ui(model, {.target = reader.path(),
                     .delay = options.interval(),
                     .set_limit = [&context](const Account &account, std::uint64_t bytes) {
                         set_hard_limit(context, account, bytes);
                     }});
    signal = run_screen(*terminal, options, reader, model, ui);
    terminal.reset();
    if (signal != 0) {
        // The end that was asked for, now that the terminal is as it was.
        std::signal(signal, SIG_DFL);
        std::raise(signal);
    }
}

std::string check_delay(const std::string &text) {
    double seconds = 0;

    // Written so that "nan" is refused too.
    if (CLI::detail::lexical_cast(text, seconds) && seconds >= delay_least && seconds <= delay_most)
        return {};
    return fmt::format("'{}' is not a number of seconds from {:g} to {:g}", text, delay_least,
                       delay_most);
}

std::set<std::string> column_names() {
    std::set<std::string> names;

    for (const TopColumn column : top_columns())
        names.emplace(name_of(column));
    return names;
}

} // namespace

void add_top(CLI::App &app, Context &context) {
    auto options = std::make_shared<Options>();
    CLI::App *verb = app.add_subcommand("top", "live view of cgroups and processes");

    verb->add_option("TARGET", options->target, "only this cgroup and what is below it");
    verb->add_option("-d,--delay", options->delay, "time from one refresh to the next")
        ->type_name("SECONDS")
        ->check(CLI::Validator(check_delay, "", ""))
        ->capture_default_str();
    verb->add_option("-n,--iterations", options->iterations,
                     "end after so many refreshes; 0 for never")
        ->type_name("N")
        ->check(CLI::NonNegativeNumber);
    verb->add_flag("-b,--batch", options->batch, "plain text, one refresh below the other");
    verb->add_flag("-P,--processes", options->processes, "processes instead of cgroups");
    verb->add_flag("-a,--all", options->all,
                   "also accounts that hold nothing and have no settings");
    verb->add_option("--sort", options->sort, "largest first, or by name")
        ->type_name("COLUMN")
        ->check(CLI::IsMember(column_names()))
        ->capture_default_str();
    verb->footer(
        "Keys: h explains them. p switches to processes and back, s sorts, / filters, l sets a\n"
        "hard limit, which takes root, q quits.\n"
        "\n"
        "Where there is no terminal, or one without a screen, it prints batches; one only, unless\n"
        "--batch, --json or -n asks for more: those go on until -n of them are done, or who reads\n"
        "them is gone. With --json one object a line, with the keys of 'ls' (or 'ps') and "
        "\"rate\",\n"
        "in bytes per second, null at first. Of a TARGET that restarts, or a module that is "
        "loaded\n"
        "anew, it shows what there is again.\n"
        "\n"
        "Examples:\n"
        "  umacct top\n"
        "  umacct top ollama.service -P --sort rate\n"
        "  umacct top --json -d 10 >>usage.log");
    verb->callback([options, &context] { top(context, *options); });
}

} // namespace umacct::tool
