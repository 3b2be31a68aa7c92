// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/print/columns.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <functional>
#include <iterator>
#include <type_traits>
#include <unordered_map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "lib/error.h"
#include "lib/host/task.h"
#include "lib/text.h"
#include "lib/units.h"
#include "tool/print/table.h"
#include "tool/print/text.h"
#include "tool/session.h"

namespace umacct::tool {

namespace {

using Number = std::optional<std::int64_t>;

/// No limit is the largest.
Number number(std::uint64_t value) {
    return static_cast<std::int64_t>(std::min<std::uint64_t>(value, INT64_MAX));
}

Number number(const std::optional<std::uint64_t> &value) {
    return value ? number(*value) : std::nullopt;
}

template <auto Account::*Field>
Number of_account(const Row &row) {
    return row.account == nullptr ? std::nullopt : number(std::invoke(Field, *row.account));
}

template <auto Client::*Field>
Number of_process(const Row &row) {
    return number(std::invoke(Field, *row.client));
}

/// Returns a limit; an account without one is unlimited, a row without an account unknown.
template <Limit Account::*Field>
Number limit_of(const Row &row) {
    return row.account == nullptr ? std::nullopt
                                  : number((row.account->*Field).value_or(UMACCT_UNLIMITED));
}

template <auto Account::*OfAccount, auto Client::*OfClient>
Number of_either(const Row &row) {
    return row.client != nullptr ? number(std::invoke(OfClient, *row.client))
                                 : of_account<OfAccount>(row);
}

/// Returns hundredths of a per cent.
Number share_of_limit(const Row &row) {
    const Account *account = row.account;

    if (account == nullptr || !account->effective)
        return std::nullopt;
    const std::uint64_t usage = row.client != nullptr ? row.client->usage : account->usage;
    return std::llround(static_cast<double>(usage) * 10000 /
                        static_cast<double>(std::max<std::uint64_t>(*account->effective, 1)));
}

/// The same.
template <auto Pressure::*Who>
Number pressure_of(const Row &row) {
    return row.memory.pressure ? Number(std::llround((*row.memory.pressure.*Who).avg10 * 100))
                               : std::nullopt;
}

template <auto Account::*Field>
std::string word_of(const Row &row) {
    const auto value = row.account->*Field;

    if constexpr (std::is_same_v<decltype(value), const bool>)
        return value ? "on" : "off";
    else
        return std::string(name_of(value));
}

#include "tool/print/figure_columns.inc"

constexpr std::array of_names{
    Column{"name", "ACCOUNT", Of::both, Kind::text, "the cgroup, or the process's command", nullptr,
           [](const Row &row) { return row.name; }, 'n'},
    Column{
        "pid", "PID", Of::processes, Kind::count, "- outside the reader's pid namespace",
        [](const Row &row) { return row.client->pid == 0 ? Number() : Number(row.client->pid); }},
};

/// Reads a figure of a row's own memory, of an account or of a process.
template <auto MemoryController::*OfAccount, auto ProcessMemory::*OfProcess>
Number memory_of(const Row &row) {
    return number(row.client != nullptr ? row.process.*OfProcess : row.memory.*OfAccount);
}

constexpr std::array of_others{
    Column{"total", "TOTAL", Of::both, Kind::bytes,
           "what would come back if it ended: driver, programs and kernel memory",
           memory_of<&MemoryController::total, &ProcessMemory::total>, nullptr, 't'},
    Column{"cache", "CACHE", Of::accounts, Kind::bytes,
           "page cache and slab beside total: comes back when needed",
           [](const Row &row) { return number(row.memory.cache); }},
    Column{"swap", "SWAP", Of::both, Kind::bytes, "what lies on swap, beside total",
           memory_of<&MemoryController::swap, &ProcessMemory::swap>},
    Column{"percent", "MEM %", Of::both, Kind::percent, "usage, of limit", share_of_limit},
    Column{"rate", "RATE", Of::both, Kind::rate, "how fast usage changes; of top",
           [](const Row &row) { return row.rate; }, nullptr, 'r'},
    Column{"memory.current", "MEMORY.CURRENT", Of::both, Kind::bytes,
           "memory that the kernel's memory controller counts",
           [](const Row &row) { return number(row.memory.current); }, nullptr, 'm'},
    Column{"memory.max", "MEMORY.MAX", Of::both, Kind::limit, "the limit of that controller",
           [](const Row &row) { return number(row.memory.max); }},
    Column{"pressure", "PRESSURE", Of::accounts, Kind::percent,
           "of the last 10 s, in which some task waited for memory", pressure_of<&Pressure::some>,
           nullptr, 'w'},
    Column{"pressure-full", "PRESSURE FULL", Of::accounts, Kind::percent,
           "the same, in which all of them did", pressure_of<&Pressure::full>},
    Column{"bound-by", "BOUND BY", Of::accounts, Kind::text, "the cgroup whose limit binds",
           nullptr, [](const Row &row) { return row.bound_by; }},
    Column{"state", "STATE", Of::both, Kind::text, "above its soft limit?", nullptr,
           [](const Row &row) { return std::string(row.over_soft() ? "over soft" : ""); }},
    Column{"user", "USER", Of::processes, Kind::text, "user that it runs as; - if it is gone",
           nullptr, [](const Row &row) { return row.user; }},
    Column{"command", "COMMAND LINE", Of::processes, Kind::text, "the command and its arguments",
           nullptr, [](const Row &row) { return row.command; }, 0, true},
    Column{"account", "ACCOUNT", Of::processes, Kind::text, "the cgroup of its memory", nullptr,
           [](const Row &row) { return row.place; }},
};

template <std::size_t... Sizes>
constexpr auto joined(const std::array<Column, Sizes> &...parts) {
    std::array<Column, (Sizes + ...)> all{};
    auto at = all.begin();

    ((at = std::copy(parts.begin(), parts.end(), at)), ...);
    return all;
}

constexpr std::array table = joined(of_names, columns_of_figures, of_others);

bool has(const Column &column, Of rows) {
    return (static_cast<unsigned>(column.of) & static_cast<unsigned>(rows)) != 0;
}

void sort_rows(std::vector<Row> &rows, const Column &by) {
    std::stable_sort(rows.begin(), rows.end(),
                     [&](const Row &a, const Row &b) { return comes_before(by, a, b); });
}

} // namespace

bool Row::over_soft() const {
    return account != nullptr && account->soft && account->usage > *account->soft;
}

namespace {

const char *mark_of(const Client &client) {
    return client.exited ? " (exited)" : client.exiting ? " (exiting)" : "";
}

} // namespace

Row row_of(const Owners &owners, const Client &client, const Account *account) {
    return {.account = account,
            .client = &client,
            .name = printable(client.comm) + mark_of(client),
            .place = display_path(owners, client.path)};
}

void print_json(const Output &output, const Owners &owners, const Json &members, const char *key,
                const std::vector<Row> &rows, const More &more) {
    output.list(members, key, rows.size(), [&](std::string &text, std::size_t index) {
        const Row &row = rows[index];

        if (row.client != nullptr)
            append_json(text, owners, *row.client, row.process);
        else
            append_json(text, owners, *row.account, row.memory);
        if (more) {
            text.pop_back();
            more(text, row);
            text += '}';
        }
    });
}

std::string Column::cell(const Row &row, Form form) const {
    if (kind == Kind::text)
        return text(row);

    const bool raw = form == Form::raw;
    const bool exact = raw || form == Form::bytes;
    const Number value = number(row);
    if (!value)
        return raw ? "" : "-";
    switch (kind) {
    case Kind::rate:
        return exact ? std::to_string(*value) : format_rate(*value);
    case Kind::time:
    case Kind::elapsed:
        return raw ? std::to_string(*value)
                   : (kind == Kind::time ? format_time
                                         : format_elapsed)(static_cast<std::uint64_t>(*value));
    case Kind::percent:
        return raw ? fmt::format("{:.2f}", static_cast<double>(*value) / 100)
                   : format_percent(static_cast<double>(*value) / 100);
    case Kind::count:
        return std::to_string(*value);
    default:
        break;
    }
    if (*value == INT64_MAX)
        return "max";
    if (exact)
        return std::to_string(*value);
    return (form == Form::narrow ? format_short : format_size)(static_cast<std::uint64_t>(*value));
}

const char *Column::title_of(Of rows) const {
    return rows == Of::processes && name == "name" ? "COMMAND" : title;
}

std::span<const Column> columns() {
    return table;
}

const Column &column(std::string_view name, Of rows, const char *argument) {
    const auto *const found = std::ranges::find_if(
        table, [&](const Column &each) { return each.name == name && has(each, rows); });
    std::string known;

    if (found != table.end())
        return *found;
    for (const Column &each : table) {
        if (has(each, rows))
            known += fmt::format("{}{}", known.empty() ? "" : ", ", each.name);
    }
    throw Error(Failure::usage, fmt::format("{}: there is no column '{}'", argument, name),
                "the columns are " + known);
}

bool comes_before(const Column &by, const Row &a, const Row &b) {
    if (by.kind != Kind::text) {
        const Number first = by.number(a);
        const Number second = by.number(b);

        if (first != second) // unknown numbers come last
            return first > second;
    } else if (a.client != nullptr || by.name != "name") {
        const std::string first = by.text(a);
        const std::string second = by.text(b);

        if (first != second)
            return first < second;
    }
    return a.path() < b.path();
}

void add_list_options(CLI::App &verb, ListOptions &options, Of rows, const char *bytes) {
    std::string help = "Columns:\n";

    for (const Column &each : table) {
        if (has(each, rows))
            help += fmt::format("  {:<16}{}\n", each.name, each.help);
    }
    verb.add_option("-o,--columns", options.columns, "which columns; +COLUMN adds to the usual")
        ->type_name("COLUMN,...");
    verb.add_option("--sort", options.sort, "largest first, or by a name")
        ->type_name("COLUMN")
        ->capture_default_str();
    verb.add_flag("--no-header", options.no_header, "no titles above the columns");
    verb.add_flag(bytes, options.bytes, "sizes in bytes, without a unit");
    verb.add_flag("--csv", options.csv, "comma-separated values, for programs");
    verb.footer(help);
}

std::vector<const Column *> chosen_columns(const ListOptions &options, Of rows,
                                           std::vector<std::string_view> usual) {
    std::vector<const Column *> chosen;
    std::string_view names = options.columns;

    if (names.starts_with('+'))
        names.remove_prefix(1);
    else if (!names.empty())
        usual.clear();
    while (!names.empty()) {
        const auto comma = names.find(',');

        usual.push_back(names.substr(0, comma));
        names.remove_prefix(comma == std::string_view::npos ? names.size() : comma + 1);
    }
    chosen.reserve(usual.size());
    for (const std::string_view name : usual)
        chosen.push_back(&column(name, rows, "-o"));
    return chosen;
}

Files files_for(const std::vector<const Column *> &columns) {
    Files files;

    for (const Column *each : columns) {
        files.pressure |= each->name.starts_with("pressure");
        files.total |= each->name == "total" || each->name == "cache" || each->name == "swap";
    }
    return files;
}

Binders::Binders(Module &module, const Owners &owners, const std::vector<Account> &accounts) {
    for (const Account &account : accounts) {
        if (account.effective_id && *account.effective_id != account.id)
            others_.try_emplace(*account.effective_id);
    }
    for (const Account &account : accounts) {
        if (const auto found = others_.find(account.id); found != others_.end())
            found->second.path = account.path;
    }
    for (auto &[id, binder] : others_) {
        if (binder.path.empty())
            binder.path = path_of_account(module, id);
        binder.shown = display_path(owners, binder.path);
    }
}

std::string Binders::path(const Account &account) const {
    if (account.effective_id == account.id)
        return account.path;

    const auto found = account.effective_id ? others_.find(*account.effective_id) : others_.end();
    return found == others_.end() ? "" : found->second.path;
}

std::string Binders::shown(const Account &account) const {
    if (account.effective_id == account.id)
        return "itself";

    const auto found = account.effective_id ? others_.find(*account.effective_id) : others_.end();
    return found == others_.end() ? "" : found->second.shown;
}

std::vector<Row> account_rows(const Machine &machine, const std::vector<Account> &accounts,
                              const Binders &binders, const Column &sort) {
    std::vector<Row> rows;

    for (const Account &account : accounts) {
        Row &row = rows.emplace_back();

        row.account = &account;
        row.name = row.place = display_path(machine.owners(), account.path);
        row.memory = memory_controller(machine.cgroups(), account, {.total = true});
        row.bound_by = binders.shown(account);
    }
    sort_rows(rows, sort);
    return rows;
}

namespace {

/// Returns the user of a process that still exists, and is not a later one with its pid.
std::optional<uid_t> user_of(const std::filesystem::path &proc, const Client &client) {
    struct stat info {};

    const auto task = TaskStat::read(proc);
    if (!task || !started_at(*task, client.start_time_ns) || stat(proc.c_str(), &info) != 0)
        return std::nullopt;
    return info.st_uid;
}

std::string command_line(const std::filesystem::path &proc) {
    std::ifstream file(proc / "cmdline", std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(file), {}};

    text.erase(text.find_last_not_of('\0') + 1);
    std::ranges::replace(text, '\0', ' ');
    return printable(text);
}

/// Quotes a cell by RFC 4180.
std::string csv_cell(const std::string &text) {
    std::string quoted = "\"";

    if (text.find_first_of("\",\r\n") == std::string::npos)
        return text;
    for (const char c : text)
        quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    return quoted + '"';
}

void print_csv(const Output &output, const std::vector<Row> &rows,
               const std::vector<const Column *> &columns, bool header) {
    const auto line = [&](const auto &cell_of) {
        std::string text;

        for (const Column *column : columns)
            text += (text.empty() ? "" : ",") + csv_cell(cell_of(*column));
        output.out << text << '\n';
    };

    if (header)
        line([](const Column &column) { return std::string(column.name); });
    for (const Row &row : rows)
        line([&](const Column &column) {
            return column.name == "name" && row.client == nullptr ? row.place
                                                                  : column.cell(row, Form::raw);
        });
}

} // namespace

void describe_processes(const Machine &machine, std::vector<Row> &rows,
                        const std::vector<const Column *> &columns) {
    const auto shown = [&](std::string_view name) {
        return std::ranges::find(columns, name, &Column::name) != columns.end();
    };

    if (files_for(columns).total) {
        for (Row &row : rows)
            row.process = process_memory(machine.proc(), *row.client);
    }
    if (!shown("user") && !shown("command"))
        return;
    for (Row &row : rows) {
        const auto proc = machine.proc() / std::to_string(row.client->pid);
        const auto user = row.client->exited ? std::nullopt : user_of(proc, *row.client);

        row.user = user ? name_of_user(*user) : "-";
        row.command = user ? command_line(proc) : "";
        if (row.command.empty())
            row.command = row.name;
        else
            row.command += mark_of(*row.client);
    }
}

std::string exiting_note(std::uint32_t processes) {
    return processes == 0 ? "" : counted(processes, "process exiting", "processes exiting");
}

std::vector<Row> process_rows(const Machine &machine, const std::vector<Client> &clients,
                              const std::vector<Account> &accounts, const Column &sort,
                              std::vector<const Column *> columns) {
    std::unordered_map<std::uint64_t, const Account *> by_id;
    std::vector<Row> rows;

    for (const Account &account : accounts)
        by_id[account.id] = &account;
    for (const Client &client : clients) {
        const auto found = by_id.find(client.account_id);
        Row &row = rows.emplace_back(
            row_of(machine.owners(), client, found == by_id.end() ? nullptr : found->second));

        if (row.account != nullptr)
            row.memory = memory_controller(machine.cgroups(), *row.account);
    }
    columns.push_back(&sort);
    describe_processes(machine, rows, columns);
    sort_rows(rows, sort);
    return rows;
}

const std::vector<std::string_view> usual_of_processes{
    "pid", "user", "total", "usage", "percent", "peak", "managed", "swap", "command", "account"};

void print_rows(const Output &output, const std::vector<Row> &rows,
                const std::vector<const Column *> &columns, Of of, const ListOptions &options,
                int indent) {
    std::vector<Heading> headings;

    if (options.csv) {
        print_csv(output, rows, columns, !options.no_header);
        return;
    }
    headings.reserve(columns.size());
    for (const Column *column : columns)
        headings.push_back(
            {column->title_of(of), column->right() ? Align::right : Align::left, column->keep});

    Table printed(std::move(headings));
    for (const Row &row : rows) {
        std::vector<std::string> cells;

        cells.reserve(columns.size());
        for (const Column *column : columns)
            cells.push_back(column->name == "name"
                                ? std::string(static_cast<std::size_t>(row.depth) * 2, ' ') +
                                      row.name
                                : column->cell(row, options.bytes ? Form::bytes : Form::full));
        printed.add(std::move(cells));
    }
    printed.print(output, indent, !options.no_header);
}

} // namespace umacct::tool
